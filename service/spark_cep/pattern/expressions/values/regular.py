"""Regular expressions in linear time, by RE2: https://github.com/google/re2/wiki/Syntax.

RE2 has no back-references and no look-around. A pattern is compiled once, and refused where it
compiles to more than ``MAX_PROGRAM`` instructions: the time for a text is in proportion to its
length and, at worst, to that number.

Finding all matches can still take the square of the text's length, when each search has to look at
the rest of the text to see that a longer match is not there (``a.*b|a``). It cannot where a match
has a bounded length. Nor can it in a pattern without groups and branches: as long as a search looks
on, it stands in a repetition that takes all it sees, so any later match that ends there would end
its own match too. For other patterns the bytes behind each place of a search are counted, and the
answer is NULL beyond ``MAX_SEARCHED``: a text of up to 9,900 bytes never gets there, nor one of
1 MB with 50 matches.
It is NULL, too, beyond ``MAX_MATCHES``, each of which takes some microseconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import re2

MAX_PROGRAM = 1_000
MAX_SEARCHED = 50_000_000
MAX_MATCHES = 20_000
_MEMORY = 8 << 20
_CONTINUES = range(0x80, 0xC0)
_PIECE = re.compile(r"\\(.)|\$([0-9]*)|(.)", re.DOTALL)
"""A part of a replacement: an escaped character, a group's number, or a character."""


@lru_cache(maxsize=1_024)
def compiled(pattern: str, *, dot_all: bool = False) -> Any:
    """The compiled pattern; ``ValueError`` with a sentence where it is invalid or too large."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    options.dot_nl = dot_all
    try:
        found = re2.compile(pattern, options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(f"the regular expression cannot be read: {text}") from error
    if found.programsize > MAX_PROGRAM:
        raise ValueError(
            f"the pattern is too large: it compiles to {found.programsize} instructions; the limit "
            f"is {MAX_PROGRAM}"
        )
    return found


def escaped(text: str) -> str:
    """The pattern that matches a text and nothing else."""
    return str(re2.escape(text))


def tester(pattern: str) -> Callable[[str], bool]:
    """The test whether a text has a match of the pattern."""
    search = compiled(pattern).search
    return lambda text: search(text.encode()) is not None


def extractor(pattern: str, group: int = 1) -> Callable[[str], str]:
    """The function that gives a group of the first match, empty where there is none."""
    found = compiled(pattern)
    if not 0 <= group <= found.groups:
        raise ValueError(f"there is no group {group}; the pattern has {found.groups}, and group 0")

    def run(text: str) -> str:
        match = found.search(text.encode())
        return (match.group(group) or b"").decode(errors="replace") if match else ""

    return run


def counter(pattern: str) -> Callable[[str], int | None]:
    """The function that counts matches; ``None`` where finding them takes too long."""
    found, most = compiled(pattern), _most_searched(pattern)

    def run(text: str) -> int | None:
        all_of_them = _matches(found, text.encode(), most)
        return None if all_of_them is None else len(all_of_them)

    return run


def replacer(pattern: str, replacement: str) -> Callable[[str], str | None]:
    r"""The function that replaces all matches; ``$1`` in the replacement is a group, ``\$`` a
    dollar. ``None`` where finding them takes too long."""
    found, most = compiled(pattern), _most_searched(pattern)
    pieces = _pieces(replacement, found.groups)

    def run(text: str) -> str | None:
        data = text.encode()
        all_of_them = _matches(found, data, most)
        if all_of_them is None:
            return None
        parts, place = [], 0
        for match in all_of_them:
            parts.append(data[place : match.start()])
            parts += [
                piece if isinstance(piece, bytes) else match.group(piece) or b"" for piece in pieces
            ]
            place = match.end()
        parts.append(data[place:])
        return b"".join(parts).decode(errors="replace")

    return run


def _pieces(replacement: str, groups: int) -> list[bytes | int]:
    """The constants and the groups of a replacement; as in Java a group's number takes as many
    digits as make the number of a group."""
    pieces: list[bytes | int] = []
    for match in _PIECE.finditer(replacement):
        escaped_or_plain, digits = match[1] or match[3], match[2]
        if digits is None:
            pieces.append(escaped_or_plain.encode())
            continue
        count = next((n for n in range(len(digits), 0, -1) if int(digits[:n]) <= groups), 0)
        if not count:
            raise ValueError(
                f"$ in a replacement stands before the number of a group, 0 to {groups}; "
                "a dollar is \\$"
            )
        pieces += [int(digits[:count]), digits[count:].encode()]
    return pieces


def _most_searched(pattern: str) -> float:
    """``MAX_SEARCHED``, or no limit where the searches cannot look at the same text many times."""
    written = pattern.removeprefix("(?i)")
    endless = any(sign in written for sign in ("*", "+", ",}"))
    branches = any(sign in written for sign in "(|")
    return MAX_SEARCHED if endless and branches else math.inf


def _matches(found: Any, data: bytes, most: float) -> list[Any] | None:
    """The matches from left to right, none inside another; empty ones stand between characters."""
    matches: list[Any] = []
    place = searched = 0
    while place <= len(data):
        match = found.search(data, place)
        if match is None:
            break
        matches.append(match)
        searched += len(data) - place
        if searched > most or len(matches) > MAX_MATCHES:
            return None
        place = match.end()
        if match.start() == match.end():
            place += 1
            while place < len(data) and data[place] in _CONTINUES:
                place += 1
    return matches
