"""The matcher as a stateful Spark operator.

The thin adapter between ``transformWithState`` and :class:`service.pipeline.key_group.KeyGroup`.
The grouping key is the key group. Its state is

* ``group`` (one value): clock, numbers of topics, meanings of bits and columns, which slots there
  are and when each is next due, and how many partial matches live per rule;
* ``slots`` (a map): keys spread over slots by hash, each slot one entry.

Each value carries a checksum: what is not as it was written is refused, never decoded.

All deadlines up to the batch's watermark are decided in the batch: they need no later event of
their key. Output leaves in packets while the group is still at work, so that what is found is
never all in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from service.codecs.outputs import OutputEncoder
from service.compiler.rule_set import RuleSetPlan
from service.matcher.engines import PartitioningMatcher
from service.matcher.outputs import Outputs
from service.matcher.snapshot import pack, sealed, unpack, unsealed
from service.pipeline.key_group import KeyGroup, MatchOptions
from service.pipeline.pack import Kind, Unkeyed, rows_of
from service.pipeline.watermark import Clock, ClockStatement

OUTPUT_SQL_SCHEMA = "kind INT, packet BINARY"

_VALUE = StructType([StructField("value", BinaryType())])
_NAME = StructType([StructField("name", StringType())])
_RECORDS_PER_PACKET = 1_000


@dataclass
class _Received:
    """What the packets of a batch hold; what they say of time goes to the clock."""

    clock: Clock
    events: list[tuple[int, pa.RecordBatch]] = field(default_factory=list)
    unkeyed: list[Unkeyed] = field(default_factory=list)
    records: list[Any] = field(default_factory=list)
    counts: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def take(self, kind: int, packet: bytes) -> None:
        """One packet."""
        if kind >= Kind.EVENTS:
            self.events.append((kind - Kind.EVENTS, rows_of(packet)))
        elif kind == Kind.MAXIMA:
            self.clock.read(unpack(packet))
        elif kind == Kind.CLOCK:
            self.clock.state(ClockStatement.from_json(unpack(packet)))
        elif kind == Kind.UNKEYED:
            self.unkeyed += [Unkeyed(*fields) for fields in unpack(packet)]
        elif kind == Kind.RECORDS:
            self.records.extend(unpack(packet))
        else:
            for *what, count in unpack(packet):
                self.counts[tuple(what)] += count


class MatchProcessor(StatefulProcessor):
    """Applies all partitionings of a rule set to the packets of one key group at a time."""

    def __init__(self, plan: RuleSetPlan, encoder: OutputEncoder, options: MatchOptions) -> None:
        self._plan = plan
        self._encoder = encoder
        self._options = options
        self._matchers: tuple[PartitioningMatcher, ...] = ()
        self._state_ns = 0

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state; build the matchers once per task."""
        self._group_state = handle.getValueState("group", _VALUE)
        self._slot_state = handle.getMapState("slots", _NAME, _VALUE)
        if not self._matchers:
            self._matchers = tuple(
                PartitioningMatcher(part, self._options.types) for part in self._plan.partitionings
            )

    def handleInputRows(  # noqa: N802  Spark's name
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: N803, ARG002  Spark's interface
    ) -> Iterator[Row]:
        """One key group's packets of one batch in, output packets out."""
        group = KeyGroup(key[0], self._plan, self._options, self._matchers)
        stored = self._group_state.get()
        if stored is not None:
            group.restore(unpack(unsealed(bytes(stored[0]))))
        received = _Received(group.clock)
        for row in rows:
            received.take(row[1], bytes(row[2]))
        records, counts = received.records, received.counts
        self._state_ns = matching = encoding = 0
        began = perf_counter_ns()
        for outputs in group.run(received.events, received.unkeyed, self._load, self._store):
            matched = perf_counter_ns()
            self._encode(outputs, records, counts)
            encoded = perf_counter_ns()
            matching += matched - began
            encoding += encoded - matched
            if len(records) >= _RECORDS_PER_PACKET:
                yield from _packets(records)
                records = []
            began = perf_counter_ns()
        matching += perf_counter_ns() - began
        self._group_state.update((sealed(pack(group.packed())),))
        for topic, count in group.late.items():
            counts["late", topic] += count
        for event in group.late_events() if self._options.emit_late else ():
            records.append(self._encoder.late(event))
            if len(records) >= _RECORDS_PER_PACKET:
                yield from _packets(records)
                records = []
        yield from _packets(records)
        counts["busy_us", "state"] = self._state_ns // 1000
        counts["busy_us", "match"] = (matching - self._state_ns) // 1000
        counts["busy_us", "encode"] = encoding // 1000
        report = {
            "group": group.number,
            "counts": [[*what, count] for what, count in counts.items()],
            "live": group.live(),
            "gone": group.gone,
            "clock": group.clock.packed() if group.number == 0 else None,
        }
        yield Row(kind=int(Kind.COUNTS), packet=pack(report))

    def close(self) -> None:
        """Nothing to close: Spark owns the state."""

    def _encode(
        self, outputs: Outputs, records: list[Any], counts: Counter[tuple[str, ...]]
    ) -> None:
        encoder = self._encoder
        counts.update(outputs.counts)
        records.extend(encoder.match(match) for match in outputs.matches)
        records.extend(encoder.timeout(timeout) for timeout in outputs.timeouts)
        for letter in outputs.dead_letters:
            counts["dead_letters", letter.reason] += 1
            records.append(encoder.dead_letter(letter))

    def _load(self, name: str) -> bytes | None:
        began = perf_counter_ns()
        found = self._slot_state.getValue((name,))
        self._state_ns += perf_counter_ns() - began
        return None if found is None else unsealed(bytes(found[0]))

    def _store(self, name: str, value: bytes | None) -> None:
        began = perf_counter_ns()
        if value is None:
            self._slot_state.removeKey((name,))
        else:
            self._slot_state.updateValue((name,), (sealed(value),))
        self._state_ns += perf_counter_ns() - began


def _packets(records: list[Any]) -> Iterator[Row]:
    for start in range(0, len(records), _RECORDS_PER_PACKET):
        cut = [list(record) for record in records[start : start + _RECORDS_PER_PACKET]]
        yield Row(kind=int(Kind.RECORDS), packet=pack(cut))
