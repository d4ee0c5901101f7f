"""State and events that wait as bytes, put together and divided: nothing is lost, whatever the
order.

``tests/golden/state`` holds both as blocks of formats 8 and 5, to load for ever;
``REWRITE_GOLDEN=1`` writes only those that are missing.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from spark_cep.columns.compilation import FOREVER, NEVER
from spark_cep.columns.texts import TextSet
from spark_cep.columns.vectors import Bytes, Numbers, Objects, texts_of
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.errors import StateError
from spark_cep.matcher.batch.events import EventTable, Names, SlotType
from spark_cep.matcher.batch.input_batch import InputBatch, batches_together, reached
from spark_cep.matcher.keys import KeysMatcher, KeysState, rule_states
from spark_cep.matcher.keys_state import chosen, joined
from spark_cep.matcher.row_pattern.instances import INSTANCE as INSTANCE_IN_SQL
from spark_cep.matcher.row_pattern.instances import ROW, RowPatternInstances
from spark_cep.matcher.row_pattern.loops.tables import NODE as NODE_IN_SQL
from spark_cep.matcher.row_pattern.loops.tables import THREAD
from spark_cep.matcher.snapshot.stored_keys import StoredKeys, decode
from spark_cep.matcher.snapshot.waiting_events import decode_batch, encode_batch
from spark_cep.matcher.snapshot.written_state import encode
from spark_cep.matcher.steps.held import INSTANCE, NODE, Held
from spark_cep.matcher.steps.loops.kernel_tables import FINISHED, PARTIAL
from spark_cep.model import Coordinates, Event
from spark_cep.pattern.tree import Rule
from spark_cep.pattern.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    DecimalType,
)
from tests.matcher.runs import TYPES, found_by, job, remembered, written
from tests.matcher.strategies import rules, streams
from tests.matcher.texts import texts_in
from tests.reference.local import LocalJob, Record

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).parents[1] / "golden" / "state"
KEYS = "klmn"


def deadline(state: KeysState) -> int:
    """The watermark at which something is due."""
    return min(int(part.due.min(initial=FOREVER)) for part in state.remembered)


def idle(state: KeysState) -> bool:
    """Whether there is nothing to remember."""
    return not any(len(part.instances) for part in state.remembered)


property_of = settings(
    max_examples=80,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


# States out of random runs.


def cooling(rule: Rule, cooldown_ms: int | None) -> Rule:
    """The rule with a cooldown."""
    return replace(rule, cooldown_ms=cooldown_ms)


@st.composite
def keyed(draw: st.DrawFn) -> list[Record]:
    """Events of several keys in the order of application."""
    events = [(key, event) for key in KEYS for event in draw(streams(5))]
    events.sort(key=lambda one: one[1].time)
    return [
        Record(Coordinates("t", 0, number), event.time, {**event.values, "key": key})
        for number, (key, event) in enumerate(events)
    ]


RULE_SETS = st.tuples(
    st.builds(cooling, rules("r"), st.none() | st.integers(1, 9)), rules("other")
).map(list)


class Run:
    """A job stopped in mid-stream: its state, and how to go on with another."""

    def __init__(self, rule_set: Sequence[Rule], records: Sequence[Record], cut: int) -> None:
        self.plan = compile_rules(rule_set)
        self.job = self._job()
        self.watermark = records[cut].time if cut < len(records) else 0
        self.before = [r for r in records if r.time <= self.watermark + 2]
        self.after = [r for r in records if r.time > self.watermark + 2]
        self.job.advance(self.before, self.watermark)
        self.matcher: KeysMatcher = self.job._matchers[0]
        self.numbers = [5, 900]

    def _job(self) -> LocalJob:
        return LocalJob(self.plan, TYPES)

    @property
    def state(self) -> KeysState:
        """What is remembered."""
        return self.job._states[0].keys

    @property
    def ahead(self) -> InputBatch:
        """The events that wait."""
        return self.job._states[0].ahead

    def content(self, state: KeysState) -> Any:
        """Everything in a state, in no order of keys."""
        return content(state, self.job._states[0].names, self.matcher.slots)

    def goes_on(self, state: KeysState, keys: str = KEYS) -> LocalJob:
        """A job that has this state and is given the later events of these keys."""
        other = self._job()
        other.watermark = self.watermark
        mine = np.array(
            [key is not None and key in keys for key in texts_in(self.ahead.keys)], bool
        )
        held = other._states[0]
        held.names, held.keys = self.job._states[0].names, state
        held.ahead = self.ahead.take(np.flatnonzero(mine[self.ahead.key]))
        other.advance([r for r in self.after if r.values["key"] in keys], self.watermark + 5)
        return other

    def copy(self) -> KeysState:
        """The state, to be changed."""
        return decode(self.written(self.state), self.rules)

    def written(self, state: KeysState) -> bytes:
        """A state as one block."""
        (block,) = encode(state, self.numbers)
        return block

    @property
    def rules(self) -> dict[int, int]:
        """The number of each rule, by what names it in a block."""
        return {name: number for number, name in enumerate(self.numbers)}

    def parts(self, homes: Any, count: int) -> list[KeysState]:
        """The state divided over blocks, and read of each."""
        return [
            decode(block, self.rules) for block in encode(self.state, self.numbers, homes, count)
        ]


def value(event: Event) -> Event:
    """The event with its columns as a tuple."""
    return event._replace(columns=tuple(event.columns))


def content(state: KeysState, names: Names, slots: Sequence[SlotType]) -> Any:
    """A state's events and partial matches as values, by key."""

    def chain(last: Any) -> Any:
        return [(taken.step, value(taken.event), taken.matched) for taken in last.chain()]

    instances = [
        (
            (key, number),
            [(p.state, value(p.first), chain(p.last), p.deadline) for p in rule.partials],
            [(value(f.first), chain(f.last), f.time) for f in rule.finished],
            (rule.deadline, rule.quiet_until, rule.paused, rule.limited, rule.events_at_most),
        )
        for key, number, rule in rule_states(state, names, slots)
    ]
    # Sorting by key is stable: what is of one key must stay in its order.
    return sorted(instances, key=lambda one: (one[0][0] or "", one[0][1]))


