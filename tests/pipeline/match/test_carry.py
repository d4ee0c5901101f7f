"""A version whose partial matches move to a newer one: they go on as that one says."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spark_cep.compiler.carrying import NOWHERE, same_states
from spark_cep.compiler.formula import TRUE
from spark_cep.compiler.plan import Plan, StateKind
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import plan_together
from spark_cep.compiler.steps.lowering import lower
from spark_cep.matcher.batch.events import Names
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import Partial, Taken
from spark_cep.matcher.keys import KeysMatcher, KeysState, rule_states
from spark_cep.model import Coordinates, Event
from spark_cep.pattern.document.canonical import to_yaml
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.expressions import parse
from spark_cep.pattern.tree import Contiguity, Rule, Step, walk
from spark_cep.pattern.types import INT, STRING, RecordType
from spark_cep.pipeline.state.carried import Carry, moved
from tests.matcher.strategies import rules
from tests.matcher.texts import texts_in
from tests.pipeline.match.test_key_group import LEFT, Store, batches, property_of
from tests.reference.job import ReferenceJob
from tests.reference.local import EventReader, Record

Stream = list[tuple[list[Record], int]]
#: ``last``: 1 where the event meets the last condition of the version that it belongs to.
COLUMNS = {"key": STRING, "name": STRING, "price": INT, "last": INT}
TYPES = RecordTypes((("", "Event", RecordType(COLUMNS)),))
#: Last conditions of the versions, and what they say.
LAST = {
    "price + 1 > 2": lambda price: price > 1,
    "price + 2 < 5": lambda price: price < 3,
    "price + 3 = 5": lambda price: price == 2,
}


def ends_with(rule: Rule, how: Contiguity, where: str, version: int) -> Plan:
    """The rule with one more step."""
    names = frozenset(step.name for step in rule.pattern)
    last = Step("last", how, parse(where, steps=names))
    return lower(replace(rule, pattern=(*rule.pattern, last), version=version))


def all_move(old: Plan, new: Plan) -> bool:
    """Whether every state in which something can stand has the same in the other plan."""
    states = same_states(old, new)
    stands = (StateKind.NORMAL, StateKind.PENDING)
    return all(states[each.number] != NOWHERE for each in old.states if each.kind in stands)


def found(outputs: Outputs) -> Any:
    """What was found, whatever the order and the version."""
    return (
        sorted((m.rule_id, str(m.key), m.time, repr(m.steps)) for m in outputs.matches),
        sorted(
            (t.rule_id, str(t.key), t.deadline, t.start, repr(t.steps), t.already_matched)
            for t in outputs.timeouts
        ),
        {what: n for what, n in outputs.counts.items() if what[1] != "tested"},
    )


def with_last(stream: Stream, begins: list[int]) -> Stream:
    """The events with what the last conditions say of them. An event that was read before the
    version that it is shown to lacks its condition."""

    def epoch(batch: int) -> int:
        return sum(first <= batch for first in begins) - 1

    def last(batch: int, record: Record) -> int:
        applied = [n for n in range(batch, len(stream)) if stream[n][1] >= record.time]
        read, price = epoch(batch), record.values["price"]
        meets = price is not None and list(LAST.values())[read](price)
        return int(meets and bool(applied) and epoch(applied[0]) == read)

    return [
        (
            [replace(r, values={**r.values, "last": last(batch, r)}) for r in records],
            watermark,
        )
        for batch, (records, watermark) in enumerate(stream)
    ]


@property_of
@given(
    rules("r"), st.sampled_from([Contiguity.FOLLOWED_BY, Contiguity.FOLLOWED_BY_ANY]), batches(),
    st.data(), st.sampled_from([1, 1_500, 1 << 26]),
)  # fmt: skip
@pytest.mark.slow
def test_another_last_condition(
    rule: Rule, how: Contiguity, stream: Stream, data: st.DataObject, slice_bytes: int
) -> None:
    """As the naive matcher finds it with one rule whose last condition is, for each event, that of
    the version that the event is shown to; through one change or two, whatever is cut how."""
    places = st.integers(1, len(stream) - 1)
    begins = sorted({0, *data.draw(st.lists(places, min_size=1, max_size=2))})
    plans = [
        ends_with(rule, how, where, number)
        for number, (where, _) in enumerate(zip(LAST, begins, strict=False), 1)
    ]
    assume(all(all_move(old, new) for old, new in pairwise(plans)))
    stream = with_last(stream, begins)
    job = ReferenceJob(plan_together([lower(LEFT), ends_with(rule, how, "last = 1", 1)]), TYPES)
    store = Store(plan_together([lower(LEFT), plans[0]]), TYPES, slice_bytes=slice_bytes)
    for place, (records, watermark) in enumerate(stream):
        if place and place in begins:
            # A complete match that waits ends, for its last condition is no longer the rule's.
            assume(not any(state.finished for _, _, state in job.rule_states()))
            number = begins.index(place)
            carried = plans[:number][::-1]
            store.change(plan_together([lower(LEFT), plans[number]], (), carried), TYPES)
        store.advance(records, watermark)
        job.advance(records, watermark)
        assert found(store.outputs) == found(job.outputs)
        assert store.live == store.held()
        assert [rule for rule, *_ in store.gone if rule != "left"] == []


@property_of
@given(rules("r", skips=False), batches(), st.data())
def test_what_moves_would_stand_there(rule: Rule, stream: Stream, data: st.DataObject) -> None:
    """Where one condition is never true any more, every partial match whose state is the same would
    be there, with the same events, had the new version run from the beginning."""
    number = data.draw(st.integers(0, sum(1 for _ in walk(rule.pattern)) - 1))
    changed = replace(rule, version=2, pattern=_never(rule.pattern, number))
    # An event that is relevant for one of them alone may leave partial matches of the other in a
    # state that only stands for those in which they would be.
    old, new = (replace(lower(each), relevant=TRUE) for each in (rule, changed))
    states = same_states(old, new)
    jobs = [ReferenceJob(plan_together([plan]), TYPES) for plan in (old, new)]
    for records, watermark in with_last(stream, [0]):
        for job in jobs:
            job.advance(records, watermark)
        before, after = map(_standing, jobs)
        moved = {(key, states[state], chain) for key, state, chain in before}
        assert {each for each in moved if each[1] != NOWHERE} <= after


def _standing(job: ReferenceJob) -> set[tuple[str | None, int, str]]:
    """Of each partial match its key, its state, and what it has taken."""
    return {
        (key, partial.state, _chain(plan, partial))
        for key, plan, state in job.rule_states()
        for partial in state.partials
    }


def _chain(plan: Plan, partial: Partial) -> str:
    taken: Taken | None = partial.last
    found = []
    while taken is not None:
        found.append(f"{plan.steps[taken.step]} {taken.event.at}")
        taken = taken.previous
    return ", ".join(found)


def _never(steps: tuple[Step, ...], number: int) -> tuple[Step, ...]:
    """The steps, of which one, depth first, has a condition that no event meets."""
    changed = []
    for step in steps:
        size = sum(1 for _ in walk((step,)))
        if not 0 <= number < size:
            changed.append(step)
        elif step.group is None:
            changed.append(replace(step, where=parse("name = 'never'")))
        else:
            changed.append(replace(step, group=_never(step.group, number - 1)))
        number -= size
    return tuple(changed)


CHAIN = """
id: r
version: {version}
key: key
{more}
pattern:
  - {{step: p, where: "name = 'a'"}}
  - {{step: q, after: followed_by, where: "name = '{second}'"}}
  - {{step: r, after: followed_by, where: "name = '{third}'"}}
