"""Patterns that ask for one text at one place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.pattern.expressions.like import Place, fixed_text, like_matcher


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


IS_THERE = {
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
