"""State as bytes: what is written is read back, by later releases too; damage is said.

``tests/golden/state`` holds states in format 1, written when that format was made. They must load
for ever; they are never written anew. A new format gets files of its own, which
``REWRITE_GOLDEN=1`` writes only where they are missing. Those of the kernel are in
``test_columnar_snapshot.py``.
"""

from __future__ import annotations

import datetime as dt
import os
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.errors import StateError
from service.matcher.keyed import KeyState
from service.matcher.partial import FOREVER, Finished, Partial, RuleState, Taken
from service.matcher.snapshot import FORMAT, SnapshotCodec
from service.model import Coordinates, Event
from service.packing import pack, sealed, unpack, unsealed

GOLDEN = Path(__file__).parents[1] / "golden" / "state"

moments = st.datetimes(timezones=st.just(dt.UTC))
plain = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False)
    | moments
    | st.dates()
)
values = st.recursive(
    plain, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5
)

property_of = settings(max_examples=200, derandomize=True, database=None, deadline=None)


@st.composite
def states(draw: st.DrawFn) -> KeyState:
    """Two rules whose partial matches share events, some finished, some events still waiting."""
    names = st.sampled_from(["t", "other", "ü"])
    events = [
        Event(
            draw(st.integers(-(1 << 50), 1 << 50)),
            Coordinates(draw(names), draw(st.integers(0, 3)), number),
            0,
            draw(st.lists(values, max_size=2)),
            draw(st.none() | st.binary(max_size=3)),
            draw(st.none() | st.text(max_size=3)),
        )
        for number in range(draw(st.integers(1, 5)))
    ]
    rules: dict[int, RuleState] = {}
    for number in draw(st.sets(st.integers(0, 1))):
        first = Taken(None, 0, events[0])
        chain = [first]
        for event in events[1:]:
            chain.append(Taken(draw(st.sampled_from(chain)), draw(st.integers(0, 2)), event))
        ends = draw(st.lists(st.sampled_from(chain), max_size=4))
        times = st.integers(-(1 << 50), 1 << 50) | st.just(FOREVER)
        partials = [
            Partial(draw(st.integers(0, 9)), events[0], end, draw(times), draw(st.booleans()))
            for end in ends
        ]
        rules[number] = RuleState(
            partials=partials,
            finished=[Finished(events[0], end, draw(times)) for end in ends[:2]],
            deadline=min((partial.deadline for partial in partials), default=FOREVER),
            quiet_until=draw(st.none() | times),
            paused=draw(st.booleans()),
            limited=draw(st.booleans()),
        )
    bits = st.integers(0, 1 << 200)
    waiting = draw(st.lists(st.builds(event_ahead, bits, st.integers(0, 99)), max_size=3))
    return KeyState(waiting, rules)


def event_ahead(bits: int, number: int) -> Event:
    """An event that waits for the watermark."""
    return Event(number, Coordinates("t", 0, number), bits, [number])


def content(state: KeyState) -> Any:
    """Everything in a state, sharing written out."""
    return (
        state.waiting,
        {
            number: (
                [(p.state, p.first, chain(p.last), p.deadline, p.matched) for p in rule.partials],
                [(f.first, chain(f.last), f.time) for f in rule.finished],
                (rule.deadline, rule.quiet_until, rule.paused, rule.limited),
            )
            for number, rule in state.rules.items()
        },
    )


def chain(last: Taken) -> list[tuple[int, Event]]:
    """What was taken, last first."""
    return [(taken.step, taken.event) for taken in last.chain()]


@property_of
@given(states())
def test_round_trip(state: KeyState) -> None:
    """The same state comes back, and what was shared still is."""
    topics: list[str] = []
    data = SnapshotCodec(["one", "two"], topics).encode(state)
    read = SnapshotCodec(["one", "two"], topics).decode(data)
    assert content(read) == content(state)
    for number, rule in state.rules.items():
        before = [id(partial.last) for partial in rule.partials]
        after = [id(partial.last) for partial in read.rules[number].partials]
        assert [before.index(one) for one in before] == [after.index(one) for one in after]
    assert SnapshotCodec(["one", "two"], topics).encode(read) == data


@property_of
@given(values)
def test_values(value: Any) -> None:
    """Values of every type of the expression language, as they were."""
    assert unpack(pack(value)) == value


@pytest.mark.parametrize(
    "value",
    [
        Decimal("1.50"),
        Decimal("-0E-38"),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC),
        dt.date(1, 1, 1),
        1 << 64,
        -(1 << 63) - 1,
        [{"a": 1 << 200, "b": [True, None]}],
        {1: 1 << 70},
    ],
)
def test_values_with_an_own_form(value: Any) -> None:
    """Digits, microseconds and big numbers are kept exactly, and so are the types."""
    read = unpack(pack(value))
    assert read == value
    assert repr(read) == repr(value)


def test_a_value_of_another_type() -> None:
    """It is named when the state is written, not when it is read."""
    with pytest.raises(StateError, match="a value of type complex"):
        pack([1j])


def test_wide_masks() -> None:
    """More than 64 conditions on an event that waits."""
    for bits in (0, 1, (1 << 63) - 1, 1 << 63, 1 << 64, 1 << 200, (1 << 201) - 1):
        topics: list[str] = []
        data = SnapshotCodec([], topics).encode(KeyState([event_ahead(bits, 1)]))
        assert SnapshotCodec([], topics).decode(data).waiting[0].bits == bits


