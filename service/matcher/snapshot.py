"""The state of one key as bytes, and back.

Format 1, MessagePack::

    [waiting, events, taken, rules]
    waiting  numbers of the events ahead of the watermark
    events   [time, topic number, partition, offset, bits, columns, payload, type], each once
    taken    [previous or -1, step, event number], previous before its followers
    rules    {rule fingerprint: [partials, finished, quiet_until, paused, limited]}
    partials [state, first event, last taken, deadline, matched]
    finished [first event, last taken, time]

The caller keeps, next to many such entries, the format's version, the topic names and what bits
and columns mean (``Partitioning.fingerprint``). A rule's state is found again by its plan's
fingerprint: an unchanged rule keeps its partial matches, a changed one starts empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from service.errors import RESTORE, StateError
from service.matcher.keyed import KeyState
from service.matcher.partial import FOREVER, Finished, Partial, RuleState, Taken
from service.model import Coordinates, Event
from service.packing import DAMAGE, pack, unpack

FORMAT = 1


def packed_bits(bits: int) -> Any:
    """A mask as MessagePack can have it."""
    return bits if bits < 1 << 63 else bits.to_bytes(bits.bit_length() // 8 + 1, "little")


def unpacked_bits(packed: Any) -> int:
    """The mask that :func:`packed_bits` wrote."""
    return packed if type(packed) is int else int.from_bytes(packed, "little")


class SnapshotCodec:
    """Encodes and decodes key states for one numbering of rules and topics.

    ``topics`` grows as new topics are met; the caller stores it. ``translate`` rewrites the bits
    and columns of events stored under another rule set.
    """

    def __init__(self, fingerprints: Sequence[str], topics: list[str]) -> None:
        self._fingerprints = list(fingerprints)
        self._numbers = {text: number for number, text in enumerate(fingerprints)}
        self.topics = topics
        self._topic_numbers = {topic: number for number, topic in enumerate(topics)}

    def encode(self, state: KeyState) -> bytes:
        """The key's state as bytes of the current format."""
        events: list[Any] = []
        event_numbers: dict[int, int] = {}
        taken: list[Any] = []
        taken_numbers: dict[int, int] = {}

        def event_number(event: Event, bits: Any = 0) -> int:
            # Bits are asked for only once, when the event is applied: taken events need none.
            number = event_numbers.get(id(event))
            if number is None:
                number = event_numbers[id(event)] = len(events)
                time, (topic, partition, offset), _, columns, payload, kind = event
                topic_number = self._topic(topic)
                events.append((time, topic_number, partition, offset, bits, columns, payload, kind))
            return number

        def taken_number(last: Taken) -> int:
            found = taken_numbers.get(id(last))
            if found is not None:
                return found
            unknown = []
            number = -1
            for each in last.chain():
                known = taken_numbers.get(id(each))
                if known is not None:
                    number = known
                    break
                unknown.append(each)
            for each in reversed(unknown):
                taken.append((number, each.step, event_number(each.event)))
                number = taken_numbers[id(each)] = len(taken) - 1
            return number

        waiting = [event_number(event, packed_bits(event.bits)) for event in state.waiting]
        rules = {
            self._fingerprints[number]: (
                [
                    (p.state, event_number(p.first), taken_number(p.last), p.deadline, p.matched)
                    for p in rule.partials
                ],
                [(event_number(f.first), taken_number(f.last), f.time) for f in rule.finished],
                rule.quiet_until,
                rule.paused,
                rule.limited,
            )
            for number, rule in state.rules.items()
        }
        return pack((waiting, events, taken, rules))

    def decode(self, data: bytes, translate: Callable[[Event], Event] | None = None) -> KeyState:
        """The key's state; rules that are unknown by now are left out. StateError when the bytes
        are damaged."""
        parts = unpack(data)
        try:
            return self._decode(parts, translate)
        except DAMAGE as error:
            raise StateError(f"the stored state is damaged: {error!r}; {RESTORE}") from error

    def _decode(self, parts: Any, translate: Callable[[Event], Event] | None) -> KeyState:
        waiting, raw_events, raw_taken, raw_rules = parts
        topics = self.topics
        events = [
            Event(
                time,
                Coordinates(topics[topic], partition, offset),
                unpacked_bits(bits),
                columns,
                payload,
                kind,
            )
            for time, topic, partition, offset, bits, columns, payload, kind in raw_events
        ]
        if translate is not None:
            events = [translate(event) for event in events]
        taken: list[Taken] = []
        for previous, step, event in raw_taken:
            taken.append(Taken(taken[previous] if previous >= 0 else None, step, events[event]))
        rules: dict[int, RuleState] = {}
        for fingerprint, (partials, finished, quiet_until, paused, limited) in raw_rules.items():
            number = self._numbers.get(fingerprint)
            if number is None:
                continue
            held = [
                Partial(state, events[first], taken[last], deadline, matched)
                for state, first, last, deadline, matched in partials
            ]
            rules[number] = RuleState(
                partials=held,
                finished=[
                    Finished(events[first], taken[last], time) for first, last, time in finished
                ],
                deadline=min((p.deadline for p in held), default=FOREVER),
                quiet_until=quiet_until,
                paused=paused,
                limited=limited,
                events_at_most=len(raw_taken),
            )
        return KeyState([events[number] for number in waiting], rules)

    def _topic(self, topic: str) -> int:
        number = self._topic_numbers.get(topic)
        if number is None:
            number = self._topic_numbers[topic] = len(self.topics)
            self.topics.append(topic)
        return number