"""


def chain(version: int, second: str = "b", third: str = "c", more: str = "within: 1 h") -> Plan:
    """Three events."""
    text = CHAIN.format(version=version, second=second, third=third, more=more)
    ((loaded),) = load_rules(text, "r.yaml")
    return lower(loaded.rule)


def record(offset: int, time: int, name: str, key: str = "k") -> Record:
    """An event."""
    values = {"name": name, "key": key, "price": offset, "last": 0}
    return Record(Coordinates("t", 0, offset), time, values, type="Event")


def other() -> Plan:
    """A rule beside, that finds nothing."""
    ((loaded),) = load_rules("{id: other, key: key, pattern: [{step: p, where: name = 'z'}]}", "o")
    return lower(loaded.rule)


def changed(store: Store, new: Plan, *old: Plan) -> None:
    """``new`` takes over, with another rule beside it."""
    store.change(plan_together([other(), new], (), old), TYPES)


def taken(store: Store) -> list[tuple[int, list[int]]]:
    """Versions, and the offsets of the events that they took."""
    return sorted(
        (match.rule_version, [one.at.offset for each in match.steps.values() for one in each])
        for match in store.outputs.matches
    )


@pytest.mark.parametrize(
    ("new", "same"),
    [
        (chain(2), {"p", "q", "r", "(match)"}),
        (chain(2, third="x"), {"q", "r"}),
        (chain(2, second="x"), {"q"}),
        (chain(2, more="within: 5 s"), {"q", "r", "(match)"}),
        (chain(2, more="within: {gap: 5 s}"), {"q"}),
        (chain(2, more="events: other"), set()),
    ],
    ids=["version", "third", "second", "window", "gap", "inputs"],
)
def test_which_states_are_the_same(new: Plan, same: set[str]) -> None:
    """Those to which all ways are the same. Nothing stands in the first one."""
    old = chain(1)
    found = same_states(old, new)
    assert {old.states[n].label for n, to in enumerate(found) if to != NOWHERE} == same - {"p"}
    assert all(
        new.states[to].label == old.states[n].label for n, to in enumerate(found) if to != NOWHERE
    )


@pytest.mark.parametrize("old", ["next", "followed_by", "followed_by_any", "not_next"])
@pytest.mark.parametrize("new", ["next", "followed_by", "followed_by_any", "not_next"])
def test_how_events_may_pass(old: str, new: str) -> None:
    """What may have come between two steps counts for the states behind them."""
    text = CHAIN.replace("{{", "{").replace("}}", "}").replace("key: key\n{more}\n", "key: key\n")

    def plan(version: int, after: str) -> Plan:
        written = text.replace("{version}", str(version)).replace("after: followed_by", after, 1)
        ((loaded),) = load_rules(written.replace(after, f"after: {after}", 1), "r.yaml")
        return lower(loaded.rule)

    one, two = plan(1, old), plan(2, new)
    states = {state.label: to for state, to in zip(one.states, same_states(one, two), strict=True)}
    assert (states["r"] != NOWHERE) is (old == new)


def test_a_step_that_changed() -> None:
    """Partial matches that stand before it take the new condition, those behind it end, and are
    counted; nothing is written of them."""
    one, two = chain(1), chain(2, second="x")
    store = Store(plan_together([other(), one]), TYPES)
    events = [record(0, 1, "a"), record(1, 2, "b"), record(2, 3, "a")]
    store.advance(events, 10)
    changed(store, two, one)
    store.advance([record(3, 12, "c"), record(4, 13, "b"), record(5, 14, "x")], 20)
    assert store.gone == [("r", 1, 1)]
    store.advance([record(6, 22, "c")], 30)
    assert taken(store) == [(2, [2, 5, 6])]
    assert store.outputs.timeouts == []
    assert store.live["r"] == 0


def test_what_nothing_touches() -> None:
    """It is counted for the new version, and ends when it is read: when its key has an event, or
    something of it is due."""
    one, two = chain(1), chain(2, second="x", more="within: 100 ms")
    store = Store(plan_together([other(), one]), TYPES)
    keys = [f"k{number}" for number in range(400)]
    store.advance([record(n, 1, "a", key) for n, key in enumerate(keys)], 2)
    store.advance([record(1_000 + n, 3, "b", key) for n, key in enumerate(keys)], 4)
    store.advance([record(2_000, 5, "a", "k7")], 6)
    changed(store, two, one)
    store.advance([], 7)
    # Buckets are split meanwhile, so some are read.
    gone = sum(count for *_, count in store.gone)
    assert gone + store.live["r"] == 401
    for number, name in enumerate("xc"):
        store.advance([record(3_000 + number, 10 + number, name, "k7")], 10 + number)
        gone += sum(count for *_, count in store.gone)
        assert store.live == store.held()
    assert taken(store) == [(2, [2_000, 3_000, 3_001])]
    assert 1 <= gone < 400
    store.advance([], 200)
    assert gone + sum(count for *_, count in store.gone) == 400
    assert (store.live["r"], store.outputs.timeouts) == (0, [])
    assert store.entries == {}


@pytest.mark.parametrize("later", [50, 90])
def test_a_shorter_window(later: int) -> None:
    """What is too old by then ends without timeout; the others time out when they are as old as the
    new version lets them be, though nothing touches their bucket before."""
    one, two = chain(1, more="within: 100 ms"), chain(2, more="within: 20 ms")
    store = Store(plan_together([other(), one]), TYPES)
    store.advance([record(0, 1, "a", "k"), record(1, 25, "a", "m")], 30)
    changed(store, two, one)
    store.advance([], 44)
    assert store.outputs.timeouts == []
    store.advance([], later)
    assert [(t.key, t.deadline, t.rule_version) for t in store.outputs.timeouts] == [("m", 45, 2)]
    assert store.live["r"] == 0


def test_a_longer_window() -> None:
    """What lives has longer."""
    one, two = chain(1, more="within: 20 ms"), chain(2, more="within: 100 ms")
    store = Store(plan_together([other(), one]), TYPES)
    store.advance([record(0, 1, "a")], 10)
    changed(store, two, one)
    store.advance([record(1, 50, "b"), record(2, 60, "c")], 70)
    assert taken(store) == [(2, [0, 1, 2])]


@pytest.mark.parametrize(
    ("strategy", "expected"), [("skip_past_last_event", [(2, [1, 50])]), ("skip_to_next", [])]
)
def test_a_complete_match_that_waits(strategy: str, expected: list[tuple[int, list[int]]]) -> None:
    """For an older partial match: it is the new version's, unless that one skips otherwise."""
    text = """
{{id: r, version: {}, key: key, within: {}, after_match: {}, pattern: [
  {{step: p, where: "name = 'a'"}},
  {{step: q, after: followed_by, where: "name = 'b' AND price > 10 * LAST(p.price)"}}]}}
"""

    def plan(version: int, within: str, skip: str) -> Plan:
        ((loaded),) = load_rules(text.format(version, within, skip), "r.yaml")
        return lower(loaded.rule)

    one, two = plan(1, "1 h", "skip_past_last_event"), plan(2, "100 ms", strategy)
    store = Store(plan_together([other(), one]), TYPES)
    store.advance([record(9, 1, "a"), record(1, 2, "a"), record(50, 3, "b")], 10)
    assert store.outputs.matches == []
    changed(store, two, one)
    store.advance([], 200)
    assert taken(store) == expected
    assert [timeout.start for timeout in store.outputs.timeouts] == [1]


