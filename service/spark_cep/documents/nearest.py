"""Suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import takewhile

#: Names that are looked at, of how many characters, and that are listed.
_MOST_NAMES, _MOST_CHARACTERS, _MOST_LISTED = 500, 200, 50


def nearest(word: str, known: Iterable[str], similarity: float = 0.6) -> str | None:
    """The known name closest to ``word``; ``similarity``: at least that much of both in common.
    Of many names those 500 are looked at that begin most like it."""
    if len(word) > _MOST_CHARACTERS:
        return None
    names = {name.lower(): name for name in _likeliest_first(word, known)[:_MOST_NAMES]}
    closest = get_close_matches(word.lower(), names, cutoff=similarity)
    if not closest:
        return None
    # Of those that are about as close: beginnings are seldom misspelt.
    alike = (each for each in closest if each[:1] == word[:1].lower())
    return names[next(alike, closest[0])]


def instead(word: str, known: Iterable[str], what: str) -> str:
    """Help for a misspelt name: the nearest of ``what`` there is, and all of them."""
    names = list(known)
    near = nearest(word, names)
    hint = f"did you mean `{near}`? " if near is not None else ""
    return f"{hint}{what} here: {listed(names, like=word)}"


def listed(names: Sequence[str], like: str = "") -> str:
    """The names, of many the 50 that begin most like ``like``."""
    if len(names) <= _MOST_LISTED:
        return ", ".join(names) or "none"
    shown = ", ".join(_likeliest_first(like, names)[:_MOST_LISTED])
    return f"{shown} and {len(names) - _MOST_LISTED:,} more"


def _likeliest_first(word: str, names: Iterable[str]) -> list[str]:
    """The names, ordered by how many characters their beginning shares with ``word``."""

    def shared(name: str) -> int:
        pairs = zip(word, name, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    return sorted(names, key=shared, reverse=True)
