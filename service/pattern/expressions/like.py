"""LIKE in linear time: fixed pieces between ``%``, each found at its first place."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import IntEnum

from service.pattern.expressions.literals import like_parts


class Place(IntEnum):
    """Where in a text another one must be."""

    WHOLE = 0
    START = 1
    END = 2
    ANYWHERE = 3


_PLACES = {
    (False, False): Place.WHOLE,
    (False, True): Place.START,
    (True, False): Place.END,
    (True, True): Place.ANYWHERE,
}


def fixed_text(pattern: str) -> tuple[Place, str] | None:
    """The one text that a pattern asks for and where; ``None`` where it asks for more."""
    parts = like_parts(pattern)
    before = len(parts) > 1 and parts[0] is None
    after = bool(parts) and parts[-1] is None
    fixed = parts[int(before) : len(parts) - int(after)]
    text = [part for part in fixed if isinstance(part, str)]
    return (_PLACES[before, after], "".join(text)) if len(text) == len(fixed) else None


def like_matcher(pattern: str) -> Callable[[str], bool]:
    """The test ``text LIKE pattern`` for one pattern."""
    pieces: list[list[str | int]] = [[]]
    for part in like_parts(pattern):
        if part is None:
            pieces.append([])
        else:
            pieces[-1].append(part)
    compiled = [
        (re.compile("".join("." if c == 0 else re.escape(str(c)) for c in piece), re.DOTALL), piece)
        for piece in pieces
    ]
    first, middle, last = compiled[0], compiled[1:-1], compiled[-1]
    if len(compiled) == 1:
        return lambda text: first[0].fullmatch(text) is not None

    def matches(text: str) -> bool:
        start = first[0].match(text)
        if start is None:
            return False
        place = start.end()
        for piece, _ in middle:
            found = piece.search(text, place)
            if found is None:
                return False
            place = found.end()
        tail = len(text) - len(last[1])
        return tail >= place and last[0].match(text, tail) is not None

    return matches
