"""Errors in rules as text: what is shown of a line, and what is underlined."""

from __future__ import annotations

import pytest

from spark_cep.errors import MOST_SHOWN, Problem, Span


def underlined(line: str, span: Span) -> str:
    """The characters above the carets."""
    _, shown, carets = Problem("wrong", "f.yaml", span, line).render().splitlines()
    assert len(shown) <= len(f"{span.line} | ") + MOST_SHOWN + 2
    return shown[carets.index("^") : carets.rindex("^") + 1]


def test_a_line_of_ordinary_length_is_shown_whole() -> None:
    """Place, message, line and underline."""
    problem = Problem("no such field", "f.yaml", Span(3, 5, 4), "let valu be")
    assert problem.render() == "f.yaml:3:5: no such field\n3 | let valu be\n        ^^^^"


@pytest.mark.parametrize("column", [1, 40, 60, 5_000, 9_900, 10_001 - 4])
def test_of_a_long_line_the_part_around_the_place_is_shown(column: int) -> None:
    """Wherever in the line it is."""
    line = "x" * (column - 1) + "here" + "y" * (10_000 - column - 3)
    assert len(line) == 10_000
    assert underlined(line, Span(1, column, 4)) == "here"


def test_a_long_place_is_underlined_as_far_as_it_is_shown() -> None:
    """The line and its underline end together."""
    assert set(underlined("x" * 1_000_000, Span(1, 1, 1_000_000))) == {"x"}
    assert underlined("x" * 300 + "y" * 700, Span(1, 301, 700)).startswith("yyy")


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\x9b31m", "\r", "\n", "\u202e", "\x07", "\x00"])
def test_what_others_wrote_moves_no_cursor(hostile: str) -> None:
    """Control and direction characters are shown as escapes, or as blanks in the excerpt, where
    each character keeps its column."""
    text = f"a{hostile}b"
    problem = Problem(text, text, Span(1, 2), text, text, text, text)
    assert all(line.isprintable() for line in problem.render().splitlines())
    assert problem.render().count(repr(f"a{hostile}b")[1:-1]) == 5
    assert underlined(f"{hostile}here", Span(1, len(hostile) + 1, 4)) == "here"


def test_long_texts_are_shortened() -> None:
    """Names more than sentences."""
    rendered = Problem("m" * 5_000, "f.yaml", rule="r" * 5_000, allowed="a" * 5_000).render()
    assert (rendered.count("r"), rendered.count("m")) == (100 + 1, 1_000 + 1)
    assert rendered.count("a") == 1_000 + 1