def waiting(batch: InputBatch, names: Names, slots: Sequence[SlotType]) -> Any:
    """The events of a batch as values: key, mask and the event, in their order."""
    event = batch.events.objects(names, slots)
    return [
        (batch.keys.text(key), batch.masks[mask], value(event(row)))
        for row, (key, mask) in enumerate(zip(batch.key, batch.mask, strict=True))
    ]


runs = st.builds(Run, RULE_SETS, keyed().filter(bool), st.integers(0, 12))


@property_of
@given(runs)
def test_round_trip(run: Run) -> None:
    """The same state comes back, and its bytes are the same again."""
    data = run.written(run.state)
    read = decode(data, run.rules)
    assert run.content(read) == run.content(run.state)
    for part, before in zip(read.remembered, run.state.remembered, strict=True):
        assert part.due.tolist() == before.due.tolist()
    assert run.written(read) == data


@property_of
@given(runs, st.data())
def test_divided_and_joined(run: Run, data: st.DataObject) -> None:
    """By whatever assignment of keys, in whatever order: it goes on as if nothing had been."""
    whole = run.state
    count = data.draw(st.integers(1, 4))
    assignment = data.draw(
        hnp.arrays(np.int64, len(whole.keys), elements=st.integers(0, count - 1))
    )
    parts = run.parts(assignment, count)
    assert len(parts) == count
    for number, part in enumerate(parts):
        assert set(texts_in(part.keys)) == {
            k for k, n in zip(texts_in(whole.keys), assignment, strict=True) if n == number
        }
    expected = run.goes_on(run.copy())
    order = data.draw(st.permutations(parts))
    again = joined(order)
    assert run.content(again) == run.content(whole)
    assert deadline(again) == deadline(whole)
    got = run.goes_on(again)
    assert found_by(got) == found_by(expected)
    assert remembered(got) == remembered(expected)


@property_of
@given(runs, st.data())
def test_each_part_goes_on_alone(run: Run, data: st.DataObject) -> None:
    """All parts together find and remember what the whole does."""
    homes = {key: data.draw(st.integers(0, 2)) for key in KEYS}
    expected = run.goes_on(run.copy())
    numbers = np.array([homes[str(key)] for key in texts_in(run.state.keys)], np.int64)
    parts = run.parts(numbers, 3)
    jobs = [
        run.goes_on(part, "".join(key for key in KEYS if homes[key] == number))
        for number, part in enumerate(parts)
    ]
    assert sorted(m.match_id for j in jobs for m in j.outputs.matches) == sorted(
        m.match_id for m in expected.outputs.matches
    )
    assert {k: v for j in jobs for k, v in remembered(j).items()} == remembered(expected)