def test_a_column_that_was_not_read() -> None:
    """It is NULL for events taken before."""
    one = chain(1)
    two = chain(2, more="within: 1 h\nemit: {measures: {first: p.price, last: r.price}}")
    store = Store(plan_together([other(), one]), TYPES)
    store.advance([record(7, 1, "a"), record(8, 2, "b")], 10)
    changed(store, two, one)
    store.advance([record(9, 12, "c")], 20)
    (match,) = store.outputs.matches
    assert dict(match.measures) == {"first": None, "last": 9}


@pytest.mark.parametrize("back", [False, True])
def test_what_was_carried_is_not_taken_up_again(back: bool) -> None:
    """By a version that does not carry over, or when the old one comes back."""
    one, two, three = chain(1), chain(2), chain(3)
    store = Store(plan_together([other(), one]), TYPES)
    store.advance([record(0, 1, "a")], 10)
    changed(store, two, one)
    store.advance([], 11)
    changed(store, one if back else three)
    store.advance([record(1, 12, "b"), record(2, 13, "c")], 20)
    assert (store.outputs.matches, store.gone) == ([], [("r", 2, 1)])
    assert store.live["r"] == 0


def test_one_that_was_replaced_before_it_ran() -> None:
    """What the version before it has moves on directly."""
    one, two, three = chain(1), chain(2, third="x"), chain(3, third="y")
    store = Store(plan_together([other(), one]), TYPES)
    store.advance([record(0, 1, "a"), record(1, 2, "b")], 10)
    changed(store, three, two, one)
    store.advance([record(2, 12, "y")], 20)
    assert taken(store) == [(3, [0, 1, 2])]


