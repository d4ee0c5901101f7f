"""The states of many keys as bytes, and back; put together, and parted.

Columnar format 1: a checksum (CRC-32, 4 bytes, little-endian), for the kernel trusts the numbers
that it is given, and MessagePack::

    [keys, rules, masks, waiting, waiting_key, waiting_mask, events, event_key, units, partials,
     finished, nodes]
    keys     each once; ``units`` and the ``*_key`` are places in it
    rules    fingerprints of the rules that units have places of
    events   [time, topic, partition, offset, type, columns or nil, payload or nil]
    units, partials, finished, nodes
             their columns, as ``_FIELDS`` names them

A column of numbers is ``[count, least, width, bytes]``: what each is above the least, in ``width``
bytes each, little-endian; a column of one value has width 0. Rules that are unknown by now are
left out when the state is read.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

from service.errors import RESTORE, StateError
from service.matcher.columnar.events import EventTable, together
from service.matcher.columnar.kernel import FINISHED, I64, PARTIAL
from service.matcher.columnar.keys import KeysState
from service.matcher.columnar.matcher import NODE, UNIT, Held
from service.matcher.snapshot import packed_bits, unpacked_bits
from service.packing import DAMAGE, pack, unpack

#: What is written of units, partial and finished matches and nodes, in this order.
_FIELDS = (
    (
        "key", "rule", "deadline", "quiet", "paused", "limited", "events_bound", "partials",
        "finished",
    ),
    ("state", "first", "last", "deadline", "matched"),
    ("first", "last", "time"),
    ("previous", "step", "event"),
)  # fmt: skip
_CHECKSUM = 4
_WIDTHS = ((0, 0), (1 << 8, 1), (1 << 16, 2), (1 << 32, 4))


def packed_numbers(column: Any) -> list[Any]:
    """A column of whole numbers in as few bytes as its range asks for."""
    count = len(column)
    if not count:
        return [0, 0, 0, b""]
    least, most = int(column.min()), int(column.max())
    span = most - least
    if span == 0:
        return [count, least, 0, b""]
    width = next((width for below, width in _WIDTHS[1:] if span < below), 8)
    # Beyond 2⁶³ the difference wraps, and wraps back when it is read.
    above = (column.astype(np.int64) - np.int64(least)).astype(f"<u{width}")
    return [count, least, width, above.tobytes()]


def unpacked_numbers(packed: Sequence[Any], kind: Any) -> Any:
    """The column that :func:`packed_numbers` wrote."""
    count, least, width, data = packed
    if not width:
        return np.full(count, least, kind)
    above = np.frombuffer(data, f"<u{width}", count)
    return (above.astype(np.int64) + np.int64(least)).astype(kind)


def encode(state: KeysState, fingerprints: Sequence[str]) -> bytes:
    """The state as bytes; ``fingerprints`` are of the rules, by number."""
    held = state.held
    rules = np.unique(held.units["rule"])
    units = held.units.copy()
    units["rule"] = np.searchsorted(rules, units["rule"])
    data = pack(
        (
            state.keys,
            [fingerprints[rule] for rule in rules.tolist()],
            [packed_bits(mask) for mask in state.masks],
            _packed_events(state.waiting),
            packed_numbers(state.waiting_key),
            packed_numbers(state.waiting_mask),
            _packed_events(state.events),
            packed_numbers(state.event_key),
            *(
                [packed_numbers(table[name]) for name in names]
                for table, names in zip((units, *held[1:]), _FIELDS, strict=True)
            ),
        )
    )
    return _checksum(data) + data


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(_CHECKSUM, "little")


def _packed_events(events: EventTable) -> list[Any]:
    numbers = (events.time, events.topic, events.partition, events.offset, events.type)
    return [*map(packed_numbers, numbers), events.columns, events.payload]


def _unpacked_events(packed: Sequence[Any]) -> EventTable:
    time, topic, partition, offset, kind, columns, payload = packed
    i32, i64 = np.int32, np.int64
    return EventTable(
        unpacked_numbers(time, i64),
        unpacked_numbers(topic, i32),
        unpacked_numbers(partition, i32),
        unpacked_numbers(offset, i64),
        unpacked_numbers(kind, i32),
        columns,
        payload,
    )


def decode(data: bytes, fingerprints: Sequence[str]) -> KeysState:
    """The state that :func:`encode` wrote, for these rules. StateError when it is damaged."""
    if data[:_CHECKSUM] != _checksum(data[_CHECKSUM:]):
        raise StateError(f"the stored state is damaged: its checksum is another; {RESTORE}")
    parts = unpack(data[_CHECKSUM:])
    try:
        return _decoded(parts, fingerprints)
    except DAMAGE as error:
        raise StateError(f"the stored state is damaged: {error!r}; {RESTORE}") from error


def _decoded(parts: Any, fingerprints: Sequence[str]) -> KeysState:
    (
        keys, rules, masks, waiting, waiting_key, waiting_mask, events, event_key, units,
        partials, finished, nodes,
    ) = parts  # fmt: skip
    i64 = np.int64
    tables = []
    kinds = (UNIT, PARTIAL, FINISHED, NODE)
    for columns, names, kind in zip(
        (units, partials, finished, nodes), _FIELDS, kinds, strict=True
    ):
        table = np.zeros(columns[0][0], kind)
        for column, name in zip(columns, names, strict=True):
            count, least, width, _ = column
            # One value needs no column of it to be written to all rows.
            same = not width and count == len(table)
            table[name] = least if same else unpacked_numbers(column, kind[name])
        tables.append(table)
    held = Held(*tables)
    numbers = {text: number for number, text in enumerate(fingerprints)}
    places = np.array([numbers.get(text, -1) for text in rules], np.int32)
    if len(places):
        held.units["rule"] = places[held.units["rule"]]
    state = KeysState(
        keys=keys,
        masks=[unpacked_bits(mask) for mask in masks],
        waiting=_unpacked_events(waiting),
        waiting_key=unpacked_numbers(waiting_key, i64),
        waiting_mask=unpacked_numbers(waiting_mask, i64),
        events=_unpacked_events(events),
        event_key=unpacked_numbers(event_key, i64),
        held=held,
    )
    known = held.units["rule"] >= 0
    if known.all():
        return state
    state.held = _only(held, known)
    used = np.zeros(len(keys), bool)
    used[state.held.units["key"]] = used[state.waiting_key] = True
    return chosen(state, used)


def _only(held: Held, units: Any) -> Held:
    """Some units. Nodes of keys that have others go with the next run."""
    return Held(
        held.units[units],
        held.partials[np.repeat(units, held.units["partials"])],
        held.finished[np.repeat(units, held.units["finished"])],
        held.nodes,
    )


def joined(states: Sequence[KeysState]) -> KeysState:
    """Several states, of different keys, as one."""
    states = [state for state in states if state.keys]
    if not states:
        return KeysState()
    if len(states) == 1:
        return states[0]
    keys = _starts([len(state.keys) for state in states])
    events = _starts([len(state.events) for state in states])
    nodes = _starts([len(state.held.nodes) for state in states])
    masks: dict[int, int] = {}
    mask_places = [
        np.array([masks.setdefault(mask, len(masks)) for mask in state.masks], np.int64)
        for state in states
    ]

    def moved(columns: Sequence[Any], starts: Sequence[int]) -> Any:
        return np.concatenate([c + start for c, start in zip(columns, starts, strict=True)])

    held = Held(*map(np.concatenate, zip(*(state.held for state in states), strict=True)))
    units = [len(state.held.units) for state in states]
    held.units["key"] += np.repeat(keys, units)
    for table, rows in ((held.partials, 1), (held.finished, 2)):
        counts = [len(state.held[rows]) for state in states]
        table["first"] += np.repeat(np.array(events, np.int32), counts)
        table["last"] += np.repeat(np.array(nodes, np.int32), counts)
    counts = [len(state.held.nodes) for state in states]
    held.nodes["event"] += np.repeat(np.array(events, np.int32), counts)
    previous = held.nodes["previous"]
    previous += np.where(previous < 0, 0, np.repeat(np.array(nodes, np.int32), counts))
    return KeysState(
        keys=[key for state in states for key in state.keys],
        masks=list(masks),
        waiting=together([state.waiting for state in states]),
        waiting_key=moved([state.waiting_key for state in states], keys),
        waiting_mask=np.concatenate(
            [p[state.waiting_mask] for p, state in zip(mask_places, states, strict=True)]
        ),
        events=together([state.events for state in states]),
        event_key=moved([state.event_key for state in states], keys),
        held=held,
    )


def chosen(state: KeysState, wanted: Any) -> KeysState:
    """The state of some keys; ``wanted`` says for each key whether it is one of them."""
    if wanted.all():
        return state
    if not wanted.any():
        return KeysState()
    held = state.held
    of_units = wanted[held.units["key"]]
    of_events = wanted[state.event_key]
    of_nodes = of_events[held.nodes["event"]]
    of_waiting = wanted[state.waiting_key]
    keys, events, nodes = (np.cumsum(of) - 1 for of in (wanted, of_events, of_nodes))
    kept = Held(
        held.units[of_units],
        held.partials[np.repeat(of_units, held.units["partials"])],
        held.finished[np.repeat(of_units, held.units["finished"])],
        held.nodes[of_nodes],
    )
    _renumber(kept, keys, events, nodes)
    return KeysState(
        keys=list(compress(state.keys, wanted.tolist())),
        masks=state.masks,
        waiting=state.waiting.take(np.flatnonzero(of_waiting)),
        waiting_key=keys[state.waiting_key[of_waiting]],
        waiting_mask=state.waiting_mask[of_waiting],
        events=state.events.take(np.flatnonzero(of_events)),
        event_key=keys[state.event_key[of_events]],
        held=kept,
    )


def _renumber(held: Held, keys: I64, events: I64, nodes: I64) -> None:
    """Give keys, events and nodes other numbers, in place: those that stand at the old ones."""
    held.units["key"] = keys[held.units["key"]]
    for table in (held.partials, held.finished):
        table["first"] = events[table["first"]]
        table["last"] = nodes[table["last"]]
    held.nodes["event"] = events[held.nodes["event"]]
    previous = held.nodes["previous"]
    inner = previous >= 0
    previous[inner] = nodes[previous[inner]]


def _starts(counts: Sequence[int]) -> list[int]:
    return [0, *np.cumsum(counts)[:-1].tolist()]


def parted(state: KeysState, parts: I64, count: int) -> list[KeysState]:
    """The state as ``count`` states; ``parts`` says for each key to which it goes."""
    held = state.held
    rows: dict[str, Any] = {}
    ends: dict[str, list[int]] = {}
    places: dict[str, Any] = {}

    def cut(name: str, part: Any) -> None:
        order = np.argsort(part, kind="stable")
        rows[name] = order
        ends[name] = np.searchsorted(part[order], np.arange(count + 1)).tolist()
        place = places[name] = np.empty(len(part), np.int64)
        place[order] = np.arange(len(part)) - np.array(ends[name])[part[order]]

    unit_part = parts[held.units["key"]]
    cut("keys", parts)
    cut("units", unit_part)
    cut("partials", np.repeat(unit_part, held.units["partials"]))
    cut("finished", np.repeat(unit_part, held.units["finished"]))
    cut("events", parts[state.event_key])
    cut("nodes", parts[state.event_key][held.nodes["event"]])
    cut("waiting", parts[state.waiting_key])
    keys = [state.keys[row] for row in rows["keys"].tolist()]
    tables = ("units", "partials", "finished", "nodes")
    cut_up = Held(*(table[rows[name]] for table, name in zip(held, tables, strict=True)))
    _renumber(cut_up, places["keys"], places["events"], places["nodes"])
    events, waiting = rows["events"], rows["waiting"]
    sorted_events, sorted_waiting = state.events.take(events), state.waiting.take(waiting)
    event_key = places["keys"][state.event_key][events]
    waiting_key = places["keys"][state.waiting_key][waiting]
    waiting_mask = state.waiting_mask[waiting]

    def part(number: int) -> KeysState:
        span = {name: slice(each[number], each[number + 1]) for name, each in ends.items()}
        used, own_mask = np.unique(waiting_mask[span["waiting"]], return_inverse=True)
        return KeysState(
            keys=keys[span["keys"]],
            masks=[state.masks[mask] for mask in used.tolist()],
            waiting=sorted_waiting.rows(span["waiting"]),
            waiting_key=waiting_key[span["waiting"]],
            waiting_mask=own_mask,
            events=sorted_events.rows(span["events"]),
            event_key=event_key[span["events"]],
            held=Held(*(table[span[name]] for table, name in zip(cut_up, tables, strict=True))),
        )

    return [part(number) for number in range(count)]