@property_of
@given(runs, st.data())
def test_chosen(run: Run, data: st.DataObject) -> None:
    """The state of some keys and that of the others are the whole, and neither has events of the
    other."""
    whole = run.copy()
    wanted = data.draw(hnp.arrays(bool, len(whole.keys)))
    some, others = chosen(whole, wanted), chosen(whole, ~wanted)
    both = [*run.content(some), *run.content(others)]
    assert sorted(both, key=lambda one: one[0]) == run.content(whole)
    assert texts_in(some.keys) == [
        key for key, one in zip(texts_in(whole.keys), wanted, strict=True) if one
    ]
    assert len(some.events) + len(others.events) == len(whole.events)
    assert len(some.held.nodes) + len(others.held.nodes) == len(whole.held.nodes)
    assert min(deadline(some), deadline(others)) == deadline(whole)


@property_of
@given(runs)
def test_unknown_rules_are_dropped(run: Run) -> None:
    """A rule that changed or went starts empty; the others keep what they had, by any number."""
    data = run.written(run.state)
    first, second = run.numbers
    instances = run.content(run.state)
    read = decode(data, {7: 0, second: 1})
    assert run.content(read) == [instance for instance in instances if instance[0][1] == 1]
    assert set(texts_in(read.keys)) == {key for (key, number), *_ in instances if number == 1}
    moved = decode(data, {second: 0, first: 1})
    assert {(k, 1 - n) for (k, n), *_ in instances} == {u[0] for u in run.content(moved)}
    nothing = decode(data, {})
    assert idle(nothing)
    assert (texts_in(nothing.keys), len(nothing.events)) == ([], 0)


SIMPLE = """
id: {name}
key: key
within: 1 hour
pattern:
  - {{step: a, where: "name = '{name}'"}}
  - {{step: b, after: followed_by, where: "name = 'x' AND price > LAST(a.price)"}}
"""


def simple(*names: str) -> LocalJob:
    """A job of rules that wait for a second event, the first being of the rule's name."""
    return job("---".join(SIMPLE.format(name=name) for name in names).lstrip()).kernel


def test_what_a_dropped_rule_held_goes_with_the_next_run() -> None:
    """Its events and nodes stay no longer than that."""
    one = simple("a", "b")
    one.advance(written("a@1 b@2 a@3"), 5)
    (data,) = encode(one._states[0].keys, [0, 1])
    read = decode(data, {1: 1})
    one._states[0].keys = read
    assert len(read.events) == 3
    one.advance([], 6)
    assert [partial.rule_id for partial in one.partial_matches()] == ["b"]
    assert len(read.events) == len(read.event_key) == len(read.held.nodes) == 1


@property_of
@given(runs, st.data())
def test_some_keys_of_many_blocks(run: Run, data: st.DataObject) -> None:
    """Keys are told apart without decoding the others: those asked for, and those that are due."""
    whole = run.state
    homes = data.draw(hnp.arrays(np.int64, len(whole.keys), elements=st.integers(0, 2)))
    blocks = encode(whole, run.numbers, homes, 3)
    stored = StoredKeys([[block] for block in blocks], run.rules)
    assert len(stored) == len(whole.keys)
    assert not stored.forgotten.any()
    by_key = dict(zip(texts_in(whole.keys), homes.tolist(), strict=True))
    every = np.ones(3, bool)
    rows, due = stored.due(every)
    assert rows.tolist() == stored.rows(every).tolist() == list(range(len(stored)))
    texts = stored.texts(rows)
    values = [texts.value(row) for row in rows.tolist()]
    names = [None if value is None else value.decode() for value in values]
    assert dict(zip(names, stored.homes(rows).tolist(), strict=True)) == by_key
    asked = data.draw(st.lists(st.sampled_from([*KEYS, "x", None]), unique=True))
    found, numbers = stored.find(TextSet(texts_of(asked)))
    assert [row in found for row in rows] == [name in asked for name in names]
    some = stored.chosen(found)
    assert run.content(some) == [u for u in run.content(whole) if u[0][0] in asked]
    in_order = TextSet(texts_of(asked)).numbers.tolist()
    for row, number in zip(found.tolist(), numbers.tolist(), strict=True):
        assert asked[in_order.index(number)] == names[row]
    for key, when in zip(names, due.tolist(), strict=True):
        of_key = np.array([key == other for other in texts_in(whole.keys)], bool)
        assert when == deadline(chosen(whole, of_key))


# Bytes.


