"""Values of rows that a match cannot have taken yet."""

from __future__ import annotations

import pytest

from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.sql import examine_query, stream_warnings


def told(pattern: str, define: str) -> list[str]:
    """The parts of a statement that are warned about."""
    text = (
        "SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY k MEASURES A.v AS v"
        f" PATTERN ({pattern}) WITHIN INTERVAL '1' HOUR DEFINE {define})"
    )
    query, problems = examine_query(text, "rule")
    assert query is not None
    assert problems == []
    found = [each for each in stream_warnings(query) if each.code is Code.UNTAKEN_STEP]
    return [text[slice(*each.span)] for each in found]


@pytest.mark.parametrize(
    ("pattern", "define", "part"),
    [
        ("A B", "A AS v > LAST(B.v)", "B.v"),
        ("A B", "A AS v > B.v", "B.v"),
        ("A B", "A AS COUNT(B.*) = 0", "COUNT(B.*)"),
        ("A (C | B)", "A AS v > SUM(B.v)", "SUM(B.v)"),
        ("A B", "A AS PREV(LAST(B.v)) > 1", "B.v"),
        ("A? B+ C", "B AS v > FIRST(C.v)", "C.v"),
        ("(A | B)", "A AS v > LAST(B.v)", "B.v"),
        ("A B+", "B AS v < LAST(B.v, 1)", "B.v"),
        ("A B+", "B AS v > 1 AND v < LAST(B.v, 1) + 2", "B.v"),
    ],
)
def test_never_there(pattern: str, define: str, part: str) -> None:
    """The column, or the aggregate, is underlined."""
    assert told(pattern, define) == [part]


@pytest.mark.parametrize(
    ("pattern", "define"),
    [
        ("A B", "B AS v > LAST(A.v)"),
        ("(A B)+", "A AS v > LAST(B.v)"),
        ("(A | B)+", "A AS v > LAST(B.v)"),
        ("(A B){2}", "A AS v > LAST(B.v)"),
        ("PERMUTE(A, B)", "A AS v > LAST(B.v)"),
        ("A B+", "B AS v > AVG(B.v)"),
        ("A B+", "B AS LAST(B.v, 1) IS NULL OR v < LAST(B.v, 1)"),
        ("A B+", "B AS v < PREV(v)"),
        ("A+ B", "B AS v < LAST(A.v, 1)"),
        ("{- A -} B", "B AS v < LAST(A.v)"),
    ],
)
def test_may_be_there(pattern: str, define: str) -> None:
    """Nothing is told."""
    assert told(pattern, define) == []
