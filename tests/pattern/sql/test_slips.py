"""Slips, and words of other dialects: each is one problem with its cause and what to write."""

from __future__ import annotations

import pytest

from spark_cep.errors import RuleSetError
from spark_cep.pattern.sql import load_query
from spark_cep.pattern.types import BIGINT, STRING, RecordType

EVENT = RecordType({"k": STRING, "ts": BIGINT, "v": BIGINT, "Side": STRING})
_SIDE_BY_SIDE = "variables that follow each other stand side by side in PATTERN"
_CASES = [
    # A part that is written otherwise: what is written, what is underlined, the cause, the remedy.
    ("MEASURE v AS m PATTERN (A)", "MEASURE", "MEASURE is written MEASURES", "MEASURES expression"),
    ("MEASURE FIRST(A.v) AS m, v AS n ONE ROW PER MATCH PATTERN (A)", "MEASURE",
     "MEASURE is written MEASURES", "MEASURES expression AS name"),
    ("PATTERN (A, B+)", ",", _SIDE_BY_SIDE, "A B; PERMUTE(A, B) for any order"),
    ("PATTERN ((A | B) PERMUTE(A, B), B)", ",", _SIDE_BY_SIDE, "A B; PERMUTE(A, B)"),
    ("PATTERN (A -> B)", "->", _SIDE_BY_SIDE, "A B;"),
    ("MEASURES v AS m ONE ROW PER MATCH SHOW TIMEOUT MATCHES PATTERN (A)", "SHOW TIMEOUT MATCHES",
     "SHOW TIMEOUT MATCHES is not needed", "timeouts go to the topic of timeouts"),
    ("ALL ROWS PER MATCH show timeout PATTERN (A)", "show timeout", "SHOW TIMEOUT is not needed",
     "ALL ROWS PER MATCH"),
    ("ONE ROW PER MATCH WITH TIMEOUT ROWS PATTERN (A)", "WITH TIMEOUT ROWS",
     "WITH TIMEOUT ROWS is not needed", "topic of timeouts"),
    ("MEASURES v AS m, PATTERN (A)", ",", "nothing follows the comma", "no comma"),
    ("PATTERN (A) WITHIN INTERVAL '1:30' HOUR TO MINUTE", "INTERVAL '1:30' HOUR TO MINUTE",
     "'TO MINUTE' is not expected here", "a number for each unit: INTERVAL 1 HOUR 30 MINUTES"),
    ("MEASURES v + 1 ONE ROW PER MATCH PATTERN (A)", "ONE", "the measure before ONE has no name",
     "MEASURES expression AS name"),
    ("MEASURES v, ts AS t PATTERN (A)", ",", "the measure before , has no name",
     "MEASURES expression AS name"),
    ("PATTERN (A (B | C)+ WITHIN INTERVAL '1' MINUTE", "(",
     "the parenthesis of PATTERN is not closed", ") behind the last variable"),
    ("PATTERN (A", "(", "the parenthesis of PATTERN is not closed", ") behind the last"),
    # Measures.
    ("MEASURES CLASSIFIER AS m PATTERN (A)", "CLASSIFIER", "CLASSIFIER is a function",
     "CLASSIFIER(); a column of that name is quoted"),
    ("MEASURES match_number AS m PATTERN (A)", "match_number", "match_number is a function",
     "match_number()"),
    ("MEASURES ARRAY['x'] AS m PATTERN (A)", "ARRAY['x']", "ARRAY is a function",
     "ARRAY('a', 'b')"),
    ("MEASURES ARRAY['x', 'y'] AS m PATTERN (A)", "ARRAY['x', 'y']", "ARRAY is a function",
     "x IN ('a', 'b')"),
    ("MEASURES STRING_AGG(Side, ',') AS m PATTERN (A)", "STRING_AGG(Side, ',')",
     "the function STRING_AGG is not allowed", "in SQL ARRAY_AGG(A.column)"),
    ("MEASURES LISTAGG(Side, ',') AS m PATTERN (A)", "LISTAGG(Side, ',')",
     "the function LISTAGG is not allowed", "in SQL ARRAY_AGG(A.column)"),
    ("MEASURES LISTAGG(Side, ',') WITHIN GROUP (ORDER BY ts) AS m PATTERN (A)",
     "LISTAGG(Side, ',') WITHIN GROUP", "the function LISTAGG is not allowed", "ARRAY_AGG"),
    ("MEASURES MATCH_ROWTIME() AS m PATTERN (A)", "MATCH_ROWTIME()",
     "the function MATCH_ROWTIME is not allowed", "the column that ORDER BY names"),
    ("MEASURES COUNT(*) FILTER (WHERE v > 1) AS m PATTERN (A)", "FILTER",
     "'FILTER' is not expected here", "COUNT_IF(condition)"),
    ("MEASURES ARRAY_AGG(v ORDER BY v) AS m PATTERN (A)", "ORDER", "'ORDER' is not expected here",
     "in the order of their rows"),
    ("MEASURES count() AS m PATTERN (A)", "count()", "COUNT takes 1 argument, not 0",
     "COUNT(*) counts all rows, COUNT(A.*) those of A"),
]  # fmt: skip