def test_bytes_of_nothing() -> None:
    """The smallest state and the smallest batch."""
    (nothing,) = encode(KeysState(), [])
    read = decode(nothing, {})
    assert idle(read)
    assert deadline(read) == FOREVER
    assert encode(read, []) == [nothing]
    assert len(decode_batch(encode_batch(InputBatch()))) == 0
    with pytest.raises(StateError):
        decode_batch(nothing)
    with pytest.raises(StateError):
        decode(encode_batch(InputBatch()), {})


def test_compact() -> None:
    """A partial match of a simple rule costs no more than this, its event's column included."""
    one = simple("a")
    keys = 1_000
    one.advance(
        [
            Record(Coordinates("t", n % 8, 10**6 + n // 8), 1_700_000_000_000 + 37 * n,
                   {"key": f"{n:08d}", "name": "a", "price": n % 100})
            for n in range(keys)
        ],
        1_700_000_000_000 + 37 * keys,
    )  # fmt: skip
    state = one._states[0].keys
    assert len(state.held.partials) == keys
    size = len(encode(state, [0])[0]) / keys
    # 9 of them are the key's own text.
    assert size < 40


def test_one_event_of_many_partial_matches_is_stored_once() -> None:
    """And so is what they have in common."""
    branching = """
pattern:
  - {step: a, where: "name = 'a'"}
  - {step: b, after: followed_by_any, where: "price > 0"}
  - {step: c, after: followed_by_any, where: "price < LAST(a.price)"}
"""
    one = job(branching).kernel
    one.advance(written("a=9 " + " ".join(f"b={90 + n}" for n in range(50))), 99)
    state = one._states[0].keys
    assert len(state.held.partials) == 51
    assert len(state.events) == len(state.held.nodes) == 51
    assert len(encode(state, [0])[0]) < 51 * 12 + 300


# Events that wait.

SLOTS = (
    SlotType("||whole", BIGINT),
    SlotType("||double", DOUBLE),
    SlotType("||text", STRING),
    SlotType("||any", None),
    SlotType("||price", DecimalType(12, 2)),
)
COLUMNS = st.tuples(
    st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
    st.none() | st.floats(allow_nan=False),
    st.none() | st.text(max_size=4),
    st.none() | st.integers() | st.lists(st.text(max_size=2), max_size=2),
    st.none() | st.decimals(-(10**9), 10**9, places=2),
)


@st.composite
def events_by_key(draw: st.DrawFn) -> dict[str | None, list[Event]]:
    """Events of some keys, with masks wide and narrow, columns and payload or none."""
    columns = draw(st.sampled_from([st.just(()), COLUMNS]))
    payload = draw(st.sampled_from([st.none(), st.none() | st.binary(max_size=3)]))
    made: dict[str | None, list[Event]] = {}
    for number in range(draw(st.integers(0, 5))):
        at = Coordinates(draw(st.sampled_from("tuü")), draw(st.integers(0, 3)), number)
        bits = draw(st.sampled_from([0, 1, (1 << 63) - 1, 1 << 63, 1 << 64, (1 << 201) - 1]))
        key = draw(st.sampled_from(["k", "", "ü", None]))
        time, kind = draw(st.integers(-9, 9)), draw(st.sampled_from(["T", None]))
        event = Event(time, at, bits, draw(columns), draw(payload), kind)
        made.setdefault(key, []).append(event)
    return made


def as_given(events: dict[str | None, list[Event]]) -> Any:
    """Events as :func:`waiting` tells them."""
    nothing = (None,) * len(SLOTS)
    return [
        (key, event.bits, event._replace(bits=0, columns=event.columns or nothing))
        for key, mine in events.items()
        for event in mine
    ]


@property_of
@given(events_by_key())
def test_events_that_wait_come_back(events: dict[str | None, list[Event]]) -> None:
    """With keys, sets of true conditions of any width, columns of any type, and payload."""
    names = Names()
    batch = InputBatch.of(events, names, SLOTS)
    data = encode_batch(batch)
    read = decode_batch(data)
    assert waiting(batch, names, SLOTS) == waiting(read, names, SLOTS) == as_given(events)
    assert encode_batch(read) == data


@property_of
@given(st.lists(events_by_key(), min_size=1, max_size=3), st.integers(-10, 10))
def test_reached(parts: list[dict[str | None, list[Event]]], watermark: int) -> None:
    """Batches together are what was in each; the watermark divides them, what is ahead sorted by
    time, with the keys and masks that it uses."""
    names = Names()
    every = [one for part in parts for one in as_given(part)]
    batch = batches_together([InputBatch.of(part, names, SLOTS) for part in parts])
    assert waiting(batch, names, SLOTS) == every
    ready, ahead = reached(batch, watermark)
    assert waiting(ready, names, SLOTS) == [one for one in every if one[2].time <= watermark]
    assert waiting(ahead, names, SLOTS) == sorted(
        (one for one in every if one[2].time > watermark), key=lambda one: one[2].time
    )
    for part in (ready, ahead):
        assert set(part.key.tolist()) == set(range(len(part.keys)))
        assert set(part.mask.tolist()) == set(range(len(part.masks)))


# State of earlier releases.


def table(rows: Sequence[tuple[Any, ...]], fields: str, kind: np.dtype[Any]) -> Any:
    """Rows of some fields; the others are zero."""
    made = np.zeros(len(rows), kind)
    for name, values in zip(fields.split(), zip(*rows, strict=True), strict=True):
        made[name] = values
    return made


NAMES = Names(["orders", "payments"], ["com.acme.Order", None])
#: A column of each type, and what three events have there.
GOLDEN_SLOTS = (
    SlotType("||int", INT), SlotType("||boolean", BOOLEAN), SlotType("||date", DATE),
    SlotType("||timestamp", TIMESTAMP), SlotType("||decimal", DecimalType(12, 2)),
    SlotType("||double", DOUBLE), SlotType("||string", STRING),
    SlotType("||wide", DecimalType(38, 3)), SlotType("||unknown", None),
)  # fmt: skip
GOLDEN_ROWS = (
    (
        -5, True, dt.date(1969, 12, 31), dt.datetime(2024, 2, 29, 12, 0, 0, 123_456, dt.UTC),
        Decimal("-12.30"), 2.5, "ü", Decimal("-12.340"), {"a": {"b": Decimal(0)}},
    ),
    (None,) * 9,
    (
        1 << 30, False, dt.date(9999, 12, 31), dt.datetime(1, 1, 1, tzinfo=dt.UTC),
        Decimal("9999999999.99"), -1e300, "", Decimal("1" * 35 + ".123"), [1 << 70, b"\x00\xff"],
    ),
)  # fmt: skip


def golden_columns() -> list[Any]:
    """The vectors of these columns, written out."""
    nulls = np.array([False, True, False])
    whole = [
        [-5, 0, 1 << 30], [1, 0, 0], [-1, 0, 2_932_896],
        [1_709_208_000_123_456, 0, -62_135_596_800_000_000], [-1230, 0, 999_999_999_999],
    ]  # fmt: skip
    wide, unknown = ([row[place] for row in GOLDEN_ROWS] for place in (-2, -1))
    return [
        *(Numbers(np.array(values, np.int64), nulls) for values in whole),
        Numbers(np.array([2.5, 0, -1e300]), nulls),
        Bytes.of(["ü".encode(), None, b""]),
        Objects(wide),
        Objects(unknown),
    ]


def golden_events(columns: Any = None, payload: Any = None, micros: Any = None) -> EventTable:
    """Three events."""
    i64, i32 = np.int64, np.int32
    return EventTable(
        np.array([-5, 7, -60_005], i64),
        np.array([0, 1, 1], i32),
        np.array([3, 0, 1], i32),
        np.array([1 << 40, 2, 9], i64),
        np.array([0, 1, 1], i32),
        columns,
        payload,
        micros,
    )


def golden_states() -> dict[str, KeysState]:
    """What the committed bytes of state hold, written out by hand."""
    held = Held(
        table(
            [
                (0, 0, 95, NEVER, 4, 2, 1, 0, 0),
                (0, 1, FOREVER, NEVER, 0, 0, 0, 1, 1),
                (1, 1, -5, NEVER, 1, 1, 0, 0, 1),
                (2, 0, FOREVER, 60_007, 0, 0, 0, 0, 0),
            ],
            "key rule deadline quiet events_bound partials finished paused limited",
            INSTANCE,
        ),
        table(
            [(1, 0, 0, 95), (300, 0, 1, FOREVER), (2, 2, 3, -5)],
            "state first last deadline",
            PARTIAL,
        ),
        table([(0, 2, 7)], "first last time", FINISHED),
        table(
            [(-1, 0, 0, 2), (0, 1, 1, 0), (0, 2, 1, 2), (-1, 0, 2, 0)],
            "previous step event matched",
            NODE,
        ),
    )
    of_key = np.array([0, 0, 1])
    payload = Bytes.of([b"bytes", None, b""])
    whole = golden_events(golden_columns(), payload)
    return {
        "empty": KeysState(),
        "partials": KeysState(texts_of(["k", "ü", None]), whole, of_key, held),
        "no-columns": KeysState(
            texts_of(['["a","b"]', "k", "cool"]), golden_events(), of_key, held
        ),
        "row-patterns": KeysState(
            texts_of(["k", "q"]),
            golden_events(),
            np.array([0, 0, 1]),
            row_patterns=golden_row_patterns(),
        ),
    }


def golden_row_patterns() -> RowPatternInstances:
    """Two rules in SQL of one key, and one of another."""
    instances = np.zeros(3, INSTANCE_IN_SQL)
    instances["key"], instances["rule"], instances["due"] = [0, 0, 1], [0, 1, 1], [20, FOREVER, -5]
    instances["threads"], instances["nodes"], instances["rows"] = [2, 0, 1], [1, 0, 0], [1, 1, 1]
    instances["frontier"], instances["work"], instances["searched"] = (
        [-1, 3, 1 << 50],
        [0, 9, 1],
        [0, 1, 2],
    )
    instances["matches"], instances["first"], instances["attempt"] = (
        [7, 0, 1 << 40],
        [1 << 50, 3, 0],
        [1, 0, 1],
    )
    rows = np.zeros(3, ROW)
    rows["event"], rows["bits"], rows["micros"] = [0, 1, 2], [1 << 62, 0, 3], [999, 0, 1]
    threads = np.zeros(3, THREAD)
    threads["at"], threads["node"], threads["length"] = [1, 2, 3], [0, -1, -1], [1, 0, 9]
    nodes = np.zeros(1, NODE_IN_SQL)
    nodes["previous"], nodes["label"] = -1, 2
    return RowPatternInstances(instances, threads, nodes, rows)


def golden_batch() -> InputBatch:
    """What the committed bytes of events that wait hold, likewise."""
    return InputBatch(
        texts_of(["k", "ü", None]),
        [5, (1 << 63) - 1, 1 << 63, (1 << 200) + 1],
        np.array([2, 0, 1]),
        np.array([1, 3, 2]),
        golden_events(golden_columns(), Bytes.of([b"x", None, b""]), np.array([999, 0, 5])),
    )


def golden(name: str, now: bytes) -> bytes:
    """The committed bytes."""
    path = GOLDEN / f"columnar-8-{name}.bin"
    if os.environ.get("REWRITE_GOLDEN") and not path.exists():
        path.write_bytes(now)
    return path.read_bytes()


def rows_of(events: EventTable) -> Any:
    """The columns of events as Python values, row by row."""
    event = events.objects(NAMES, GOLDEN_SLOTS)
    return tuple(tuple(event(row).columns) for row in range(len(events)))


def in_sql(state: KeysState) -> list[tuple[Any, ...]]:
    """What is remembered of rules in SQL."""
    found = state.row_patterns
    return [
        tuple(each.tolist()) for each in (found.instances, found.threads, found.nodes, found.rows)
    ]


@pytest.mark.parametrize("name", golden_states())
def test_golden_state(name: str) -> None:
    """Bytes that an earlier release wrote load with everything in them, and are written again."""
    expected = golden_states()[name]
    data = golden(name, encode(expected, [4, 7])[0])
    read = decode(data, {4: 0, 7: 1})
    assert texts_in(read.keys) == texts_in(expected.keys)
    assert read.event_key.tolist() == expected.event_key.tolist()
    assert content(read, NAMES, GOLDEN_SLOTS) == content(expected, NAMES, GOLDEN_SLOTS)
    assert [table.tolist() for table in read.held] == [table.tolist() for table in expected.held]
    assert in_sql(read) == in_sql(expected)
    if read.events.columns is not None:
        assert rows_of(read.events) == rows_of(expected.events) == GOLDEN_ROWS
    assert encode(read, [4, 7]) == [data]


def test_golden_batch() -> None:
    """And so do events that wait."""
    expected = golden_batch()
    data = golden("batch", encode_batch(expected))
    read = decode_batch(data)
    assert waiting(read, NAMES, GOLDEN_SLOTS) == waiting(expected, NAMES, GOLDEN_SLOTS)
    assert rows_of(read.events) == GOLDEN_ROWS
    assert encode_batch(read) == data


def test_every_golden_state_is_tested() -> None:
    """No file is left without its case."""
    files = {file.stem for file in GOLDEN.iterdir()}
    assert files == {f"columnar-8-{name}" for name in (*golden_states(), "batch")}
