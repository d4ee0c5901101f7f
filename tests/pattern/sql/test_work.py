"""Parts of a pattern for which few rows reach the limit of work are warned about, ordinary ones
not."""

from __future__ import annotations

import re

import pytest

from spark_cep.compiler.row_pattern.generation import generate
from spark_cep.pattern.sql import load_query, work_warnings
from spark_cep.pattern.sql.query import Query
from spark_cep.pattern.sql.work import open_instructions, rows_of
from spark_cep.pattern.tree import Limits
from spark_cep.pattern.types import BIGINT, STRING, RecordType

EVENT = RecordType({"k": STRING, "v": BIGINT})
SUMS = "A AS v = 1 AND SUM(A.v) < 100, B AS v = 2"
HOURS = "WITHIN INTERVAL '3' HOUR"
MANY = " | ".join(f"X{number}" for number in range(500))


def query(pattern: str, define: str = "A AS v = 1, B AS v = 2", clauses: str = "") -> Query:
    """A query of a pattern; only its own variables are defined."""
    defines = [each for each in re.split(r", (?=. AS)", define) if each[0] in pattern]
    text = (
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k MEASURES COUNT(*) AS m "
        f"{clauses} PATTERN ({pattern}) DEFINE {', '.join(defines)})"
    )
    if "WITHIN" in clauses:
        text = text.replace(clauses, "").replace(") DEFINE", f") {clauses} DEFINE")
    return load_query(text, "r.sql", EVENT)


def warned(query: Query) -> list[str]:
    """The text at the places of the warnings."""
    found = work_warnings(query, Limits().work, Limits().events)
    return [query.text[slice(*each.span)] for each in found]


@pytest.mark.parametrize(
    ("pattern", "define", "clauses", "wanted"),
    [
        ("(A{0,44}){0,44} B", SUMS, "", "(A{0,44}){0,44} B"),
        ("(A{0,44}){0,44} B", SUMS, "WITHIN INTERVAL '1' DAY", "(A{0,44}){0,44} B"),
        (f"({MANY})+ B", "B AS v < SUM(v)", "", f"({MANY})+ B"),
        ("A+ B", SUMS, "", "SUM(A.v)"),
        ("(A B)* A", "A AS v > LAST(A.v, 1), B AS v = 2", "", "A.v"),
        ("A+ B", None, "AFTER MATCH SKIP TO NEXT ROW", "A+ B"),
        ("A+ B", None, "AFTER MATCH SKIP TO FIRST B", "A+ B"),
        ("A X*? B", "A AS v = 1, X AS SUM(X.v) < 100, B AS v = 2", HOURS, "SUM(X.v)"),
        ("A X*? B", "A AS v = 1, B AS v > A.v", HOURS, "A.v"),
        ("X*? B", "B AS SUM(v) > 100", HOURS, "SUM(v)"),
    ],
)
def test_few_rows_that_reach_the_limit(
    pattern: str, define: str | None, clauses: str, wanted: str
) -> None:
    """Very many ways open at once, and the square of an attempt without end."""
    assert warned(query(pattern, define or "A AS v = 1, B AS v = 2", clauses)) == [wanted]


@pytest.mark.parametrize(
    ("pattern", "define", "clauses"),
    [
        ("A+ B", None, ""),
        ("A{3,} B", None, ""),
        ("(A | B)+ A", None, ""),
        ("A{1000} B", None, ""),
        ("(A{0,44}){0,44} B", None, ""),
        (f"({MANY})+ B", "B AS v = 2", ""),
        ("A{0,1000} B", None, ""),
        ("(A B?){1,10}", None, ""),
        ("PERMUTE(A, B, X, Y, Z, Q)", None, ""),
        ("(X0 | X1 | X2 | X3 | X4 | X5 | X6 | X7)+ B", "B AS v = 2", ""),
        ("A+ B", "A AS v < PREV(v), B AS v > PREV(v)", ""),
        ("A+ B", "A AS v = 1, B AS SUM(A.v) > 3", ""),
        ("A+ B", SUMS, "WITHIN INTERVAL '1' DAY"),
        ("A{1,9} B", SUMS, ""),
        ("A+ B", None, "AFTER MATCH SKIP TO LAST B"),
        ("A{1,20} B", None, "AFTER MATCH SKIP TO NEXT ROW"),
        ("A X*? B", None, HOURS),
        ("A X*? B", "A AS v = 1, B AS v > PREV(v)", HOURS),
        ("A X*? B", "A AS v = 1, B AS v > A.v", "WITHIN INTERVAL '1' HOUR"),
        ("A B", "A AS v = 1, B AS v > A.v", HOURS),
        ("A B+ C", "B AS v > LAST(B.v, 1), C AS v < A.v", HOURS),
        ("A X*? B", "A AS v = 1, X AS v < 9 AND SUM(X.v) < 100, B AS v = 2", HOURS),
    ],
)
def test_ordinary_patterns(pattern: str, define: str | None, clauses: str) -> None:
    """No warning that everybody gets."""
    assert warned(query(pattern, define or "A AS v = 1, B AS v = 2", clauses)) == []


def test_limits_count() -> None:
    """With more work allowed, or fewer rows than reach it, there is nothing to warn of."""
    sums = query("A+ B", SUMS)
    assert list(work_warnings(sums, 10**9, 100_000)) == []
    assert list(work_warnings(sums, 5_000_000, 500)) == []
    assert len(list(work_warnings(sums, 5_000_000, 5_000))) == 1
    (warning,) = work_warnings(sums, 50_000, 100_000)
    assert warning.message.endswith(": some 79 rows reach `limits.work`")
    timeouts = query("A X*? B", "B AS SUM(v) > 9", HOURS)
    (warning,) = work_warnings(timeouts, 5_000_000, 100_000)
    assert "a window of some 790 rows" in warning.message
    assert list(work_warnings(timeouts, 5_000_000, 500)) == []
    assert list(work_warnings(timeouts, 10**9, 100_000)) == []


@pytest.mark.parametrize(
    "pattern",
    ["A", "A B", "A+ B", "A* B A", "(A | B)+ A", "(A{0,5}){0,5} B", "A{0,50} B", "PERMUTE(A, B, X)",
     "(A B?)+ X", "A {- B* -} X?", "() A", "^ A+ B", "A (B | X Y)* Z"],
)  # fmt: skip
def test_open_instructions(pattern: str) -> None:
    """No fewer than the program has at once, and not very many more."""
    made = query(pattern)
    width = generate(made.pattern, made.variables).width
    assert width <= open_instructions(made.pattern) + 2 <= 3 * width + 4


def test_rows_of() -> None:
    """The least and the most rows."""
    wanted = {"A": (1, 1), "A B?": (1, 2), "(A | B A)+": (1, None), "(A{2,3}){4}": (8, 12),
              "PERMUTE(A, B)": (2, 2), "{- A -} ()": (1, 1), "^ A*": (0, None)}  # fmt: skip
    assert {text: rows_of(query(text).pattern) for text in wanted} == wanted
