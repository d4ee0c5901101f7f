"""A clock that is set back: what holds later events ends, and all else goes on in order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spark_cep.compiler.rule_set import DrainTime, compile_rule, plan_together
from spark_cep.compiler.steps.lowering import lower
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.model import Coordinates
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.tree import Rule, Within
from spark_cep.pipeline.match.watermark import BEGINNING
from tests.matcher.strategies import rules
from tests.pipeline.match.test_drain import (
    NEVER,
    PAIR,
    SQL_CLAUSES,
    SQL_TYPES,
    Stream,
    drain,
    found,
    in_sql,
    many_batches,
    of_sql,
    plan,
    record,
)
from tests.pipeline.match.test_key_group import Store, findings, property_of, without_payload
from tests.reference.local import LocalJob, Record

#: How far events with a wrong time are ahead; no window is as long.
AHEAD = 10_000


def results(outputs: Outputs) -> Any:
    """Matches and timeouts, whatever the order."""
    return without_payload(findings(outputs))[:2]


def wrong(store: Store, keys: str, names: str) -> list[Record]:
    """Events of these keys, all far ahead: some that the watermark will have passed, and one that
    waits."""
    times = [store.newest + AHEAD - 1, store.newest + AHEAD, store.newest + 2 * AHEAD]
    return [
        Record(
            Coordinates("s", 0, number),
            time,
            {"name": names[number % len(names)], "key": key, "price": number % 3, "ts": time},
            input="t",
            type="Event",
        )
        for number, (time, key) in enumerate((time, key) for time in times for key in keys)
    ]


@pytest.mark.slow
@property_of
@given(
    st.one_of(st.sampled_from([*map(in_sql, SQL_CLAUSES)]), rules("r")), many_batches(), st.data(),
    st.text("abc", min_size=1, max_size=5), st.sampled_from([1, 1 << 26]),
)  # fmt: skip
def test_equal_to_a_job_that_begins_there(
    rule: Rule, stream: Stream, data: st.DataObject, names: str, slice_bytes: int
) -> None:
    """Where nothing of before is left, be it that wrong events are in all of it, or that they have
    brought it to its end."""
    assume(rule.query is not None or rule.within.max_ms is not None)
    place = data.draw(st.integers(1, len(stream) - 1))
    compiled = plan_together([compile_rule(rule, SQL_TYPES)])
    store = Store(compiled, SQL_TYPES, slice_bytes=slice_bytes)
    before = LocalJob(compiled, SQL_TYPES)
    for records, watermark in stream[:place]:
        store.advance(records, watermark)
        before.advance(records, watermark)
    newest = store.newest
    to = max(each.time for records, _ in stream[:place] for each in records)
    ahead = wrong(store, "kl", names)
    store.advance(ahead, newest + AHEAD)
    before.advance(ahead, newest + AHEAD)
    after = LocalJob(compiled, SQL_TYPES, watermark=to)
    reset: int | None = to
    for records, watermark in stream[place:]:
        store.advance(records, max(watermark, to), reset)
        after.advance(records, max(watermark, to))
        assert store.live == store.held()
        reset = None
    before.outputs.add(after.outputs)
    assert results(store.outputs) == results(before.outputs)


@pytest.mark.slow
@property_of
@given(
    st.one_of(
        st.sampled_from([in_sql(SQL_CLAUSES[0]), in_sql(SQL_CLAUSES[2])]), rules("r", gaps=False)
    ),
    many_batches(), st.data(), st.sampled_from([1, 1 << 26]),
)  # fmt: skip
def test_equal_to_a_job_without_wrong_events(
    rule: Rule, stream: Stream, data: st.DataObject, slice_bytes: int
) -> None:
    """Where they are of other keys, and no deadline came by them."""
    assume(rule.within == Within())
    place = data.draw(st.integers(1, len(stream) - 1))
    compiled = plan_together([compile_rule(rule, SQL_TYPES)])
    store = Store(compiled, SQL_TYPES, slice_bytes=slice_bytes)
    job = LocalJob(compiled, SQL_TYPES)
    for records, watermark in stream[:place]:
        store.advance(records, watermark)
        job.advance(records, watermark)
    to = max(each.time for records, _ in stream[:place] for each in records)
    store.advance(wrong(store, "z", "a"), store.newest + AHEAD)
    job.advance([], to)
    reset: int | None = to
    for records, watermark in stream[place:]:
        store.advance(records, max(watermark, to), reset)
        job.advance(records, max(watermark, to))
        reset = None
    ours = [each for each in store.outputs.matches if each.key != "z"]
    store.outputs.matches = ours
    assert results(store.outputs) == results(job.outputs)


def test_what_ends_and_what_stays() -> None:
    """A partial match with a later event ends and is counted, once; one without stays, and takes
    events from the new time on. A later time than the watermark changes nothing."""
    store = Store(plan_together([plan(1)]))
    store.advance([record(0, 10, "a")], 20)
    store.advance([record(1, 5_000, "a")], 6_000, 7_000)
    assert (store.live, store.ended) == ({"r": 2}, {})
    store.advance([record(2, 25, "b")], 30, 20)
    assert store.ended == {("r", 1): 1}
    assert store.outputs.counts["r", "dropped"] == 1
    assert found(store) == [(1, [0, 2])]
    store.advance([record(3, 28, "b")], 40)
    assert (store.live, store.held(), store.ended) == ({"r": 0}, {"r": 0}, {})
    assert [late.at.offset for late in store.late] == [3]
    assert store.outputs.timeouts == []


def test_events_that_wait() -> None:
    """Those behind any time that the new clock can have seen become dead letters, those before it
    are applied when it is there, out of the same entry."""
    store = Store(plan_together([plan(1)]), disorder=10)
    ahead = [record(0, 25, "a"), record(1, 5_000, "b"), record(2, 26, "b"), record(3, 32, "a")]
    store.advance(ahead, 22)
    store.advance([], 20, 20)
    assert sorted(letter.at.offset for letter in store.outputs.dead_letters) == [1, 3]
    assert {letter.reason for letter in store.outputs.dead_letters} == {"event_time_out_of_bounds"}
    assert found(store) == []
    store.advance([], 40)
    assert found(store) == [(1, [0, 2])]


HELD_BACK = """
id: r
version: 1
key: key
after_match: skip_past_last_event
pattern:
  - {step: p, where: "name = 'a'"}
  - {step: q, after: followed_by, where: "name = 'b' AND price = LAST(p.price)"}
  - {step: s, after: followed_by, where: "name = 'c' AND price = LAST(p.price)"}
