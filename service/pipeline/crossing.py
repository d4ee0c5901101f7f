"""How records go from Spark to Python: most as two numbers, the others whole.

Between the two each row costs by its columns. Of a record that no rule wants, only its time, its
timestamp and its size count, so it *passes* as two numbers; every other record is *carried*: an
array of one structure, with all columns, where the others have NULL, which costs next to nothing
and arrives in Python as the carried rows alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from service.pipeline.record_faults import Fault

#: Event time and partition; Kafka's timestamp, fault and size.
_TIME, _SIZE = "passed_time", "passed_size"
#: Only where more than one topic is read.
_TOPIC = "passed_topic"
_CARRIED = "carried"

_PARTITION_BITS, _FAULT_BITS, _SIZE_BITS = 15, 2, 19
_AROUND_SIZE = _FAULT_BITS + _SIZE_BITS
#: Of a record without event time: before the first one that there is.
NO_TIME = -(1 << 47)
#: In place of both numbers, where a record is carried.
_NOT_PASSED = -(1 << 63)


class Tally(NamedTuple):
    """Records of one partition and fault: how many, their newest event time (ms; ``None``: none has
    one) and timestamp (ms), and their bytes."""

    topic: str
    partition: int
    fault: int
    records: int
    time: int | None
    kafka_time: int
    size: int


def cross(
    frame: DataFrame, carried: str, columns: Sequence[Column], topic: str | None
) -> DataFrame:
    """The rows of ``frame``; those for which the SQL ``carried`` is true with ``columns``.

    Of all it has ``topic, partition, time, fault, kafka_time, size`` (:class:`Tally`), and of the
    others a fault below 4. ``topic``: the only one, if that is known. A record that does not fit
    into the two numbers (half a mebibyte, or of the year 2109) is carried, too.
    """
    most = (1 << 63 - _AROUND_SIZE) - 1
    fits = (
        f"partition < {1 << _PARTITION_BITS} AND size < {1 << _SIZE_BITS}"
        f" AND kafka_time BETWEEN {-most}L AND {most}L"
    )
    time = f"shiftleft(coalesce(time, {NO_TIME}L), {_PARTITION_BITS}) | partition"
    size = (
        f"shiftleft(kafka_time, {_AROUND_SIZE})"
        f" | shiftleft(CAST(fault AS BIGINT), {_SIZE_BITS}) | size"
    )
    not_passed = "CAST('-9223372036854775808' AS BIGINT)"
    frame = frame.withColumn("_carry", F.expr(f"({carried}) OR NOT ({fits})"))
    crossing = [
        F.expr(f"IF(_carry, {not_passed}, {time})").alias(_TIME),
        F.expr(f"IF(_carry, {not_passed}, {size})").alias(_SIZE),
        F.when(F.col("_carry"), F.array(F.struct(*columns))).alias(_CARRIED),
    ]
    if topic is None:
        crossing.append(F.expr("IF(_carry, NULL, topic)").alias(_TOPIC))
    return frame.select(*crossing)


def passed(batches: Sequence[pa.RecordBatch], topic: str | None) -> list[Tally]:
    """What those count of whom Python was given no more; ``topic`` as in :func:`cross`."""
    table = pa.Table.from_batches([batch.drop_columns(_CARRIED) for batch in batches])
    times, sizes = table.column(_TIME).to_numpy(), table.column(_SIZE).to_numpy()
    here = times != _NOT_PASSED
    times, sizes = times[here], sizes[here]
    topics: list[str] = [] if topic is None else [topic]
    number: NDArray[np.int64] | int = 0
    if topic is None:
        encoded = table.column(_TOPIC).combine_chunks().dictionary_encode()
        topics = encoded.dictionary.to_pylist()
        number = encoded.indices.drop_null().to_numpy()
    return tallies(
        topics,
        number,
        times & (1 << _PARTITION_BITS) - 1,
        sizes >> _SIZE_BITS & (1 << _FAULT_BITS) - 1,
        times >> _PARTITION_BITS,
        sizes >> _AROUND_SIZE,
        sizes & (1 << _SIZE_BITS) - 1,
    )


def tallies(
    topics: Sequence[str],
    topic: NDArray[Any] | int,
    partition: NDArray[Any],
    fault: NDArray[Any],
    time: NDArray[np.int64],
    kafka_time: NDArray[np.int64],
    size: NDArray[Any],
) -> list[Tally]:
    """What records count: arrays with one value for each; ``topic`` is a place in ``topics``, and
    ``NO_TIME`` the time of those that have none."""
    partition_at, topic_at = 4, 4 + 32
    which = partition.astype(np.int64) << partition_at | fault
    which |= np.asarray(topic, np.int64) << topic_at
    if not len(which):
        return []
    found = []
    # One task reads one partition, so this goes round once or twice.
    kinds = pc.unique(pa.array(which)).to_pylist()
    for one in kinds:
        mine: Any = slice(None) if len(kinds) == 1 else which == one
        newest, sizes = int(time[mine].max()), size[mine]
        found.append(
            Tally(
                topic=topics[one >> topic_at],
                partition=one >> partition_at & (1 << topic_at - partition_at) - 1,
                fault=one & (1 << partition_at) - 1,
                records=len(sizes),
                time=None if newest == NO_TIME else newest,
                kafka_time=int(kafka_time[mine].max()),
                size=int(sizes.sum()),
            )
        )
    return found


def carried(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows that were carried, with their columns."""
    arrays = [batch.column(_CARRIED).flatten() for batch in batches]
    return pa.RecordBatch.from_struct_array(pa.concat_arrays(arrays))


def tallied(rows: pa.RecordBatch) -> list[Tally]:
    """What carried rows count."""
    topics = rows.column("topic").dictionary_encode()
    numbers = ("partition", "fault", "kafka_time", "size")
    partition, fault, kafka_time, size = (rows.column(name).to_numpy() for name in numbers)
    return tallies(
        topics.dictionary.to_pylist(),
        topics.indices.to_numpy(),
        partition,
        fault,
        pc.fill_null(rows.column("time"), NO_TIME).to_numpy(),
        kafka_time,
        size,
    )


@dataclass(frozen=True)
class Crossing:
    """What :func:`cross` made, in Python; ``topic`` as there."""

    topic: str | None

    def read(
        self, batches: Sequence[pa.RecordBatch], latest: int | None
    ) -> tuple[list[Tally], pa.RecordBatch]:
        """See :class:`service.pipeline.pack.Records`."""
        rows = _not_after(latest, carried(batches))
        return [*passed(batches, self.topic), *tallied(rows)], rows


def _not_after(latest: int | None, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows; those with an event time after ``latest`` without it, and with the fault for it."""
    times = batch.column("time")
    newest = None if latest is None else pc.max(times).as_py()
    if newest is None or newest <= latest:
        return batch
    after = pc.fill_null(pc.greater(times, latest), False)
    for name, value in (("time", None), ("fault", int(Fault.TIME_OUT_OF_BOUNDS))):
        column = batch.column(name)
        changed = pc.if_else(after, pa.scalar(value, column.type), column)
        batch = batch.set_column(batch.schema.get_field_index(name), name, changed)
    return batch
