"""The kernel's state as bytes, put together and parted: nothing is lost, whatever the order.

``tests/golden/state`` holds states in columnar format 1 beside those of the interpreter. They must
load for ever; ``REWRITE_GOLDEN=1`` writes only those that are missing.
"""

from __future__ import annotations

import datetime as dt
import os
import zlib
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from service.compiler.rule_set import compile_rules
from service.errors import StateError
from service.matcher.columnar.conversion import key_states, keys_state
from service.matcher.columnar.events import EventTable, Names
from service.matcher.columnar.kernel import FINISHED, FOREVER, NEVER, PARTIAL
from service.matcher.columnar.keys import KeysMatcher, KeysState
from service.matcher.columnar.matcher import NODE, UNIT, Held
from service.matcher.columnar.snapshot import (
    decode,
    encode,
    joined,
    packed_numbers,
    parted,
    unpacked_numbers,
)
from service.matcher.engines import fingerprints_of
from service.matcher.local import LocalJob, Record
from service.model import Coordinates, Event
from service.packing import pack, unpack
from service.pattern.tree import Rule
from tests.matcher.runs import TYPES, found_by, job, remembered, written
from tests.matcher.strategies import rules, streams
from tests.matcher.test_snapshot import GOLDEN

KEYS = "klmn"