def test_an_absence_on_the_way() -> None:
    """What must not have come between counts for what stands behind it."""
    text = """
{{id: r, version: {}, key: key, within: 1 h, pattern: [
  {{step: p, where: "name = 'a'"}}, {{step: n, after: not_followed_by, where: "name = '{}'"}},
  {{step: q, after: followed_by, where: "name = 'b'"}},
  {{step: r, after: followed_by, where: "name = 'c'"}}]}}
"""
    one, two, three = (
        lower(load_rules(text.format(version, name), "r.yaml")[0].rule)
        for version, name in ((1, "x"), (2, "x"), (3, "y"))
    )
    states = {
        number: {
            state.label: to for state, to in zip(one.states, same_states(one, new), strict=True)
        }
        for number, new in ((2, two), (3, three))
    }
    assert states[2]["r"] != NOWHERE != states[3]["q"]
    assert states[3]["r"] == NOWHERE


def test_nothing_is_left_of_what_ended() -> None:
    """Neither its events nor its keys; what another rule has of the same key stays, and rules stay
    in their order."""
    one, two = chain(1), chain(2, second="x")
    text = "{id: s, key: key, pattern: [{step: p, where: price = 2}, {step: q, after: next}]}"
    plan = plan_together([one, lower(load_rules(text, "s.yaml")[0].rule)])
    reader = EventReader(plan.partitionings[0], TYPES)
    names, state = Names(), KeysState()
    matcher = KeysMatcher(plan.partitionings[0], TYPES)
    events: dict[str | None, list[Event]] = {}
    for each in (
        record(0, 1, "a"), record(1, 2, "b"), record(2, 3, "a"), record(3, 4, "a", "m"),
        record(4, 5, "b", "m"),
    ):  # fmt: skip
        events.setdefault(reader.key(each), []).append(reader.event(each, Outputs()))
    for _ in matcher.advance(state, InputBatch.of(events, names, matcher.slots), 10, names):
        pass
    how = Carry.between(one, two, 5, 10)
    assert how is not None
    # The rule comes behind the other one, and its state has another number there.
    how = replace(how, states=[NOWHERE, 2, *how.states[2:]])
    after, ended = moved(state, 0, 2, how)
    assert ended == 2
    assert (texts_in(after.keys), after.event_key.tolist(), after.events.offset.tolist()) == (
        ["k"],
        [0],
        [2],
    )
    assert after.held.instances[["key", "rule", "partials"]].tolist() == [(0, 1, 1), (0, 2, 1)]
    assert len(after.held.nodes) == 2
    matched = [
        (rule, partials.partials[0].state) for _, rule, partials in rule_states(after, names, ())
    ]
    assert matched == [(1, 1), (2, 2)]


def test_large_plans() -> None:
    """They are compared in one pass, and once, however many key groups ask."""
    text = to_yaml(chain(1).rule).replace("step: q\n", "step: q\n  times: 1000\n")
    one, two = (
        lower(load_rules(each, "r.yaml")[0].rule)
        for each in (text, text.replace("version: 1", "version: 2").replace("'c'", "'d'"))
    )
    began = time.process_time()
    states = same_states(one, two)
    assert time.process_time() - began < 5
    assert same_states(one, two) is states
    assert [one.states[n].kind for n, to in enumerate(states) if to == NOWHERE] == [
        StateKind.START, StateKind.FINAL,
    ]  # fmt: skip
