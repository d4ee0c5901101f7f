"""A version that a newer one replaced, and that drains: it finishes what it began with events from
before the newer one begins, and nothing else is different."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.compiler.plan import Plan
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import AnyPlan, DrainTime, RuleSetPlan, compile_rule, plan_together
from spark_cep.compiler.steps.lowering import lower
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.steps.transitions import Outcome, Transitions
from spark_cep.model import Coordinates
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.tree import Contiguity, Rule, Step, Within
from spark_cep.pattern.types import BIGINT, INT, STRING, RecordType
from tests.matcher.runs import END_OF_TIME, TYPES
from tests.matcher.strategies import condition, rules
from tests.pipeline.match.test_key_group import (
    LEFT,
    Store,
    batches,
    findings,
    property_of,
    without_payload,
)
from tests.reference.job import ReferenceJob
from tests.reference.local import LocalJob, Record
from tests.sql_rules import sql_rule

#: Behind every event time.
NEVER = 1 << 61
_SHOWN = ("events", "tested")
Stream = list[tuple[list[Record], int]]

PAIR = """
id: r
version: {}
key: key
within: {}
pattern:
  - {{step: p, where: "name = 'a'"}}
  - {{step: q, after: followed_by, where: "name = '{}'"}}
"""


class _Closed(Transitions):
    """Nothing starts while ``closed`` is set."""

    closed = False

    def outcome(self, state: int, true: int) -> Outcome:
        found = super().outcome(state, true)
        if self.closed and state == self._plan.start:
            return Outcome((), takes=False, stops=False, unchanged=True)
        return found


def alone(plan: Plan, stream: Stream, first: int, begins: int, closed: int, limit: int) -> Outputs:
    """What the naive matcher finds of one version with the events of batches from ``first`` on,
    between the event times ``begins`` and ``limit``, of which those from the time ``closed`` on
    begin nothing."""
    job = ReferenceJob(plan_together([plan]), TYPES)
    job.advance([], stream[first - 1][1] if first else -11)
    late = {record.at for records, _ in stream for record in records if record.time >= closed}
    for matcher in job._matchers:
        for machine in matcher.machines:
            _close(machine, late)
    for records, watermark in stream[first:]:
        timely = [record for record in records if begins <= record.time <= limit]
        job.advance(timely, min(watermark, limit))
    return job.outputs


def _close(machine: object, late: set[Coordinates]) -> None:
    apply, transitions = machine.apply, _Closed(machine.plan)  # type: ignore[attr-defined]
    machine._transitions = transitions  # type: ignore[attr-defined]

    def applied(state: object, event: object, *rest: object) -> object:
        transitions.closed = event.at in late  # type: ignore[attr-defined]
        return apply(state, event, *rest)

    machine.apply = applied  # type: ignore[attr-defined]


@st.composite
def versions(draw: st.DrawFn) -> list[Rule]:
    """Two or three versions of a rule, which may have different keys."""
    keys = [(condition("key"),), (condition("key"), condition("name")), ()]
    return [
        replace(draw(rules("r")), version=number, key=draw(st.sampled_from(keys)))
        for number in range(1, draw(st.integers(2, 3)) + 1)
    ]


@property_of
@given(
    versions(), batches(), st.data(), st.sampled_from([0, 2, 5, NEVER]), st.booleans(),
    st.sampled_from([1, 1_500, 1 << 26]),
)  # fmt: skip
@pytest.mark.slow
def test_equal_to_each_version_alone(
    several: list[Rule],
    stream: Stream,
    data: st.DataObject,
    limit: int,
    removed: bool,
    slice_bytes: int,
) -> None:
    """Every version finds what it finds alone with its own events as starts, whatever is cut how,
    waits for the watermark or is taken out as soon as it has drained; so does another rule."""
    left = lower(LEFT)
    begins = sorted({0, *(data.draw(st.integers(0, len(stream) - 1)) for _ in several[1:])})
    plans = [lower(rule) for rule in several[: len(begins)]]
    store = Store(plan_together([left, plans[0]]), slice_bytes=slice_bytes)
    newest = []
    draining: list[Plan] = []
    for place, (records, watermark) in enumerate(stream):
        newest.append(store.newest)
        if place and place in begins:
            draining.append(plans[begins.index(place) - 1])
        if removed:
            draining = [each for each in draining if each.fingerprint not in store.drained]
        running = plans[sum(first <= place for first in begins) - 1]
        store.change(
            plan_together([left, running], [(each, DrainTime(limit)) for each in draining])
        )
        store.advance(records, watermark)
        for plan in draining:
            if plan.fingerprint in store.drained:
                assert store.live_versions["r", plan.rule.version] == 0
    expected = alone(left, stream, 0, -NEVER, NEVER, NEVER)
    for plan, first, end in zip(plans, begins, [*begins[1:], len(stream)], strict=True):
        own = newest[first] + 1 if first else -NEVER
        until = newest[end] + 1 if end < len(stream) else NEVER
        last = until - 1 + limit if end < len(stream) else NEVER
        expected.add(alone(plan, stream, first, own, until, last))
    for outputs in (store.outputs, expected):
        # A version that has been taken out is shown no events.
        outputs.counts = Counter(
            {what: n for what, n in outputs.counts.items() if what[1] not in _SHOWN}
        )
    assert without_payload(store.found) == without_payload(findings(expected))
    # Something may live for good, where a rule has no window.
    if draining and limit < NEVER:
        assert {each.fingerprint for each in draining} == set(store.drained)


# With effective_from, and in SQL.

SQL_EVENT = RecordType({"key": STRING, "name": STRING, "price": INT, "ts": BIGINT})
SQL_TYPES = RecordTypes((("t", "Event", SQL_EVENT),))
SQL_CLAUSES = [
    "MEASURES LAST(b.ts) AS b PATTERN (a b+ c) DEFINE a AS name = 'a', b AS name <> 'a'",
    "PATTERN (a b) WITHIN INTERVAL '5' MILLISECONDS DEFINE a AS name = 'a', b AS price > a.price",
    "MEASURES NEXT(b.price) AS n AFTER MATCH SKIP TO NEXT ROW PATTERN (a b) DEFINE b AS name = 'b'",
]


def in_sql(clauses: str, version: int = 1) -> Rule:
    """A rule in SQL."""
    statement = f"SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY key ORDER BY ts {clauses})"
    return replace(sql_rule(statement, SQL_EVENT, "r"), version=version)


def of_sql(each: Record) -> Record:
    """The event as a rule in SQL reads it."""
    return replace(each, input="t", values={**each.values, "ts": each.time})


@st.composite
def many_batches(draw: st.DrawFn) -> Stream:
    """Events of two keys, none late, in batches of a few."""
    drawn = draw(
        st.lists(
            st.tuples(st.sampled_from("kl"), st.sampled_from("aabbc"), st.integers(0, 3)),
            min_size=12,
            max_size=24,
        )
    )
    records = []
    for number, (key, name, ahead) in enumerate(drawn):
        one = of_sql(record(number, number // 2 + ahead, name))
        records.append(replace(one, values={**one.values, "key": key, "price": number % 3}))
    size = draw(st.integers(2, 7))
    # No event is more than three behind the newest one.
    batches = [records[n : n + size] for n in range(0, len(records), size)]
    ends = [max(r.time for r in records[: n + size]) - 4 for n in range(0, len(records), size)]
    return [*zip(batches, ends, strict=True), ([], END_OF_TIME)]


def with_starts(
    plan: AnyPlan, stream: Stream, first: int, begins: int, starts: set[Coordinates], limit: int
) -> Outputs:
    """What one version finds in this process with the events of batches from ``first`` on, between
    the event times ``begins`` and ``limit``, of which ``starts`` alone begin something."""
    job = LocalJob(plan_together([], [(plan, DrainTime(None))]), SQL_TYPES)
    (reader,), (part,) = job._readers, job.plan.partitionings
    read = reader.event
    reader.event = lambda record, outputs: (  # type: ignore[method-assign]
        (event := read(record, outputs))._replace(
            bits=event.bits | (record.at in starts) << part.early(0)
        )
    )
    job.advance([], stream[first - 1][1] if first else -11)
    for records, watermark in stream[first:]:
        timely = [each for each in records if begins <= each.time <= limit]
        job.advance(timely, min(watermark, limit))
    return job.outputs


_SIMPLE = Rule(
    "r", 1, (Step("p", None, condition("name = 'a'")), Step("q", Contiguity.FOLLOWED_BY)),
    key=(condition("key"),), within=Within(5),
)  # fmt: skip
_version = st.one_of(
    st.sampled_from([_SIMPLE, *map(in_sql, SQL_CLAUSES)]), rules("r", skips=False, gaps=False)
)


@pytest.mark.slow
@property_of
@given(
    _version, _version, many_batches(), st.data(), st.sampled_from([None, 1, 3, 5, 7, 0]),
    st.sampled_from([None, 0, 3, NEVER]), st.booleans(), st.sampled_from([1, 1 << 26]),
)  # fmt: skip
def test_every_event_has_one_version(
    old: Rule,
    new: Rule,
    stream: Stream,
    data: st.DataObject,
    later: int | None,
    limit: int | None,
    removed: bool,
    slice_bytes: int,
) -> None:
    """The old version has the events before the new one begins, which is behind all that were read
    before, and at its ``effective_from``, if that is still to come; the new one all others. Of
    steps or in SQL, drained or ended there, and however the stream is cut."""
    change = data.draw(st.integers(1, len(stream) - 1))
    begins = None if later is None else stream[change - 1][1] + later
    one = compile_rule(old, SQL_TYPES)
    two = compile_rule(replace(new, version=2, effective_from_ms=begins), SQL_TYPES)
    store = Store(plan_together([one]), SQL_TYPES, slice_bytes=slice_bytes)
    for records, watermark in stream[:change]:
        store.advance(records, watermark)
    future = begins is not None and begins > store.watermark
    newest = max(store.newest, begins - 1) if future and begins is not None else store.newest
    last = newest + (limit or 0) if future or limit is not None else store.watermark
    own = store.newest + 1
    for records, watermark in stream[change:]:
        gone = removed and one.fingerprint in store.drained
        drains = [] if gone else [(one, DrainTime(limit, begins))]
        store.change(plan_together([two], drains), SQL_TYPES)
        store.advance(records, watermark)
        if one.fingerprint in store.drained:
            assert store.live_versions.get(("r", 1), 0) == 0
    starts = {record.at for records, _ in stream for record in records if record.time <= newest}
    every = {record.at for records, _ in stream for record in records}
    expected = with_starts(one, stream, 0, -NEVER, starts, last)
    expected.add(with_starts(two, stream, change, own, every, NEVER))
    for outputs in (store.outputs, expected):
        outputs.counts = Counter(
            {what: n for what, n in outputs.counts.items() if what[1] not in _SHOWN}
        )
    assert without_payload(store.found) == without_payload(findings(expected))
    if limit is None or limit < NEVER:
        assert one.fingerprint in store.drained or removed


def test_a_match_waits_for_the_next_row() -> None:
    """A version in SQL has not drained while a match of it waits for what its measures read."""
    clauses = "MEASURES NEXT(b.price) AS n PATTERN (a b) DEFINE b AS name = 'b'"
    one, two = (compile_rule(in_sql(clauses, version), SQL_TYPES) for version in (1, 2))
    store = Store(plan_together([one]), SQL_TYPES)
    store.advance([of_sql(record(0, 10, "a")), of_sql(record(1, 11, "b"))], 20)
    store.change(plan_together([two], [(one, DrainTime(NEVER))]), SQL_TYPES)
    store.advance([], 21)
    assert (store.drained, store.live_versions["r", 1]) == ([], 1)
    assert store.held() == {"r": 1}
    store.advance([of_sql(record(2, 30, "c"))], 40)
    assert found(store) == [(1, [0, 1])]
    assert store.drained == [one.fingerprint]


def test_a_rule_in_sql_comes_again() -> None:
    """It starts empty, as a newer version does."""
    clauses = "MEASURES LAST(b.ts) AS b PATTERN (a b) DEFINE a AS name = 'a', b AS name = 'b'"
    one, two = (compile_rule(in_sql(clauses, version), SQL_TYPES) for version in (1, 2))
    for next_ones in ([[], [one]], [[two]]):
        store = Store(plan_together([one]), SQL_TYPES)
        store.advance([of_sql(record(0, 10, "a"))], 20)
        for each in next_ones:
            store.change(plan_together(each or [lower(LEFT)]), SQL_TYPES)
            store.advance([], store.watermark + 1)
        store.advance([of_sql(record(1, 30, "b")), of_sql(record(2, 31, "a"))], 31)
        store.advance([of_sql(record(3, 32, "b"))], 40)
        assert found(store) == [(next_ones[-1][0].rule.version, [2, 3])]


def plan(version: int, within: str = "1 hour", second: str = "b") -> Plan:
    """``a``, then ``second``."""
    ((loaded),) = load_rules(PAIR.format(version, within, second), "r.yaml")
    return lower(loaded.rule)


def record(offset: int, time: int, name: str) -> Record:
    """An event."""
    values = {"name": name, "key": "k", "price": 1}
    return Record(Coordinates("t", 0, offset), time, values, type="Event")


def drain(new: Plan, old: Plan, limit: int = NEVER) -> RuleSetPlan:
    """``new`` runs, ``old`` drains."""
    return plan_together([new], [(old, DrainTime(limit))])


def found(store: Store) -> list[tuple[int, list[int]]]:
    """Versions, and the offsets of the events that they took."""
    return sorted(
        (
            match.rule_version,
            [event.at.offset for _, taken in match.steps.items() for event in taken],
        )
        for match in store.outputs.matches
    )


def test_what_waits_may_still_begin() -> None:
    """An event that was read before, and waits for the watermark through more than one change of
    rules; the version has not drained before that."""
    one, two = plan(1), plan(2)
    store = Store(plan_together([one]))
    store.advance([record(0, 20, "a"), record(9, 12, "x")], 10)
    for other, watermark in ([], 15), ([lower(LEFT)], 16):
        # The first of both writes what still waits.
        store.change(plan_together([*other, two], [(one, DrainTime(NEVER))]))
        store.advance([], watermark)
        assert store.drained == []
    store.advance([record(1, 21, "a")], 25)
    assert (store.drained, store.live_versions["r", 1]) == ([], 1)
    store.advance([record(2, 30, "b")], 40)
    assert found(store) == [(1, [0, 2]), (2, [1, 2])]
    assert store.drained == [one.fingerprint]


@pytest.mark.parametrize("cuts", [[90], [30, 90], [29, 31, 90]])
def test_the_limit_is_event_time(cuts: list[int]) -> None:
    """What is at it counts, what is behind it does not, wherever batches are cut; what lived is
    reported once, and nothing comes of the version afterwards."""
    one, two = plan(1, "30 ms"), plan(2)
    store = Store(plan_together([one]))
    store.advance([record(0, 10, "a"), record(1, 15, "a")], 16)
    assert store.newest == 17
    store.change(drain(two, one, 13))
    events, gone = [record(2, 30, "b"), record(3, 31, "b")], []
    for watermark in cuts:
        store.advance(
            [each for each in events if store.watermark < each.time <= watermark], watermark
        )
        gone += store.gone
    store.advance([], 95)
    assert found(store) == [(1, [0, 2]), (1, [1, 2])]
    assert (gone, store.outputs.timeouts) == ([("r", 1, 0)], [])
    assert store.drained == [one.fingerprint]


def test_what_the_limit_ends() -> None:
    """Partial matches go without timeouts, counted, also those of events that wait."""
    one, two = plan(1, "30 ms"), plan(2)
    store = Store(plan_together([one]))
    store.advance([record(0, 10, "a")], 12)
    store.change(drain(two, one, 7))
    store.advance([record(1, 21, "b")], 20)
    assert (store.gone, store.live_versions["r", 1]) == ([("r", 1, 1)], 0)
    store.advance([record(2, 50, "b")], 60)
    assert (store.outputs.matches, store.outputs.timeouts, store.gone) == ([], [], [])


def test_back_to_the_version_that_drains() -> None:
    """It goes on with what it has; what waits may begin matches of it again, and those of the newer
    version end."""
    one, two = plan(1), plan(2)
    store = Store(plan_together([one]))
    store.advance([record(0, 10, "a")], 12)
    store.change(drain(two, one))
    store.advance([record(1, 15, "a"), record(2, 30, "a")], 20)
    assert store.live_versions == {("r", 1): 1, ("r", 2): 1}
    store.change(plan_together([one]))
    store.advance([record(3, 40, "b")], 50)
    assert store.gone == [("r", 2, 1)]
    assert found(store) == [(1, [0, 3]), (1, [2, 3])]


def test_counts_of_versions_are_added() -> None:
    """Both have results in one batch."""
    one, two = plan(1), plan(2)
    store = Store(plan_together([one]))
    store.advance([record(0, 10, "a")], 12)
    store.change(drain(two, one))
    store.advance([record(1, 15, "a"), record(2, 20, "b")], 30)
    assert store.outputs.counts["r", "matched"] == 2


@pytest.mark.parametrize("limit", [None, 500], ids=["restart", "drain"])
@pytest.mark.parametrize("kind", ["steps", "sql"])
def test_a_version_that_begins_later(kind: str, limit: int | None) -> None:
    """Up to there the old one goes on as before, with what waits, too; then it ends, or goes on
    with what it has begun. What the new one would not read is nobody else's."""
    clauses = "MEASURES LAST(b.ts) AS b PATTERN (a b) DEFINE a AS name = 'a', b AS name = 'b'"
    old, new = (plan(n).rule if kind == "steps" else in_sql(clauses, n) for n in (1, 2))
    one = compile_rule(old, SQL_TYPES)
    two = compile_rule(replace(new, effective_from_ms=1_000), SQL_TYPES)
    store = Store(plan_together([one]), SQL_TYPES)

    def batch(watermark: int, *events: tuple[int, int, str]) -> None:
        store.advance([of_sql(record(*event)) for event in events], watermark)

    batch(22, (0, 10, "a"), (1, 20, "b"), (2, 21, "a"))
    store.change(plan_together([two], [(one, DrainTime(limit, 1_000))]), SQL_TYPES)
    # The first match was begun before the change, the next one after it. Another one waits.
    batch(300, (3, 100, "b"), (4, 150, "a"), (5, 200, "b"), (6, 400, "a"), (7, 1_010, "x"))
    assert store.drained == []
    assert found(store) == [(1, [0, 1]), (1, [2, 3]), (1, [4, 5])]
    batch(990, (8, 450, "b"), (9, 995, "a"), (10, 1_100, "b"), (11, 1_150, "a"))
    assert (store.live_versions["r", 1], store.gone) == (0, [])
    batch(1_120)
    batch(1_300, (12, 1_200, "b"))
    batch(1_600)
    late = [(1, [9, 10])] if limit and kind == "steps" else []
    expected = [(1, [0, 1]), (1, [2, 3]), (1, [4, 5]), (1, [6, 8]), *late, (2, [11, 12])]
    assert found(store) == expected
    assert store.drained == [one.fingerprint]
    assert store.outputs.timeouts == []