property_of = settings(
    max_examples=80,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


# Columns of numbers.


def columns_of(kind: type[np.generic]) -> st.SearchStrategy[Any]:
    """Columns of any, of close and of extreme values."""
    info = np.iinfo(kind)  # type: ignore[type-var]
    ends = st.sampled_from([info.min, info.max, 0])
    near = st.integers(max(info.min, -3), 300).filter(lambda value: value <= info.max)
    lengths = st.integers(0, 9)
    return st.one_of(
        hnp.arrays(kind, lengths),
        hnp.arrays(kind, lengths, elements=ends),
        hnp.arrays(kind, lengths, elements=near),
    )


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_numbers_come_back(kind: type[np.generic]) -> None:
    """Values and type, through MessagePack."""

    @settings(property_of, max_examples=200)
    @given(columns_of(kind))
    def come_back(column: Any) -> None:
        read = unpacked_numbers(unpack(pack(packed_numbers(column))), kind)
        assert read.dtype == kind
        assert read.tolist() == column.tolist()

    come_back()


@pytest.mark.parametrize(
    ("values", "width"),
    [
        ([], 0), ([7], 0), ([FOREVER] * 9, 0), ([NEVER] * 9, 0),
        ([0, 255], 1), ([-128, 127], 1), ([1 << 60, (1 << 60) + 255], 1),
        ([0, 256], 2), ([0, (1 << 16) - 1], 2), ([0, 1 << 16], 4), ([0, (1 << 32) - 1], 4),
        ([0, 1 << 32], 8), ([NEVER, FOREVER], 8), ([NEVER, 0, FOREVER], 8),
    ],
)  # fmt: skip
def test_numbers_take_the_width_of_their_range(values: list[int], width: int) -> None:
    """However large they are themselves."""
    packed = packed_numbers(np.array(values, np.int64))
    assert packed[2] == width
    assert len(packed[3]) == width * len(values)
    assert unpacked_numbers(packed, np.int64).tolist() == values


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
    """A job under the kernel, stopped in mid-stream: its state, and how to go on with another."""

    def __init__(self, rule_set: Sequence[Rule], records: Sequence[Record], cut: int) -> None:
        self.plan = compile_rules(rule_set)
        self.job = self._job()
        assume(self.job._matchers[0].interpreter is None)
        self.watermark = records[cut].time if cut < len(records) else 0
        self.before = [r for r in records if r.time <= self.watermark + 2]
        self.after = [r for r in records if r.time > self.watermark + 2]
        self.job.advance(self.before, self.watermark)
        self.kernel: KeysMatcher = self.job._matchers[0].kernel
        self.fingerprints = fingerprints_of(self.kernel.partitioning)

    def _job(self) -> LocalJob:
        return LocalJob(self.plan, TYPES)

    @property
    def state(self) -> KeysState:
        """What is remembered."""
        return self.job._states[0].together

    def content(self, state: KeysState) -> Any:
        """Everything in a state, in no order of keys."""
        return content(state, self.job._states[0].names)

    def goes_on(self, state: KeysState, keys: str = KEYS) -> LocalJob:
        """A job that has this state and is given the later events of these keys."""
        other = self._job()
        other.watermark = self.watermark
        other._states[0].names = self.job._states[0].names
        other._states[0].together = state
        other.advance([r for r in self.after if r.values["key"] in keys], self.watermark + 5)
        return other

    def copy(self) -> KeysState:
        """The state, to be changed."""
        return decode(encode(self.state, self.fingerprints), self.fingerprints)


def content(state: KeysState, names: Names) -> Any:
    """A state's events and partial matches as values, by key."""

    def value(event: Event) -> Event:
        # Rows of columns are tuples as they come, lists once they were stored.
        return event._replace(columns=list(event.columns))

    def chain(last: Any) -> Any:
        return [(taken.step, value(taken.event)) for taken in last.chain()]

    waiting = [
        (state.keys[key], state.masks[mask], value(state.waiting.event(row, names)))
        for row, (key, mask) in enumerate(
            zip(state.waiting_key.tolist(), state.waiting_mask.tolist(), strict=True)
        )
    ]
    units = [
        (
            (key, number),
            [
                (p.state, value(p.first), chain(p.last), p.deadline, p.matched)
                for p in rule.partials
            ],
            [(value(f.first), chain(f.last), f.time) for f in rule.finished],
            (rule.deadline, rule.quiet_until, rule.paused, rule.limited, rule.events_at_most),
        )
        for key, number, rule in KeysMatcher.rule_states(state, names)
    ]
    # Sorting by key is stable: what is of one key must stay in its order.
    return (
        sorted(waiting, key=lambda one: one[0] or ""),
        sorted(units, key=lambda one: (one[0][0] or "", one[0][1])),
    )


runs = st.builds(Run, RULE_SETS, keyed().filter(bool), st.integers(0, 12))


@property_of
@given(runs)
def test_the_interpreter_can_take_over_and_give_back(run: Run) -> None:
    """Nothing is lost on the way to the interpreter's states and back, and all goes on the same."""
    names = run.job._states[0].names
    read = keys_state(key_states(run.state, names), names)
    assert run.content(read) == run.content(run.state)
    assert found_by(run.goes_on(read)) == found_by(run.goes_on(run.copy()))


@property_of
@given(runs)
def test_round_trip(run: Run) -> None:
    """The same state comes back, and its bytes are the same again."""
    data = encode(run.state, run.fingerprints)
    read = decode(data, run.fingerprints)
    assert run.content(read) == run.content(run.state)
    assert read.deadline == run.state.deadline
    assert read.idle == run.state.idle
    assert encode(read, run.fingerprints) == data


@property_of
@given(runs, st.data())
def test_parted_and_joined(run: Run, data: st.DataObject) -> None:
    """By whatever assignment of keys, in whatever order: it goes on as if nothing had been."""
    whole = run.state
    count = data.draw(st.integers(1, 4))
    assignment = data.draw(
        hnp.arrays(np.int64, len(whole.keys), elements=st.integers(0, count - 1))
    )
    parts = parted(run.copy(), assignment, count)
    assert len(parts) == count
    for number, part in enumerate(parts):
        assert set(part.keys) == {
            k for k, n in zip(whole.keys, assignment, strict=True) if n == number
        }
    expected = run.goes_on(run.copy())
    order = data.draw(st.permutations(parts))
    if data.draw(st.booleans()):
        order = [decode(encode(part, run.fingerprints), run.fingerprints) for part in order]
    again = joined(order)
    assert run.content(again) == run.content(whole)
    assert again.deadline == whole.deadline
    got = run.goes_on(again)
    assert found_by(got) == found_by(expected)
    assert remembered(got) == remembered(expected)


@property_of
@given(runs, st.data())
def test_each_part_goes_on_alone(run: Run, data: st.DataObject) -> None:
    """All parts together find and remember what the whole does."""
    homes = {key: data.draw(st.integers(0, 2)) for key in KEYS}
    expected = run.goes_on(run.copy())
    numbers = np.array([homes[str(key)] for key in run.state.keys], np.int64)
    parts = parted(run.copy(), numbers, 3)
    jobs = [
        run.goes_on(part, "".join(key for key in KEYS if homes[key] == number))
        for number, part in enumerate(parts)
    ]
    assert sorted(m.match_id for j in jobs for m in j.outputs.matches) == sorted(
        m.match_id for m in expected.outputs.matches
    )
    assert {k: v for j in jobs for k, v in remembered(j).items()} == remembered(expected)


@property_of
@given(runs)
def test_unknown_rules_are_dropped(run: Run) -> None:
    """A rule that changed or went starts empty; the others keep what they had, by any number."""
    data = encode(run.state, run.fingerprints)
    first, second = run.fingerprints
    waiting, units = run.content(run.state)
    read = decode(data, ["new", second])
    assert run.content(read) == (waiting, [unit for unit in units if unit[0][1] == 1])
    moved = decode(data, [second, first])
    assert {(k, 1 - n) for (k, n), *_ in units} == {u[0] for u in run.content(moved)[1]}
    nothing = decode(data, [])
    assert run.content(nothing) == (waiting, [])
    assert nothing.idle == (not waiting)


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
    return job("---".join(SIMPLE.format(name=name) for name in names).lstrip()).fastest


def test_what_a_dropped_rule_held_goes_with_the_next_run() -> None:
    """Its events and nodes stay no longer than that."""
    one = simple("a", "b")
    one.advance(written("a@1 b@2 a@3"), 5)
    kernel = one._matchers[0].kernel
    assert kernel is not None
    first, second = fingerprints_of(kernel.partitioning)
    read = decode(encode(one._states[0].together, [first, second]), ["", second])
    one._states[0].together = read
    assert len(read.events) == 3
    one.advance([], 6)
    assert [partial.rule_id for partial in one.partial_matches()] == ["b"]
    assert len(read.events) == len(read.event_key) == len(read.held.nodes) == 1


# Bytes.


@property_of
@given(runs, st.data())
def test_damaged_bytes(run: Run, data: st.DataObject) -> None:
    """Bytes that were changed, cut or lengthened are a StateError, and nothing is made of them."""
    whole = encode(run.state, run.fingerprints)
    place = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytes([whole[place] ^ data.draw(st.integers(1, 255))])
    for damaged in (
        whole[:place] + flipped + whole[place + 1 :],
        whole[:place],
        whole + b"\x00",
        whole[place + 1 :],
    ):
        with pytest.raises(StateError, match="damaged"):
            decode(damaged, run.fingerprints)


def summed(parts: Any) -> bytes:
    """Anything in the place of a state, with its checksum."""
    return decode_input(pack(parts))


def decode_input(data: bytes) -> bytes:
    """Bytes with their checksum before them."""
    return zlib.crc32(data).to_bytes(4, "little") + data


NO_NUMBERS = [0, 0, 0, b""]
NO_EVENTS = [*[NO_NUMBERS] * 5, None, None]
NOTHING = [
    [], [], [], NO_EVENTS, NO_NUMBERS, NO_NUMBERS, NO_EVENTS, NO_NUMBERS, [NO_NUMBERS] * 9,
    [NO_NUMBERS] * 5, [NO_NUMBERS] * 3, [NO_NUMBERS] * 3,
]  # fmt: skip


def test_bytes_of_nothing() -> None:
    """The smallest state, written out."""
    read = decode(summed(NOTHING), ["r"])
    assert read.idle
    assert read.deadline == FOREVER
    assert encode(KeysState(), []) == summed(NOTHING)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (3, [NO_NUMBERS] * 5),  # no columns and payload
        (3, None),
        (2, [None]),  # no mask
        (4, [5, 0, 1, b"abc"]),  # five numbers in three bytes
        (4, [5, 0, 3, b"abc" * 5]),  # a width that there is not
        (4, [1, 0]),
        (8, [NO_NUMBERS] * 8),  # a field less
        (8, [[2, 0, 0, b""], [3, 0, 0, b""], *[NO_NUMBERS] * 7]),  # columns of several lengths
        (8, [[1, 0, 0, b""], [1, 0, 0, b""], [1, 1 << 70, 0, b""], *[[1, 0, 0, b""]] * 6]),
        (9, [[-1, 0, 0, b""]] * 5),
        (9, None),
    ],
)
def test_bytes_of_no_state(place: int, value: Any) -> None:
    """What has another form is a StateError, whatever its checksum."""
    parts = list(NOTHING)
    parts[place] = value
    with pytest.raises(StateError):
        decode(summed(parts), ["r"])


