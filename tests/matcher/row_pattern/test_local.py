"""A query over records: what arrives when, and in how many parts, changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.matcher.findings.partial import END_OF_TIME
from spark_cep.model import Coordinates, Match, MatchRow, Timeout
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.types import BIGINT, STRING, RecordType
from tests.reference.local import LocalJob, Record
from tests.sql_rules import job_of, result_rows, sql_rule

EVENT = RecordType({"k": STRING, "ts": BIGINT, "v": BIGINT, "place": RecordType({"city": STRING})})
DISORDER = 3


def _job(*clauses: str, key: str = "k") -> LocalJob:
    return job_of(
        [
            sql_rule(
                f"SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY {key} ORDER BY ts {clause})",
                rule_id=f"q{number}",
            )
            for number, clause in enumerate(clauses)
        ],
        EVENT,
    )


CLAUSES = [
    "MEASURES ARRAY_AGG(v) AS v PATTERN (A B+) DEFINE B AS v > PREV(v)",
    (
        "MEASURES v AS m ALL ROWS PER MATCH WITH UNMATCHED ROWS AFTER MATCH SKIP TO NEXT ROW "
        "PATTERN (A B? C) WITHIN INTERVAL '5' MILLISECONDS "
        "DEFINE A AS v = 0, B AS v = 1, C AS v = 2"
    ),
    "MEASURES COUNT(*) AS n, NEXT(v) AS m PATTERN (A+ B?) DEFINE A AS NEXT(v) >= v",
]


def _record(offset: int, time: int, key: str | None, value: int) -> Record:
    values = {"k": key, "ts": time, "v": value, "place": {"city": key}}
    return Record(Coordinates("t", offset % 2, offset), time, values, "t")


records = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["x", "y", "z"]), st.integers(0, 2)), max_size=12
)


@pytest.mark.slow
@settings(max_examples=100)
@given(records, st.data())
def test_cuts_and_disorder(drawn: Sequence[tuple[int, str, int]], data: st.DataObject) -> None:
    """Batches of any size, with a restart behind each, in an order within the allowed disorder."""
    now, ordered = 0, []
    for offset, (gap, key, value) in enumerate(drawn):
        now += gap
        ordered.append(_record(offset, now, key, value))
    whole = _job(*CLAUSES)
    whole.advance(ordered, now)
    cut = _job(*CLAUSES)
    delays = data.draw(
        st.lists(st.integers(0, DISORDER), min_size=len(ordered), max_size=len(ordered))
    )
    arriving = [
        record
        for _, _, record in sorted(
            (record.time + delay, place, record)
            for place, (record, delay) in enumerate(zip(ordered, delays, strict=True))
        )
    ]
    newest = 0
    while arriving:
        count = data.draw(st.integers(1, len(arriving)))
        newest = max([newest, *(record.time for record in arriving[:count])])
        cut.advance(arriving[:count], newest - DISORDER - 1)
        cut.reload()
        del arriving[:count]
    cut.advance([], now)
    assert not cut.late
    assert _found(cut) == _found(whole)
    cut.advance([], END_OF_TIME)
    whole.advance([], END_OF_TIME)
    assert _found(cut) == _found(whole)


@pytest.mark.slow
@settings(max_examples=60)
@given(records, st.integers(0, 20), st.integers(1, 4))
def test_effective_from(
    drawn: Sequence[tuple[int, str, int]], begins: int, in_a_batch: int
) -> None:
    """Events before it are as if they were not in the table, however the stream is cut."""
    now, ordered = 0, []
    for offset, (gap, key, value) in enumerate(drawn):
        now += gap
        ordered.append(_record(offset, now, key, value))
    without = _job(*CLAUSES)
    without.advance([each for each in ordered if each.time >= begins], END_OF_TIME)
    rules = [replace(plan.rule, effective_from_ms=begins) for plan in without.plan.plans]
    job = job_of(rules, EVENT)
    while ordered:
        batch, ordered = ordered[:in_a_batch], ordered[in_a_batch:]
        job.advance(batch, batch[-1].time - 1)
        job.reload()
    job.advance([], END_OF_TIME)
    assert not job.late
    assert _found(job) == _found(without)


Result = Match | MatchRow | Timeout


def _found(job: LocalJob) -> dict[tuple[str, str | None], list[Result]]:
    """What was found of each rule and key, in its order."""
    found: dict[tuple[str, str | None], list[Result]] = {}
    outputs = job.outputs
    results: list[Result] = [*outputs.matches, *outputs.rows, *outputs.timeouts]
    for each in results:
        found.setdefault((each.rule_id, each.key), []).append(each)
    return found


def test_late_records() -> None:
    """A record at or before the watermark is late, and changes nothing."""
    job = _job("MEASURES v AS m PATTERN (A B) DEFINE A AS v = 0, B AS v = 1")
    job.advance([_record(0, 10, "x", 0)], 20)
    job.advance([_record(1, 20, "x", 5), _record(2, 21, "x", 1)], 30)
    assert [(each.at.offset, each.watermark) for each in job.late] == [(1, 20)]
    assert result_rows(job) == [("x", ("x", 1))]


def test_nested_columns() -> None:
    """A field of a record can be the key, and is NULL where the record is, which is a key too."""
    clause = "MEASURES place.city AS c PATTERN (A) DEFINE A AS TRUE"
    job = _job(clause, key="place.city")
    job.advance([_record(0, 1, "x", 0)], 1)
    job.advance([Record(Coordinates("t", 0, 1), 2, {"place": None}, "t")], 2)
    assert result_rows(job) == [("x", ("x", "x")), (None, (None, None))]
    assert job.outputs.dead_letters == []


def test_null_is_a_key() -> None:
    """NULL is equal to NULL and to nothing else, in each part of a key: neither to the empty text
    nor to its name."""
    clause = "MEASURES v AS m, COUNT(*) AS n PATTERN (A+ B) DEFINE A AS v = 0, B AS v = 1"
    keys = [
        (one, other) for one in (None, "", "null", "[null]") for other in (None, "", "null", "x")
    ]
    for key in ("k", "k, place.city"):
        job = _job(clause, key=key)
        for value in (0, 0, 1):
            records: list[Record] = []
            for one, other in keys:
                at = Coordinates("t", 0, job.watermark + len(records))
                row = {"k": one, "v": value, "place": {"city": other}}
                records.append(Record(at, max(0, job.watermark + 1), row, "t"))
            job.advance(records, records[0].time)
            job.reload()
        found = {values[:-2]: values[-1] for _, values in result_rows(job)}
        wanted = {(one,) if key == "k" else (one, other) for one, other in keys}
        assert found == dict.fromkeys(wanted, 9 if key == "k" else 3)
        assert len({each.match_id for each in job.outputs.matches}) == len(wanted)


def test_beside_rules_of_steps() -> None:
    """Where a rule of steps has the same key, an event without it is a dead letter of that rule,
    which does not see it, also after a restart; the rule in SQL does."""
    pair = [sql_rule(
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES B.v AS m "
        "PATTERN (A B) DEFINE A AS v = 0, B AS v = 1)"
    )]  # fmt: skip
    steps = """{id: s, key: k, events: t, pattern: [
      {step: a, where: v = 0}, {step: b, after: next, where: v = 1}]}"""
    pair += [loaded.rule for loaded in load_rules(steps, "rules")]
    job = job_of(pair, EVENT)
    for offset, (key, value) in enumerate([(None, 0), ("x", 0), (None, 1), ("x", 1)]):
        job.advance([_record(offset, offset + 5, key, value)], offset)
        job.reload()
    job.advance([], 20)
    assert sorted((m.rule_id, m.key or "") for m in job.outputs.matches) == [
        ("q", ""), ("q", "x"), ("s", "x"),
    ]  # fmt: skip
    assert [(each.at.offset, each.reason) for each in job.outputs.dead_letters] == [
        (0, "missing_key"), (2, "missing_key"),
    ]  # fmt: skip


def test_within_to_the_microsecond() -> None:
    """A row at start + WITHIN is outside; one a microsecond before it is inside."""
    clause = "MEASURES v AS m PATTERN (A B) WITHIN INTERVAL '5' MILLISECONDS DEFINE B AS v = 1"
    found = []
    for micros in (299, 300):
        job = _job(clause)
        start, end = _record(0, 10, "x", 0), _record(1, 15, "x", 1)
        start = replace(start, micros=300)
        job.advance([start, replace(end, micros=micros)], 15)
        found.append((len(job.outputs.matches), len(job.outputs.timeouts)))
    assert found == [(1, 0), (0, 1)]


def test_why_a_skip_failed() -> None:
    """The dead letter says it in words, and by the name that it has elsewhere."""
    job = _job("AFTER MATCH SKIP TO A PATTERN (A) DEFINE A AS v = 1")
    job.advance([_record(0, 1, "x", 1)], 1)
    (letter,) = job.outputs.dead_letters
    assert letter.detail == (
        "AFTER MATCH SKIP failed: the row to skip to is the match's first, where it would be found "
        "again (SKIP_TO_MATCH_START); match 1 of the key"
    )


@pytest.mark.parametrize(
    ("clause", "matches", "timeouts"),
    [
        ("MEASURES v AS m PATTERN (A B) {} DEFINE A AS v = 1 AND NEXT(v) = 2", [], [{}]),
        (
            "MEASURES v AS m PATTERN (A B) {} DEFINE A AS v = 1, B AS NEXT(v) = 3",
            [],
            [{"A": 1}, {"A": 1}],
        ),
        ("MEASURES NEXT(v) AS m PATTERN (A A) {} DEFINE A AS v = 1", [], []),
        ("MEASURES v AS m PATTERN (A A) {} DEFINE A AS v = 1", [1], []),
    ],
)
def test_next_at_the_end_of_within(
    clause: str, matches: list[int], timeouts: list[dict[str, int]]
) -> None:
    """A row that NEXT leaves undecided is not in the timeout; a measure waits beyond WITHIN."""
    job = _job(clause.format("WITHIN INTERVAL '5' MILLISECONDS"))
    job.advance([_record(0, 1, "x", 1), _record(1, 2, "x", 1)], 100)
    assert [each.measures["m"] for each in job.outputs.matches] == matches
    found = [{v: len(rows) for v, rows in each.steps.items()} for each in job.outputs.timeouts]
    assert found == timeouts
