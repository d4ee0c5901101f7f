"""The page on MATCH_RECOGNIZE shows what the code does."""

from __future__ import annotations

import pathlib
import re

import pytest

from service.compiler.row_pattern import plan_query
from service.errors import RuleSetError
from service.pattern.sql import load_query, stream_refusals, stream_warnings
from service.pattern.types import DOUBLE, RecordType

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "match-recognize.md").read_text("utf-8")


def _block(behind: str, kind: str = "") -> str:
    found = re.search(rf"{re.escape(behind)}.*?```{kind}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_example() -> None:
    """The statement is right, and a stream can run it."""
    query = load_query(_block("# MATCH_RECOGNIZE", "sql"), "example.sql")
    assert [each.name for each in query.outputs] == ["account", "first_failure", "attempts"]
    assert stream_refusals(query, ("login_time",)) == []
    assert stream_warnings(query) == []


def test_program() -> None:
    """The listing is that of the pattern."""
    text = (
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k PATTERN (A {- B+? -} (C | D)*) "
        "DEFINE A AS TRUE)"
    )
    program = plan_query(load_query(text, "p.sql")).program
    assert str(program) == _block("`PATTERN (A {- B+? -} (C | D)*)` becomes").strip()


def test_message() -> None:
    """The mistake is told so."""
    text = (
        "SELECT * FROM ticks MATCH_RECOGNIZE (\n"
        "  PARTITION BY price\n"
        "  MEASURES FIRST(price) AS high,\n"
        "  LAST(PREV(price)) AS low\n"
        "  PATTERN (A) DEFINE A AS TRUE)"
    )
    with pytest.raises(RuleSetError) as caught:
        load_query(text, "ticks.sql", RecordType({"price": DOUBLE}))
    assert str(caught.value) == _block("All mistakes are told at once").strip()
