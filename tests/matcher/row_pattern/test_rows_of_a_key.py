"""The rows of a key, and their order, as a statement picks them: WHERE, ORDER BY with further
columns; and the columns that SELECT computes. The batch runner decodes and matches as the job."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from spark_cep.compiler.plan_data import PLAN_DATA
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import compile_rules, plan_together
from spark_cep.matcher.findings.partial import END_OF_TIME
from spark_cep.model import Coordinates
from spark_cep.pattern.types import BIGINT, DOUBLE, STRING, RecordType
from spark_cep.pipeline.decode.relevance import relevance
from tests.reference.local import LocalJob, Record
from tests.runner.job import RunnerJob
from tests.sql_rules import result_rows, sql_rule

EVENT = RecordType({"k": STRING, "ts": BIGINT, "v": BIGINT, "s": STRING, "d": DOUBLE})
TYPES = RecordTypes((("t", "Event", EVENT),))


def _record(number: int, time: int, values: dict[str, Any]) -> Record:
    return Record(Coordinates("t", number % 2, number), time, {"ts": time, **values}, "t")


def _jobs(*statements: str) -> tuple[RunnerJob, LocalJob]:
    rules = [sql_rule(text, EVENT, rule_id=f"q{n}") for n, text in enumerate(statements)]
    plan = compile_rules(rules, TYPES)
    sent = plan_together(PLAN_DATA.tree_of(PLAN_DATA.bytes_of(each)) for each in plan.plans)
    return RunnerJob(sent, TYPES), LocalJob(plan, TYPES)


def _results(statement: str, batches: Sequence[tuple[Sequence[Record], int]]) -> list[Any]:
    """What a statement gives, whichever way it runs; its state is written and read in between."""
    found = []
    for job in _jobs(statement):
        for records, watermark in batches:
            job.advance(records, watermark)
            if isinstance(job, RunnerJob):
                job.reload()
        job.advance([], END_OF_TIME)
        assert not job.outputs.dead_letters
        found.append(sorted(result_rows(job), key=repr))
    assert found[0] == found[1]
    return found[0]


CLAUSES = [
    "MEASURES ARRAY_AGG(v) AS found PATTERN (A B+) DEFINE B AS v > PREV(v)",
    "MEASURES NEXT(v) AS found PATTERN (A B) DEFINE A AS v = 1, B AS s = 'x' OR v = 2",
    "MEASURES v AS found ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (^ A) DEFINE A AS v > 0",
]


@pytest.mark.parametrize("clause", CLAUSES)
def test_rows_that_where_rules_out_are_no_rows(clause: str) -> None:
    """A statement with WHERE gives what it gives without, of the rows that fulfil the condition:
    NULL does not."""
    source = Random(7)
    records = [
        _record(
            number,
            number // 2,
            {
                "k": source.choice("ab"),
                "v": source.choice([0, 1, 2, 3]),
                "s": source.choice(["x", "y", None]),
            },
        )
        for number in range(120)
    ]
    wanted = [each for each in records if each.values["s"] == "x" or each.values["v"] == 1]

    def cut(rows: Sequence[Record]) -> list[tuple[Sequence[Record], int]]:
        return [([r for r in rows if r.time // 20 == n], n * 20 + 12) for n in range(3)]

    every = f"SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts {clause})"
    some = every.replace("FROM t", "FROM (SELECT * FROM t WHERE s = 'x' OR t.v = 1)")
    found = _results(some, cut(records))
    assert found
    assert found == _results(every, cut(wanted))
    assert found != _results(every, cut(records))


def test_where_beside_rules_without() -> None:
    """Each rule of a key has its own rows; what no rule can use is dropped before the matcher."""
    clause = "MATCH_RECOGNIZE (PARTITION BY k MEASURES ARRAY_AGG(v) AS m PATTERN (A B) DEFINE A AS"
    job, _ = _jobs(
        f"SELECT m FROM t {clause} v = 1)",
        f"SELECT m FROM (SELECT * FROM t WHERE v <> 2) {clause} v = 1)",
        f"SELECT m FROM (SELECT * FROM t WHERE v = 1) {clause} v = 1)",
    )
    job.advance([_record(n, n, {"k": "a", "v": v}) for n, v in enumerate([1, 2, 3, 1])], 9)
    found = sorted((each.rule_id, each.measures["m"]) for each in job.outputs.matches)
    assert found == [("q0", [1, 2]), ("q1", [1, 3]), ("q2", [1, 1])]


@pytest.mark.parametrize(
    ("order", "column", "ordered"),
    [
        ("v", "v", [-3, 0, 7, None]),
        ("v DESC", "v", [7, 0, -3, None]),
        ("v NULLS FIRST", "v", [None, -3, 0, 7]),
        ("v DESC NULLS FIRST", "v", [None, 7, 0, -3]),
        ("s", "s", ["", "B", "a", "ä", None]),
        ("s DESC", "s", ["ä", "a", "B", "", None]),
        ("d", "d", [-1.5, 0.0, 2.0, float("inf"), None]),
        ("s, v", "v", [2, 1]),
    ],
)
def test_further_columns_order_equal_times(order: str, column: str, ordered: list[Any]) -> None:
    """However rows of one time come, they are in the order of the further columns of ORDER BY."""
    statement = (
        f"SELECT found FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts, {order} "
        f"MEASURES FINAL ARRAY_AGG(COALESCE(CAST({column} AS STRING), '-')) AS found "
        "PATTERN (A+) WITHIN INTERVAL '1' SECOND "
        "DEFINE A AS PREV(ts) IS NULL OR ts <= PREV(ts) + 1)"
    )

    def row(key: str, value: Any) -> dict[str, Any]:
        return {"k": key, **({"s": str(9 - value)} if order == "s, v" else {}), column: value}

    source = Random(3)
    answers = set()
    for _ in range(4):
        rows = [row(key, value) for key in "ab" for value in ordered]
        source.shuffle(rows)
        records = [_record(n, 10, row) for n, row in enumerate(rows)]
        records += [_record(50 + n, 11, row("a", ordered[n])) for n in (1, 0)]
        first, second = records[:3], records[3:]
        found = _results(statement, [(first, 9), (second, 10), ([], 12)])
        answers.add(str(found))
    shown = ["-" if value is None else _as_text(value) for value in ordered]
    assert answers == {str([("a", ([*shown, *shown[:2]],)), ("b", (shown,))])}


def _as_text(value: Any) -> str:
    return "Infinity" if value == float("inf") else str(value)


def test_order_of_the_fingerprint() -> None:
    """A plan with other rows, or rows in another order, or other results, is another one."""
    clause = "MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts{} MEASURES v AS m PATTERN (A) DEFINE A AS"
    texts = [
        f"SELECT m FROM t {clause.format('')} v = 1)",
        f"SELECT m FROM t {clause.format(', v')} v = 1)",
        f"SELECT m FROM t {clause.format(', v DESC')} v = 1)",
        f"SELECT m FROM (SELECT * FROM t WHERE v > 0) {clause.format('')} v = 1)",
        f"SELECT m + 1 AS m FROM t {clause.format('')} v = 1)",
    ]
    plans = [compile_rules([sql_rule(text, EVENT)], TYPES).plans[0] for text in texts]
    assert len({plan.fingerprint for plan in plans}) == len(texts)


def test_computed_columns() -> None:
    """SELECT computes of measures and columns, of each row of the result, also one that no match
    covers; what cannot be computed is NULL."""
    statement = (
        "SELECT k || '!' AS name, top - LEAST(v, 5) AS below, v / (v - 2) AS none, '1' AS one "
        "FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES FINAL MAX(v) AS top "
        "ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A B) DEFINE A AS v < 3, B AS v > 5)"
    )
    records = [_record(n, n, {"k": "a", "v": v}) for n, v in enumerate([2, 9, 4])]
    assert _results(statement, [(records, 9)]) == [
        ("a", ("a!", 4, 9 / 7, "1")),
        ("a", ("a!", 7, None, "1")),
        ("a", ("a!", None, 2.0, "1")),
    ]


def test_computed_of_one_row() -> None:
    """Of an empty match a computed column has the key's value, too."""
    statement = (
        "SELECT k || ':' || CAST(n AS STRING) AS text FROM t MATCH_RECOGNIZE (PARTITION BY k "
        "MEASURES COUNT(*) AS n PATTERN (A*) DEFINE A AS v = 1)"
    )
    records = [_record(n, n, {"k": "a", "v": v}) for n, v in enumerate([1, 1, 0])]
    assert _results(statement, [(records, 9)]) == [("a", ("a:0",)), ("a", ("a:2",))]


