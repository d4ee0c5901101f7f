"""Patterns that ask for one text at one place."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.pattern.expressions.values.like import (
    Place,
    fixed_text,
    ilike_matcher,
    like_matcher,
)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("ab", (Place.WHOLE, "ab")),
        ("", (Place.WHOLE, "")),
        ("ab%", (Place.START, "ab")),
        ("%ab", (Place.END, "ab")),
        ("%%ab%", (Place.ANYWHERE, "ab")),
        ("%", (Place.START, "")),
        (r"\%a\_\\%", (Place.START, r"%a_" + "\\")),
        (r"a\%", (Place.WHOLE, "a%")),
        ("a%b", None),
        ("a_", None),
        ("%_%", None),
    ],
)
def test_where_a_pattern_has_its_text(pattern: str, found: tuple[Place, str] | None) -> None:
    """Wildcards at the ends say where; one between, or for one character, asks for more."""
    assert fixed_text(pattern) == found


def matches(pattern: str, text: str) -> bool:
    """LIKE as its definition reads, for short texts."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(matches(pattern[1:], text[place:]) for place in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and matches(pattern[1:], text[1:])


@given(st.text("ab%_", max_size=7), st.text("ab\né", max_size=7))
def test_it_is_like(pattern: str, text: str) -> None:
    """Any pattern answers as the definition does, line breaks and letters beyond ASCII included."""
    assert like_matcher(pattern)(text) is matches(pattern, text)
    assert ilike_matcher(pattern.upper())(text.upper()) is matches(pattern, text)


def test_signs_of_regular_expressions_are_plain() -> None:
    """What means something in a regular expression means itself."""
    text = ".*+?()[]{}^$|\\"
    pattern = "%" + text.replace("\\", "\\\\") + "_%"
    assert like_matcher(pattern)(f"a{text}b")
    assert not like_matcher(pattern)(f"a{text}")


IS_THERE: dict[Place, Callable[[str, str], bool]] = {
    Place.WHOLE: str.__eq__,
    Place.START: str.startswith,
    Place.END: str.endswith,
    Place.ANYWHERE: str.__contains__,
}


@given(st.text("ab%", max_size=4), st.text("ab", max_size=5))
def test_it_is_what_like_answers(pattern: str, text: str) -> None:
    """A text is like the pattern just where it has the pattern's text at its place."""
    found = fixed_text(pattern)
    if found is not None:
        place, part = found
        assert IS_THERE[place](text, part) == like_matcher(pattern)(text)
    else:
        assert "%" in pattern.strip("%")