"""


def priced(offset: int, time: int, name: str, price: int) -> Record:
    """An event with another price."""
    return replace(record(offset, time, name), values={"name": name, "key": "k", "price": price})


def test_a_match_that_was_held_back() -> None:
    """It is released, where what held it back has taken a wrong event and ends."""
    store = Store(plan_together([lower(load_rules(HELD_BACK, "r.yaml")[0].rule)]))
    names = [(1, "a", 1), (2, "a", 2), (3, "b", 2), (4, "c", 2)]
    store.advance([priced(n, *each) for n, each in enumerate(names)], 5)
    store.advance([priced(4, 5_000, "b", 1)], 6_000)
    assert found(store) == []
    store.advance([], 10, 5)
    assert found(store) == [(1, [1, 2, 3])]
    assert (store.ended, store.live, store.held()) == ({("r", 1): 1}, {"r": 0}, {"r": 0})


def test_a_match_of_a_wrong_time_that_was_held_back() -> None:
    """It goes, and what held it back goes on."""
    store = Store(plan_together([lower(load_rules(HELD_BACK, "r.yaml")[0].rule)]))
    store.advance([priced(0, 1, "a", 1)], 5)
    ahead = [(5_000, "a", 2), (5_001, "b", 2), (5_002, "c", 2)]
    store.advance([priced(n, *each) for n, each in enumerate(ahead, 1)], 6_000)
    store.advance([priced(4, 7, "b", 1), priced(5, 8, "c", 1)], 10, 5)
    assert found(store) == [(1, [0, 4, 5])]
    assert store.live == store.held() == {"r": 0}


def test_a_cooldown() -> None:
    """That of a match in the future ends; that of one before goes on."""
    text = PAIR.format(1, "1 hour", "b") + "cooldown: 1 minute\n"
    rule = load_rules(text, "r.yaml")[0].rule
    for first, expected in (([], [2, 3]), ([record(0, 10, "a"), record(1, 11, "b")], [0, 1])):
        store = Store(plan_together([lower(rule)]))
        store.advance(first, 20)
        store.advance([record(8, 5_000, "a"), record(9, 5_001, "b")], 6_000)
        store.advance([record(2, 30, "a"), record(3, 31, "b")], 40, 20)
        taken = [offsets for _, offsets in found(store) if offsets != [8, 9]]
        assert taken == [expected]


def test_rules_begin_with_the_clock() -> None:
    """One that came behind a wrong event begins behind the newest event that the clock has now;
    a version that drains until then ends there."""
    store = Store(plan_together([plan(1)]))
    store.advance([record(0, 10, "a"), record(1, 5_000, "x")], 4_000)
    store.change(drain(plan(2, second="c"), plan(1)))
    store.advance([], 4_001)
    events = [record(2, 30, "a"), record(3, 31, "b"), record(4, 32, "c")]
    store.advance(events, 40, 20)
    assert found(store) == [(1, [0, 3]), (2, [2, 4])]


def test_a_version_that_begins_later() -> None:
    """Its time is its own, whatever the clock was."""
    one, two = plan(1), plan(2, second="c")
    later = plan_together([two], [(one, DrainTime(NEVER, 100))])
    store = Store(plan_together([one]))
    store.advance([record(0, 10, "a")], 20)
    store.change(later)
    store.advance([record(1, 30, "a")], 35)
    store.advance([record(2, 40, "b")], 50, 25)
    assert found(store) == [(1, [0, 2])]


def test_rows_of_sql() -> None:
    """A rule in SQL begins anew for a key with a later row, and goes on for others; its keys know
    of no later time."""
    clauses = "PATTERN (a b) WITHIN INTERVAL '1' HOUR DEFINE a AS name = 'a', b AS name = 'b'"
    compiled = plan_together([compile_rule(in_sql(clauses), SQL_TYPES)])
    store = Store(compiled, SQL_TYPES)
    other = record(0, 10, "a")
    first = of_sql(Record(other.at, 10, {**other.values, "key": "other"}, type="Event"))
    store.advance([first, of_sql(record(1, 5_000, "a"))], 6_000)
    rest = of_sql(record(3, 32, "b"))
    last = of_sql(Record(rest.at, 32, {**rest.values, "key": "other"}, type="Event"))
    store.advance([of_sql(record(2, 30, "b")), last], 40, 20)
    assert store.ended == {("r", 1): 1}
    assert found(store) == [(1, [0, 3])]
    assert store.live == store.held() == {"r": 0}


def test_windows_of_sql() -> None:
    """A key of which a rule in SQL remembers something, as the number of its matches, measures the
    window of its next attempt by the clock that is set back."""
    clauses = (
        "MEASURES MATCH_NUMBER() AS n PATTERN (a b) WITHIN INTERVAL '5' MILLISECONDS"
        " DEFINE a AS name = 'a', b AS name = 'b'"
    )
    store = Store(plan_together([compile_rule(in_sql(clauses), SQL_TYPES)]), SQL_TYPES)
    store.advance([of_sql(record(0, 10, "a")), of_sql(record(1, 11, "b"))], 6_000)
    store.advance([of_sql(record(2, 30, "a"))], 31, 20)
    store.advance([of_sql(record(3, 33, "b"))], 40)
    assert found(store) == [(1, [0, 1]), (1, [2, 3])]
    assert [match.measures["n"] for match in store.outputs.matches] == [1, 2]


def test_a_clock_without_time() -> None:
    """A job that has read nothing has nothing to set back."""
    store = Store(plan_together([plan(1)]))
    store.advance([], BEGINNING, 20)
    assert (store.ended, store.outputs.dead_letters) == ({}, [])