def test_an_event_is_stored_once() -> None:
    """However many partial matches hold it, its columns are there once."""
    event = Event(1, Coordinates("t", 0, 0), 0, ["needle"])
    last = Taken(None, 0, event)
    partials = [Partial(number, event, last, FOREVER, False) for number in range(9)]
    data = SnapshotCodec(["r"], []).encode(KeyState([], {0: RuleState(partials)}))
    assert data.count(b"needle") == 1


def test_translate() -> None:
    """Events stored under another rule set are rewritten as they are read."""
    topics: list[str] = []
    data = SnapshotCodec([], topics).encode(KeyState([event_ahead(5, 1)]))
    read = SnapshotCodec([], topics).decode(data, lambda event: event._replace(bits=9))
    assert [event.bits for event in read.waiting] == [9]


def test_unknown_fingerprint() -> None:
    """A rule that changed starts empty; the others keep what they had."""
    event = Event(1, Coordinates("t", 0, 0), 0, [])
    partial = Partial(1, event, Taken(None, 0, event), 9, False)
    topics: list[str] = []
    state = KeyState([], {0: RuleState([partial]), 1: RuleState([partial])})
    data = SnapshotCodec(["gone", "kept"], topics).encode(state)
    read = SnapshotCodec(["new", "kept"], topics).decode(data)
    assert list(read.rules) == [1]
    assert read.rules[1].deadline == 9


@property_of
@given(states(), st.data())
def test_damaged_bytes(state: KeyState, data: st.DataObject) -> None:
    """Bytes cut short or changed are a StateError, or another state; never another error."""
    topics: list[str] = []
    whole = SnapshotCodec(["one", "two"], topics).encode(state)
    with pytest.raises(StateError):
        SnapshotCodec(["one", "two"], topics).decode(whole[:-1])
    place = data.draw(st.integers(0, len(whole) - 1))
    changed = whole[:place] + bytes([data.draw(st.integers(0, 255))]) + whole[place + 1 :]
    with suppress(StateError):
        SnapshotCodec(["one", "two"], topics).decode(changed)


@property_of
@given(st.binary(max_size=40), st.data())
def test_a_seal(values: bytes, data: st.DataObject) -> None:
    """Sealed bytes are read back; with any bit changed, or cut short, they are not taken."""
    whole = sealed(pack([values]))
    assert unsealed(whole) == pack([values])
    bit = data.draw(st.integers(0, len(whole) * 8 - 1))
    changed = bytearray(whole)
    changed[bit // 8] ^= 1 << bit % 8
    for damaged in (bytes(changed), whole[: data.draw(st.integers(0, len(whole) - 1))]):
        with pytest.raises(StateError):
            unpack(unsealed(damaged))


def test_before_there_were_seals() -> None:
    """State of earlier versions has none, and is read."""
    assert unpack(unsealed(pack({"format": 2}))) == {"format": 2}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        pack(None),
        pack([]),
        pack([[], [], []]),
        pack([[7], [], [], {}]),
        pack([[], [], [[0, 0, 0]], {}]),
        pack([[], [], [], {"one": [[[0, 0, 0, 0, False]], [], None, False, False]}]),
        msgpack.packb(msgpack.ExtType(1, b"x")),
        msgpack.packb(msgpack.ExtType(2, b"9" * 40)),
        msgpack.packb(msgpack.ExtType(3, b"0")),
        msgpack.packb(msgpack.ExtType(99, b"")),
    ],
)
def test_bytes_of_no_state(data: bytes) -> None:
    """What is not a state of this format is a StateError."""
    with pytest.raises(StateError):
        SnapshotCodec(["one"], []).decode(data)


def golden_states() -> dict[str, KeyState]:
    """What the committed bytes of format 1 hold, written out by hand."""
    columns = [
        None,
        True,
        -5,
        1 << 70,
        2.5,
        "ü",
        b"\x00\xff",
        Decimal("-12.340"),
        dt.datetime(2024, 2, 29, 12, 0, 0, 123_456, dt.UTC),
        dt.date(1969, 12, 31),
        [1, [2]],
        {"a": {"b": Decimal(0)}},
    ]
    first = Event(-5, Coordinates("orders", 3, 1 << 40), 0, columns, b"bytes", "com.acme.Order")
    second = Event(7, Coordinates("payments", 0, 2), 0, [])
    start = Taken(None, 0, first)
    once, twice = Taken(start, 1, second), Taken(start, 2, second)
    return {
        "empty": KeyState(),
        "waiting": KeyState([event_ahead(5, 1), event_ahead(1 << 99, 2)]),
        "partials": KeyState(
            [],
            {
                0: RuleState(
                    [
                        Partial(1, first, start, 95, matched=False),
                        Partial(2, first, once, 95, matched=True),
                        Partial(3, first, twice, FOREVER, matched=True),
                    ],
                    [Finished(first, once, 7), Finished(first, twice, 8)],
                    deadline=95,
                    quiet_until=60_007,
                ),
                1: RuleState(paused=True, limited=True),
            },
        ),
    }


@pytest.mark.parametrize("name", golden_states())
def test_golden_state(name: str) -> None:
    """Bytes that an earlier release wrote load with everything in them."""
    topics = ["orders", "payments", "t"]
    expected = golden_states()[name]
    golden = GOLDEN / f"format-{FORMAT}-{name}.bin"
    if os.environ.get("REWRITE_GOLDEN") and not golden.exists():
        golden.write_bytes(SnapshotCodec(["one", "two"], topics).encode(expected))
    read = SnapshotCodec(["one", "two"], topics).decode(golden.read_bytes())
    assert content(read) == content(expected)


def test_every_golden_state_is_tested() -> None:
    """No file is left without its case."""
    files = {file.stem for file in GOLDEN.iterdir() if file.stem.startswith("format-")}
    assert files == {f"format-1-{name}" for name in golden_states()}
