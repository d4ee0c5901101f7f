"""Each part that a stream can never decide, or only late, is reported at its place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.expressions import ColumnPath, TextProblem
from spark_cep.pattern.expressions.problems import TextWarning
from spark_cep.pattern.sql import endless_parts, load_query, order_problems, stream_warnings
from spark_cep.pattern.sql.query import Query
from spark_cep.pattern.types import BIGINT, STRING, ArrayType, RecordType

EVENT = RecordType({"k": STRING, "ts": BIGINT, "v": BIGINT, "tags": ArrayType(STRING)})


def query(pattern: str, within: str = "", order: str = "ts", measure: str = "v") -> Query:
    """A query of a pattern, in which A, B and C have conditions."""
    text = (
        f"SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY {order} MEASURES {measure} AS m "
        f"PATTERN ({pattern}) {within} DEFINE A AS v = 1, B AS v = 2, C AS v = 3)"
    )
    return load_query(
        text.replace(", C AS v = 3", "" if "C" not in pattern else ", C AS v = 3").replace(
            ", B AS v = 2", "" if "B" not in pattern else ", B AS v = 2"
        ),
        "r.sql",
        EVENT,
    )


def refused(query: Query, event_time: ColumnPath | None = None) -> list[str]:
    """The parts that a stream cannot have."""
    return places(query, [*endless_parts(query), *order_problems(query, event_time)])


def warned(query: Query) -> list[str]:
    """The parts that make results late."""
    late = [each for each in stream_warnings(query) if each.code is not Code.NO_WINDOW]
    return places(query, late)


def places(query: Query, problems: Sequence[TextProblem | TextWarning]) -> list[str]:
    """The text at the places of problems, in its order."""
    return [query.text[slice(*problem.span)] for problem in sorted(problems, key=lambda p: p.span)]


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("A B $", ["$"]),
        ("A X* B", ["X*"]),
        ("A (X | B)+ B", ["(X | B)+"]),
        ("A (X B?)* B", ["(X B?)*"]),
        ("A (X B)* B", []),
        ("A X*? B", []),
        ("A X{,9} B", []),
        ("A ({- X -})* B", ["({- X -})*"]),
        ("A (X B* | ())* B", ["(X B* | ())*"]),
        ("A (B* ())* B", []),
        ("A (B? X?)* B", ["(B? X?)*"]),
        ("A PERMUTE(X, B?)* B", ["PERMUTE(X, B?)*"]),
        ("A B* X", []),
    ],
)
def test_refused(pattern: str, wanted: list[str]) -> None:
    """What only the end of the partition decides."""
    assert refused(query(pattern)) == wanted


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("TRUE", ["C*"]),
        ("1 = 1 AND CLASSIFIER() = 'C'", ["C*"]),
        ("v = 1 OR NOT FALSE", ["C*"]),
        ("v = 1 AND TRUE", []),
        ("FALSE", []),
        ("NULL = 1", []),
        ("PREV(v) = 1", []),
    ],
)
def test_constant_conditions(condition: str, wanted: list[str]) -> None:
    """A condition that holds for any row is none."""
    text = (
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k PATTERN (A C* B) "
        f"DEFINE A AS v = 1, B AS v = 2, C AS {condition})"
    )
    assert refused(load_query(text, "r.sql", EVENT)) == wanted


def test_within_settles() -> None:
    """WITHIN ends a loop that nothing else ends; it does not make an end for $."""
    within = "WITHIN INTERVAL '1' HOUR"
    assert refused(query("A X* B", within)) == []
    assert warned(query("A B*", within)) == []
    assert refused(query("A $", within)) == ["$"]


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        ("ts", []),
        ("v", ["v"]),
        ("ts DESC", ["ts"]),
        ("ts, v DESC", []),
        ("ts, tags", ["tags"]),
        ("TS", []),
    ],
)
def test_order(order: str, wanted: list[str]) -> None:
    """Rows come by event time; further columns, which have an order, order those of equal time."""
    assert refused(query("A B", order=order), ("ts",)) == wanted


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("A B", []),
        ("A B*", ["B*"]),
        ("A B+?", []),
        ("A B{2}", []),
        ("A B{2,3}", ["B{2,3}"]),
        ("A (B | C?)", ["C?"]),
        ("A B* C", []),
        ("A B+ C?", ["B+", "C?"]),
        ("A {- B* -} ()", ["B*"]),
        ("A PERMUTE(B, C?)", ["C?"]),
        ("A (B C*){2}", ["C*"]),
        ("^ A (B C*)+?", ["C*"]),
    ],
)
def test_open_tails(pattern: str, wanted: list[str]) -> None:
    """Matches that wait for the first row that does not belong to them."""
    assert warned(query(pattern)) == wanted


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("A B", ["A B"]),
        ("A{2}", ["A{2}"]),
        ("A B+ C", ["A B+ C"]),
        ("A X*? B", ["X*?"]),
        ("A", []),
        ("A | B", []),
        ("A B*", []),
        ("A X* B", []),
    ],
)
def test_attempts_that_wait(pattern: str, wanted: list[str]) -> None:
    """Without WITHIN a key that has no next row keeps its attempt, once said for each pattern."""

    def waiting(within: str = "") -> list[str]:
        asked = query(pattern, within)
        return places(asked, [w for w in stream_warnings(asked) if w.code is Code.NO_WINDOW])

    assert waiting() == wanted
    assert waiting("WITHIN INTERVAL '1' HOUR") == []


def test_later_rows() -> None:
    """NEXT in a measure waits."""
    assert warned(query("A B", measure="v + NEXT(LAST(A.v), 2)")) == ["A.v"]


def conditions(*defines: str, pattern: str = "A* B", within: str = "") -> Query:
    """A query of conditions."""
    clause = f"PARTITION BY k PATTERN ({pattern}) {within} DEFINE {', '.join(defines)}"
    return load_query(f"SELECT * FROM t MATCH_RECOGNIZE ({clause})", "r.sql", EVENT)


def test_later_rows_of_conditions() -> None:
    """NEXT in a condition holds back the row itself."""
    defines = "A AS v = 1", "B AS v > 1 AND (NEXT(v) > v OR PREV(v) = NEXT(B.v, 2))"
    assert warned(conditions(*defines)) == ["v", "B.v"]
    (first, _) = stream_warnings(conditions(*defines))
    assert first.message.endswith("the last match of a key may wait for ever")
    (first, _) = stream_warnings(conditions(*defines, within="WITHIN INTERVAL '1' HOUR"))
    assert first.message.endswith("when WITHIN ends before, the timeout lacks it")
    assert warned(conditions("A AS v = 1", "B AS PREV(v) > v")) == []


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("A.v < LAST(A.v)", ["A.v < LAST(A.v)"]),
        ("v - LAST(v) > 2 AND v > 1", ["v - LAST(v)"]),
        ("v <> PREV(v, 0)", ["v <> PREV(v, 0)"]),
        ("ABS(v) = ABS(LAST(A.v, 0)) OR k IS NULL", ["ABS(v) = ABS(LAST(A.v, 0))"]),
        ("LAST(A.v, 1) IS NULL OR v < LAST(A.v, 1)", []),
        ("v < PREV(v)", []),
        ("v < FIRST(A.v)", []),
        ("v * v > 4 AND v + v > 1", []),
        ("1 = 1", []),
    ],
)
def test_a_row_compared_with_itself(condition: str, wanted: list[str]) -> None:
    """LAST of the variable under test is the row under test."""
    assert warned(conditions(f"A AS {condition}", "B AS v = A.v")) == wanted


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ('side = "buy"', ['"buy"']),
        ('side IN (\'sell\', "buy") AND A.side <> "b"', ['"buy"', '"b"']),
        ('"side" = "buy"', []),
        ("side = `buy`", []),
        ("side = 'buy' AND \"Max\" > 3", []),
    ],
)
def test_texts_in_double_quotes(condition: str, wanted: list[str]) -> None:
    """Without the type of the events nobody knows that there is no such column."""
    clause = f"PARTITION BY k PATTERN (A) DEFINE A AS {condition}"
    for rows in ("t", f"(SELECT * FROM t WHERE {condition.replace('A.', 't.')})"):
        untyped = load_query(f"SELECT * FROM {rows} MATCH_RECOGNIZE ({clause})", "r.sql")
        assert warned(untyped) == wanted * (1 + (rows != "t"))