@pytest.mark.parametrize("data", [b"", b"abc", summed(None), summed([]), decode_input(b"\xc1")])
def test_bytes_of_something_else(data: bytes) -> None:
    """Nor is it taken for an empty state."""
    with pytest.raises(StateError):
        decode(data, ["r"])


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
    state = one._states[0].together
    assert len(state.held.partials) == keys
    size = len(encode(state, ["fingerprint"])) / keys
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
    one = job(branching).fastest
    one.advance(written("a=9 " + " ".join(f"b={90 + n}" for n in range(50))), 99)
    kernel = one._matchers[0].kernel
    assert kernel is not None
    state = one._states[0].together
    assert len(state.held.partials) == 51
    assert len(state.events) == len(state.held.nodes) == 51
    assert len(encode(state, fingerprints_of(kernel.partitioning))) < 51 * 12 + 300


# States of earlier releases.


def table(rows: Sequence[tuple[Any, ...]], fields: str, kind: np.dtype[Any]) -> Any:
    """Rows of some fields; the others are zero."""
    made = np.zeros(len(rows), kind)
    for name, values in zip(fields.split(), zip(*rows, strict=True), strict=True):
        made[name] = values
    return made


def events(
    rows: Sequence[tuple[int, int, int, int, int]], columns: Any = None, payload: Any = None
) -> EventTable:
    """Events of these times, topics, partitions, offsets and types."""
    i64, i32 = np.int64, np.int32
    parts = zip(*rows, strict=True) if rows else ([],) * 5
    kinds = (i64, i32, i32, i64, i32)
    return EventTable(
        *(np.array(part, kind) for part, kind in zip(parts, kinds, strict=True)), columns, payload
    )


