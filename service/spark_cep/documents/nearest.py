"""Suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import islice

#: Names that are looked at, of how many characters, and that are listed.
_MOST_NAMES, _MOST_CHARACTERS, _MOST_LISTED = 500, 200, 50


def nearest(word: str, known: Iterable[str], similarity: float = 0.6) -> str | None:
    """The known name closest to ``word``; ``similarity``: at least that much of both in common.
    Of many names the first 500 are looked at."""
    if len(word) > _MOST_CHARACTERS:
        return None
    names = {name.lower(): name for name in islice(known, _MOST_NAMES)}
    closest = get_close_matches(word.lower(), names, n=1, cutoff=similarity)
    return names[closest[0]] if closest else None


def instead(word: str, known: Iterable[str], what: str) -> str:
    """Help for a misspelt name: the nearest of ``what`` there is, and all of them."""
    names = list(known)
    near = nearest(word, names)
    hint = f"did you mean `{near}`? " if near is not None else ""
    return f"{hint}{what} here: {listed(names)}"


def listed(names: Sequence[str]) -> str:
    """The names, of many the first 50."""
    more = f" and {len(names) - _MOST_LISTED:,} more" if len(names) > _MOST_LISTED else ""
    return ", ".join(names[:_MOST_LISTED]) + more or "none"
