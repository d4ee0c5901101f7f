"""LIKE in linear time: plain searches where the pattern asks for one text, else by RE2."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from spark_cep.pattern.expressions.values.literals import like_parts
from spark_cep.pattern.expressions.values.regular import compiled, escaped


class Place(IntEnum):
    """The place in a text where another one must be."""

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
_TESTS: dict[Place, Callable[[str], Callable[[str], bool]]] = {
    Place.WHOLE: lambda part: lambda text: text == part,
    Place.START: lambda part: lambda text: text.startswith(part),
    Place.END: lambda part: lambda text: text.endswith(part),
    Place.ANYWHERE: lambda part: lambda text: part in text,
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
    """The test ``text LIKE pattern`` for one pattern; ``ValueError`` where it is too large."""
    fixed = fixed_text(pattern)
    if fixed is not None:
        place, part = fixed
        return _TESTS[place](part)
    written = "".join(
        ".*?" if part is None else "." if isinstance(part, int) else escaped(part)
        for part in like_parts(pattern)
    )
    match = compiled(rf"\A{written}\z", dot_all=True).search
    return lambda text: match(text.encode()) is not None


def ilike_matcher(pattern: str) -> Callable[[str], bool]:
    """The test ``LOWER(text) LIKE LOWER(pattern)`` for one pattern."""
    matches = like_matcher(pattern.lower())
    return lambda text: matches(text.lower())