@pytest.mark.parametrize(
    ("change", "time", "expected"),
    [
        # The third version begins sooner than the second.
        (300, DrainTime(None, 500), [(1, [0, 1]), (3, [4, 5]), (3, [6, 7])]),
        # It begins at once: the first ends, or drains.
        (300, DrainTime(None), [(3, [3, 5]), (3, [4, 5]), (3, [6, 7])]),
        (300, DrainTime(NEVER), [(1, [0, 1]), (3, [3, 5]), (3, [4, 5]), (3, [6, 7])]),
        # The second has begun: the first finishes what that lets it finish.
        (900, DrainTime(None), [(1, [0, 1]), (1, [3, 5]), (1, [4, 5]), (1, [6, 7])]),
    ],
)
def test_a_third_version_comes_before_the_second_begins(
    change: int, time: DrainTime, expected: list[tuple[int, list[int]]]
) -> None:
    """What the key group knows of the second decides what becomes of the first."""
    one = plan(1)
    two, three = (
        lower(replace(plan(number).rule, effective_from_ms=begins))
        for number, begins in ((2, 800), (3, time.until_ms))
    )
    store = Store(plan_together([one]))
    store.advance([record(0, 90, "a")], 100)
    events = [(1, 400, "b"), (2, 450, "b"), (3, 460, "a"), (4, 600, "a"), (5, 700, "b")]
    events += [(6, 790, "a"), (7, 950, "b")]
    for watermark in (200, 300, 900, 1_000):
        if store.watermark >= change:
            store.change(plan_together([three], [(one, time)]))
        else:
            store.change(plan_together([two], [(one, DrainTime(500, 800))]))
        read = [record(*each) for each in events if store.watermark < each[1] <= watermark]
        store.advance(read, watermark)
    assert found(store) == expected
