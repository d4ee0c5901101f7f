"""A key group's state as it is stored, read without its rules: what is held, and until when.

The state names its rules itself (id, version, fingerprint), so neither plans nor schemas are
needed, and what a rule that is gone has left is told apart from what lives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from spark_cep.columns.compilation import FOREVER, NONE
from spark_cep.columns.texts import TextSet
from spark_cep.columns.vectors import texts_of
from spark_cep.matcher.batch.events import Names
from spark_cep.matcher.findings.partial import END_OF_TIME
from spark_cep.matcher.keys import KeysState, rule_states
from spark_cep.matcher.keys_state import chosen
from spark_cep.matcher.row_pattern.keys import states_of
from spark_cep.matcher.row_pattern.states import attempts
from spark_cep.matcher.snapshot.waiting_events import BATCH, decode_batch
from spark_cep.model import Coordinates
from spark_cep.packing import unpack, unsealed
from spark_cep.pipeline.state.buckets import buckets_of, hashes_of, whole
from spark_cep.pipeline.state.entries import base_name, check_entry
from spark_cep.pipeline.state.group_format import check_format
from spark_cep.pipeline.state.group_values import check_values


class StoredRule(NamedTuple):
    """A rule that the state knows."""

    id: str
    version: int
    fingerprint: str
    number: int


@dataclass(slots=True)
class RuleHeld:
    """The state of one rule: the number of its keys and partial matches, the time of the oldest
    event that opened one, and the earliest deadline (milliseconds; ``None`` without one)."""

    keys: int = 0
    partial_matches: int = 0
    oldest: int | None = None
    due: int | None = None

    def add(self, other: RuleHeld) -> None:
        """Take in what is held elsewhere, for other keys."""
        self.keys += other.keys
        self.partial_matches += other.partial_matches
        self.oldest = earlier(self.oldest, other.oldest)
        self.due = earlier(self.due, other.due)

    def packed(self) -> list[Any]:
        """Plain values."""
        return [self.keys, self.partial_matches, self.oldest, self.due]


@dataclass(slots=True)
class BucketHeld:
    """The content of one bucket: keys, events that wait for the watermark, and the state of each
    rule by fingerprint."""

    keys: int = 0
    waiting: int = 0
    rules: dict[str, RuleHeld] = field(default_factory=dict)


class HeldPartial(NamedTuple):
    """A partial match of a key, or, in SQL, a way in which its attempt has taken rows. ``events``:
    the number of the step, or variable, and the coordinates of each, first to last; ``places``: the
    states, or instructions, from which it goes on."""

    rule: StoredRule
    began: int
    deadline: int
    events: list[tuple[int, Coordinates]]
    places: list[int]


class StoredGroup:
    """The value ``group`` of a key group. StateError when it is damaged or of another format."""

    def __init__(self, stored: bytes) -> None:
        self._values = unpack(unsealed(stored))
        check_format(self._values)
        check_values(self._values)
        self._names = Names(self._values["topics"], self._values["types"])
        self.rules = tuple(
            StoredRule(id_, version, fingerprint, number)
            for fingerprint, (id_, version, number, *_) in self._values["rules"].items()
        )

    @property
    def layout(self) -> dict[str, int]:
        """Format and number of key groups."""
        return {name: self._values[name] for name in ("format", "key_groups")}

    @property
    def buckets(self) -> int:
        """The number of buckets of the group, all partitionings together."""
        return sum(self._values["buckets"].values())

    @property
    def watermark(self) -> int:
        """The watermark, in milliseconds."""
        return int(self._values["clock"][0])

    @property
    def clock(self) -> list[tuple[str, int, int | None]]:
        """Topic, partition and largest event time of each partition read."""
        return [(topic, partition, time) for topic, partition, time in self._values["clock"][1]]

    @property
    def next_due(self) -> int | None:
        """Before when nothing is due, in milliseconds of event time; ``None``: nothing ever is."""
        due = min((due for due, *_ in self._values["entries"].values()), default=FOREVER)
        return _due(due)

    def check(self, number: int, name: str, data: bytes) -> bytes:
        """The value of an entry of this group, the key group ``number``. StateError when it is not
        what was written last."""
        _, size, checksum = self._values["entries"][name]
        return check_entry(number, name, data, size, checksum)

    def bucket(self, base: bytes, changes: bytes | None = None) -> BucketHeld:
        """Read a bucket of this group, or an entry of waiting events."""
        if base[:1] == bytes([BATCH]):
            batch = decode_batch(base)
            return BucketHeld(keys=len(batch.keys), waiting=len(batch))
        state = self._whole(base, changes)
        held = BucketHeld(keys=len(state.keys))
        _add_instances(held, state, [rule.fingerprint for rule in self.rules])
        return held

    def buckets_of(self, key: str | None) -> list[str]:
        """The names of the bases of the buckets that a key is in, one for each partitioning."""
        hashes = hashes_of(texts_of([key]))
        return [
            base_name(prefix, int(buckets_of(hashes, count)[0]))
            for prefix, count in self._values["buckets"].items()
        ]

    def of_key(self, base: bytes, changes: bytes | None, key: str | None) -> Iterator[HeldPartial]:
        """The partial matches that a bucket holds of one key."""
        if base[:1] == bytes([BATCH]):
            return
        state = self._whole(base, changes)
        state = chosen(state, TextSet(texts_of([key])).find(state.keys) != NONE)
        yield from (partial for _, partial in self._partials(state))

    def of_all_keys(
        self, base: bytes, changes: bytes | None
    ) -> Iterator[tuple[str | None, HeldPartial]]:
        """The partial matches that a bucket holds, each with its key."""
        if base[:1] != bytes([BATCH]):
            yield from self._partials(self._whole(base, changes))

    def _partials(self, state: KeysState) -> Iterator[tuple[str | None, HeldPartial]]:
        for key, number, rule in rule_states(state, self._names, ()):
            for partial in rule.partials:
                chain = [(each.step, each.event.at) for each in partial.last.chain()][::-1]
                began, deadline = partial.first.time, partial.deadline
                yield key, HeldPartial(self.rules[number], began, deadline, chain, [partial.state])
        yield from self._attempts(state)

    def _attempts(self, state: KeysState) -> Iterator[tuple[str | None, HeldPartial]]:
        """The ways of the attempts of rules in SQL."""
        known = state.row_patterns
        states = states_of(known)
        event = state.events.objects(self._names, ())
        numbers = states.rows["event"].tolist()
        for attempt in attempts(states):
            rule, due = (
                self.rules[known.instances["rule"][attempt.key]],
                int(known.due[attempt.key]),
            )
            deadline = FOREVER if due >= END_OF_TIME else due
            of_key = state.keys.text(int(known.instances["key"][attempt.key]))
            rows = [event(each) for each in numbers[attempt.row :][: attempt.rows]]
            ways: dict[tuple[int, ...], list[int]] = {}
            for at, labels in attempt.threads:
                ways.setdefault(labels, []).append(at)
            for labels, places in ways.items():
                if labels:
                    taken = [(label, row.at) for label, row in zip(labels, rows, strict=False)]
                    yield of_key, HeldPartial(rule, rows[0].time, deadline, taken, places)

    def _whole(self, base: bytes, changes: bytes | None) -> KeysState:
        """All of a bucket; rules by their place in ``rules``."""
        places = {rule.number: place for place, rule in enumerate(self.rules)}
        # What an older version has left to this one, and no batch has touched since.
        for number, to, *_ in reversed(self._values.get("carried", [])):
            if to in places:
                places[number] = places[to]
        beside = [] if changes is None else unpack(changes)
        return whole([[base]], [beside], places)


def _add_instances(held: BucketHeld, state: KeysState, fingerprints: list[str]) -> None:
    for part in state.remembered:
        rules, live, deadlines = part.instances["rule"], part.live, part.deadlines
        oldest = part.oldest(state.events.time)
        for number in np.unique(rules).tolist():
            mine = rules == number
            held.rules[fingerprints[number]] = RuleHeld(
                int(mine.sum()),
                int(live[mine].sum()),
                _due(int(oldest[mine].min())),
                _due(int(deadlines[mine].min())),
            )


def _due(time: int) -> int | None:
    return None if time >= END_OF_TIME else time


def earlier(one: int | None, other: int | None) -> int | None:
    """The earlier of two times, of which either may be absent."""
    return min((time for time in (one, other) if time is not None), default=None)
