"""The events that a batch brings to a key group: those that are late, and the others by
partitioning and slice of time."""

from __future__ import annotations

import json
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.columns.compilation import I64
from spark_cep.errors import StateError
from spark_cep.model import Coordinates, DeadLetter, LateEvent
from spark_cep.pipeline.match.batch_input import BatchInput
from spark_cep.pipeline.wire.event_packets import late_until, sizes_of

#: What an event takes beside its values.
_BYTES_PER_EVENT = 64

#: Of events: times and bytes.
Sized = tuple[I64, I64]

_OF_LATE = ["topic", "partition", "offset", "time", "record_key", "value", "headers"]


class BatchEvents:
    """The events of a batch, which are read more than once. ``watermark``: that before the batch,
    which late events had passed; ``keep``: by partitioning, whether its rules emit original
    records."""

    def __init__(self, batch: BatchInput, watermark: int, keep: Sequence[bool]) -> None:
        self._packets, self._unkeyed = batch.events, batch.unkeyed
        self._watermark = watermark
        self._keep = keep
        #: How many late events there were, by topic.
        self.late: Counter[str] = Counter()
        #: How many dead letters are of events that other rules could use.
        self.partly_used = 0

    def sizes(self) -> list[list[Sized]]:
        """Times and sizes of the events that are not late, by partitioning; counts those that
        are."""
        found: list[list[Sized]] = [[] for _ in self._keep]
        watermark = self._watermark
        for number, rows in self._packets:
            time = rows.column("time").to_numpy()
            late = time <= watermark
            kept = self._kept(number, rows)
            sizes = sizes_of(kept) + _BYTES_PER_EVENT
            if late.any():
                _need_originals(rows, watermark)
                self._count_late(rows.filter(pa.array(late)))
                time, sizes = time[~late], sizes[~late]
            found[number].append((time, sizes))
        return found

    def _kept(self, number: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Without what only late events are written with."""
        value = [] if self._keep[number] else ["value"]
        return rows.drop_columns(["record_key", "headers", *value])

    def timely(self, number: int, after: int, until: int) -> pa.RecordBatch | None:
        """The events of a slice of time, as one table of rows; ``None`` when there are none."""
        kept = []
        for _, rows in self._packets.items(number):
            time = rows.column("time").to_numpy()
            here = (time > after) & (time <= until)
            if here.any():
                mine = self._kept(number, rows)
                kept.append(mine if here.all() else mine.filter(pa.array(here)))
        if not kept:
            return None
        if len(kept) == 1:
            return kept[0]
        tables = [pa.Table.from_batches([rows]) for rows in kept]
        together = pa.concat_tables(tables, promote_options="default")
        return together.combine_chunks().to_batches()[0]

    def _count_late(self, rows: pa.RecordBatch) -> None:
        for topic in pc.value_counts(_once(rows).column("topic")).to_pylist():
            self.late[topic["values"]] += topic["counts"]

    def dead_letters(self) -> Iterator[DeadLetter]:
        """Yield the dead letters of events without key that are not late."""
        for event in self._unkeyed:
            at = Coordinates(event.topic, event.partition, event.offset)
            if event.time > self._watermark:
                self.partly_used += event.used
                yield DeadLetter(
                    at, Reason.MISSING_KEY.value, event.detail, event.record_key, event.value
                )
            else:
                self.late[event.topic] += 1

    def late_events(self) -> Iterator[LateEvent]:
        """The late events; to be asked for when the others have been taken."""
        if not self.late:
            return
        watermark = self._watermark
        unkeyed = (event._asdict() for event in self._unkeyed if event.time <= watermark)
        rows = (
            row
            for _, rows in self._packets
            for row in _once(rows.filter(pc.less_equal(rows.column("time"), watermark)))
            .select(_OF_LATE)
            .to_pylist()
        )
        for row in chain(unkeyed, rows):
            at = Coordinates(row["topic"], row["partition"], row["offset"])
            yield LateEvent(
                at,
                row["time"],
                watermark,
                row["record_key"],
                row["value"],
                _headers(row["headers"]),
            )


def _once(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Late events: one that several partitionings wanted is late once, and one without value only
    had to be known to have come."""
    return rows.filter(pc.and_(rows.column("first"), pc.is_valid(rows.column("value"))))


def _need_originals(rows: pa.RecordBatch, watermark: int) -> None:
    """Raise StateError when late events may lack what they are written with. The driver knows the
    watermark of the batch before, so it would be a fault of ours; a batch that is run again after a
    start has everything."""
    until = late_until(rows)
    if until is not None and until < watermark:
        raise StateError(
            f"the watermark is {watermark}, and the driver took it for {until} at most: late events"
            " would be lost; start the job again"
        )


def _headers(text: str | None) -> tuple[tuple[str, bytes | None], ...]:
    """A record's headers out of Spark's JSON, which has binary as base64 and leaves out NULL."""
    return tuple(
        (header["key"], b64decode(header["value"]) if "value" in header else None)
        for header in json.loads(text or "[]")
    )
