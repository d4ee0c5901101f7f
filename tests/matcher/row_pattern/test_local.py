"""A query over records: what arrives when, and in how many parts, changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from service.compiler.row_pattern import RowPatternPlan, plan_query
from service.matcher.local import Record
from service.matcher.row_pattern import MatchFound, TimedOut
from service.matcher.row_pattern.local import LocalRowPattern
from service.matcher.row_pattern.results import rows_of
from service.model import Coordinates
from service.pattern.sql import load_query
from service.pattern.types import BIGINT, STRING, RecordType

EVENT = RecordType({"k": STRING, "ts": BIGINT, "v": BIGINT, "place": RecordType({"city": STRING})})
DISORDER = 3


def _plan(clause: str, key: str = "k") -> RowPatternPlan:
    text = f"SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY {key} ORDER BY ts {clause})"
    return plan_query(load_query(text, "l.sql", EVENT))


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
    return Record(Coordinates("t", offset % 2, offset), time, values)


records = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["x", "y", None]), st.integers(0, 2)), max_size=12
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(CLAUSES), records, st.data())
def test_cuts_and_disorder(
    clause: str, drawn: Sequence[tuple[int, str | None, int]], data: st.DataObject
) -> None:
    """Batches of any size, with a restart behind each, in an order within the allowed disorder."""
    plan = _plan(clause)
    now, ordered = 0, []
    for offset, (gap, key, value) in enumerate(drawn):
        now += gap
        ordered.append(_record(offset, now, key, value))
    whole = LocalRowPattern(plan)
    whole.advance(ordered, now)
    cut = LocalRowPattern(plan)
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
    assert cut.results == whole.results
    cut.close()
    whole.close()
    assert cut.results == whole.results


def test_late_records() -> None:
    """A record at or before the watermark is late, and changes nothing."""
    job = LocalRowPattern(_plan("MEASURES v AS m PATTERN (A B) DEFINE A AS v = 0, B AS v = 1"))
    job.advance([_record(0, 10, "x", 0)], 20)
    job.advance([_record(1, 20, "x", 5), _record(2, 21, "x", 1)], 30)
    assert [(each.at.offset, each.watermark) for each in job.late] == [(1, 20)]
    assert rows_of(job.plan, job.results["x",]) == [("x", 1)]


def test_nested_columns() -> None:
    """A field of a record can be the key, and is NULL where the record is."""
    clause = "MEASURES place.city AS c PATTERN (A) DEFINE A AS place.city IS NOT NULL"
    job = LocalRowPattern(_plan(clause, key="place.city"))
    job.advance([_record(0, 1, "x", 0)], 1)
    job.advance([Record(Coordinates("t", 0, 1), 2, {"place": None})], 2)
    assert {key: len(found) for key, found in job.results.items()} == {("x",): 1}
    assert rows_of(job.plan, job.results["x",]) == [("x", "x")]


def test_within_to_the_microsecond() -> None:
    """A row at start + WITHIN is outside; one a microsecond before it is inside."""
    clause = "MEASURES v AS m PATTERN (A B) WITHIN INTERVAL '5' MILLISECONDS DEFINE B AS v = 1"
    kinds = []
    for micros in (299, 300):
        job = LocalRowPattern(_plan(clause))
        start, end = _record(0, 10, "x", 0), _record(1, 15, "x", 1)
        start = Record(start.at, start.time, start.values, micros=300)
        job.advance([start, Record(end.at, end.time, end.values, micros=micros)], 15)
        kinds.append([type(each) for each in job.results["x",]])
    assert kinds == [[MatchFound], [TimedOut]]