NAMES = Names(["orders", "payments"], ["com.acme.Order", None])


def golden_states() -> dict[str, KeysState]:
    """What the committed bytes of columnar format 1 hold, written out by hand."""
    values = [
        None, True, -5, 1 << 70, 2.5, "ü", b"\x00\xff", Decimal("-12.340"),
        dt.datetime(2024, 2, 29, 12, 0, 0, 123_456, dt.UTC), dt.date(1969, 12, 31), [1, [2]],
        {"a": {"b": Decimal(0)}},
    ]  # fmt: skip
    waiting = events([(5, 0, 3, 1 << 40, 0), (6, 1, 0, 2, 1), (6, 1, 0, 3, 1)])
    held = Held(
        table(
            [
                (0, 0, 95, NEVER, 4, 2, 1, 0, 0),
                (0, 1, FOREVER, NEVER, 0, 0, 0, 1, 1),
                (1, 1, -5, NEVER, 1, 1, 0, 0, 1),
                (2, 0, FOREVER, 60_007, 0, 0, 0, 0, 0),
            ],
            "key rule deadline quiet events_bound partials finished paused limited",
            UNIT,
        ),
        table(
            [(1, 0, 0, 95, 0), (300, 0, 1, FOREVER, 1), (2, 2, 3, -5, 0)],
            "state first last deadline matched",
            PARTIAL,
        ),
        table([(0, 2, 7)], "first last time", FINISHED),
        table([(-1, 0, 0), (0, 1, 1), (0, 2, 1), (-1, 0, 2)], "previous step event", NODE),
    )
    none = np.zeros(0, np.int64)
    return {
        "empty": KeysState(),
        "waiting": KeysState(
            ["k", "ü", None],
            [5, (1 << 63) - 1, 1 << 63, (1 << 200) + 1],
            replace(waiting, columns=[[1], [], [None]], payload=[b"x", None, b""]),
            np.array([2, 0, 1]),
            np.array([1, 3, 2]),
        ),
        "partials": KeysState(
            ["k", "ü", '["a","b"]'],
            [],
            events([]),
            none,
            none,
            events(
                [(-5, 0, 3, 1 << 40, 0), (7, 1, 0, 2, 1), (-60_005, 1, 1, 9, 1)],
                [values, [], [1]],
                [b"bytes", None, b""],
            ),
            np.array([0, 0, 1]),
            held,
        ),
        "both": KeysState(
            ["ahead", "k", "ü", "cool"],
            [0],
            waiting,
            np.array([0, 0, 1]),
            np.array([0, 0, 0]),
            events([(-5, 0, 3, 1 << 40, 0), (7, 1, 0, 2, 1), (-60_005, 1, 1, 9, 1)]),
            np.array([1, 1, 2]),
            held._replace(units=shifted(held.units)),
        ),
    }


def shifted(units: Any) -> Any:
    """The units, each of the next key."""
    moved = units.copy()
    moved["key"] += 1
    return moved


@pytest.mark.parametrize("name", golden_states())
def test_golden_state(name: str) -> None:
    """Bytes that an earlier release wrote load with everything in them."""
    expected = golden_states()[name]
    golden = GOLDEN / f"columnar-1-{name}.bin"
    if os.environ.get("REWRITE_GOLDEN") and not golden.exists():
        golden.write_bytes(encode(expected, ["one", "two"]))
    read = decode(golden.read_bytes(), ["one", "two"])
    assert read.keys == expected.keys
    assert content(read, NAMES) == content(expected, NAMES)
    for mine, theirs in ((read.events, expected.events), (read.waiting, expected.waiting)):
        assert (mine.columns, mine.payload) == (theirs.columns, theirs.payload)
    assert [table.tolist() for table in read.held] == [table.tolist() for table in expected.held]


def test_every_golden_state_is_tested() -> None:
    """No file is left without its case."""
    files = {file.stem for file in GOLDEN.iterdir() if file.stem.startswith("columnar-1-")}
    assert files == {f"columnar-1-{name}" for name in golden_states()}
