"""What a misspelt name was meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str], similarity: float = 0.6) -> str | None:
    """The known name closest to ``word``; ``similarity``: at least that much of both in common."""
    names = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), names, n=1, cutoff=similarity)
    return names[found[0]] if found else None


def instead(word: str, known: Iterable[str], what: str) -> str:
    """Help for a misspelt name: the nearest of ``what`` there is, and all of them."""
    names = list(known)
    meant = nearest(word, names)
    hint = f"did you mean `{meant}`? " if meant is not None else ""
    return f"{hint}{what} here: {', '.join(names) or 'none'}"