def _problems(text: str, event: RecordType | None) -> list[tuple[str, str, str | None]]:
    with pytest.raises(RuleSetError) as caught:
        load_query(text, "r.sql", event)
    return [
        (text[p.span.column - 1 :][: p.span.length], p.message, p.allowed)
        for p in caught.value.problems
        if p.span is not None
    ]


@pytest.mark.parametrize("event", [EVENT, None])
@pytest.mark.parametrize(("clause", "place", "message", "allowed"), _CASES)
def test_slips(
    clause: str, place: str, message: str, allowed: str, event: RecordType | None
) -> None:
    """One slip, one problem, which underlines it, with and without the type of the events."""
    text = (
        f"SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts {clause} DEFINE A AS v = 1)"
    )
    ((found, cause, remedy),) = _problems(text, event)
    assert found == place
    assert cause.startswith(message)
    assert remedy is not None
    assert allowed in remedy


@pytest.mark.parametrize(
    ("condition", "place", "allowed"),
    [
        ('Side = "buy"', '"buy"', "a text in single quotes: 'buy'"),
        ("CLASSIFIER = 'A'", "CLASSIFIER", "CLASSIFIER()"),
        ("Side = ‘buy’ AND v = 1", "‘buy’", "straight quotes: 'buy'"),
        ("Side IN (“buy”)", "“buy”", "straight quotes: 'buy'"),
        ("Side = ‘buy, AS sell’", "‘buy, AS sell’", "straight quotes: 'buy, AS sell'"),
        ("Side = ANY(ARRAY['x'])", "ARRAY['x']", "ARRAY('a', 'b'); or x IN ('a', 'b')"),
        ("ts > PREV(ts) + INTERVAL '1:30' HOUR TO MINUTE", "INTERVAL '1:30' HOUR TO MINUTE",
         "INTERVAL 1 HOUR 30 MINUTES"),
    ],
)  # fmt: skip
def test_slips_in_conditions(condition: str, place: str, allowed: str) -> None:
    """The same in DEFINE."""
    text = f"SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k PATTERN (A) DEFINE A AS {condition})"
    ((found, _, remedy),) = _problems(text, EVENT)
    assert found == place
    assert remedy is not None
    assert allowed in remedy


def test_words_as_columns() -> None:
    """Columns that are named so can be read: quoted, behind a variable, or where they are known."""
    clause = "PARTITION BY k MEASURES measure AS m, A.classifier AS n, `ARRAY`[0] AS o PATTERN (A)"
    load_query(f"SELECT * FROM t MATCH_RECOGNIZE ({clause} DEFINE A AS `classifier` = 1)", "r.sql")
    event = RecordType({"k": STRING, "classifier": BIGINT})
    text = "SELECT k FROM t MATCH_RECOGNIZE (PARTITION BY k PATTERN (A) DEFINE A AS classifier = 1)"
    load_query(text, "r.sql", event)


def test_a_wrong_measure_is_one_problem() -> None:
    """A measure that cannot be read is no missing column of SELECT, also where that computes."""
    text = (
        "SELECT k, bad, bad + good AS sum, nothing FROM t MATCH_RECOGNIZE (PARTITION BY k "
        "MEASURES FOO(v) AS bad, v AS good PATTERN (A) DEFINE A AS v = 1)"
    )
    assert [place for place, _, _ in _problems(text, EVENT)] == ["nothing", "FOO(v)"]