def test_a_column_that_cannot_be_computed() -> None:
    """It is NULL, with a dead letter that names it; the match goes out."""
    statement = (
        "SELECT k, v + 1 AS more FROM t MATCH_RECOGNIZE (PARTITION BY k ALL ROWS PER MATCH "
        "PATTERN (A) DEFINE A AS TRUE)"
    )
    job = LocalJob(compile_rules([sql_rule(statement)]))
    job.advance([_record(0, 1, {"k": "a", "v": "much"}), _record(1, 2, {"k": "a", "v": 2})], 9)
    assert result_rows(job) == [("a", ("a", None)), ("a", ("a", 3))]
    (letter,) = job.outputs.dead_letters
    assert (letter.reason, letter.detail.split(":")[0]) == ("measure_failed", "more")


def test_events_that_are_no_rows_are_dropped_where_they_are_decoded() -> None:
    """Neither the matcher gets them, nor the topic of late events."""
    statement = (
        "SELECT k FROM (SELECT * FROM t WHERE v > 1 OR s = 'x') MATCH_RECOGNIZE (PARTITION BY k "
        "PATTERN (A B) DEFINE A AS v = 1)"
    )
    (part,) = compile_rules([sql_rule(statement, EVENT)], TYPES).partitionings
    bits = {str(each.expression and each.expression.canonical): 1 << n
            for n, each in enumerate(part.conditions)}  # fmt: skip
    events = [bits["None"] | bits[condition] for condition in ("v = 1", "v > 1 OR s = 'x'")]
    found = relevance(part.rules, 1).of(np.array(events).reshape(-1, 1), 0)
    assert found.tolist() == [[False, False], [True, True]]
