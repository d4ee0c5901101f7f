"""How records go from Spark to Python: most as two numbers, the others whole.

Between the two each row costs by its columns. Of a record that no rule wants, only its time, its
timestamp and its size count, so it *passes* as two numbers; every other record is *carried*: an
array of one structure, with all columns, where the others have NULL, which costs next to nothing
and arrives in Python as the carried rows alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

#: Event time and partition; Kafka's timestamp, fault and size.
_TIME, _SIZE = "passed_time", "passed_size"
#: Only where more than one topic is read.
_TOPIC = "passed_topic"
_CARRIED = "carried"

_PARTITION_BITS, _FAULT_BITS, _SIZE_BITS = 15, 2, 19
_AROUND_SIZE = _FAULT_BITS + _SIZE_BITS
#: Of a record without event time: before the first one that there is.
_NO_TIME = -(1 << 47)
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
    time = f"shiftleft(coalesce(time, {_NO_TIME}L), {_PARTITION_BITS}) | partition"
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
    which = (times & (1 << _PARTITION_BITS) - 1) << _FAULT_BITS
    which |= sizes >> _SIZE_BITS & (1 << _FAULT_BITS) - 1
    topics = [topic]
    if topic is None:
        encoded = table.column(_TOPIC).combine_chunks().dictionary_encode()
        topics = encoded.dictionary.to_pylist()
        number = encoded.indices.drop_null().to_numpy().astype(np.int64)
        which |= number << _PARTITION_BITS + _FAULT_BITS
    found = []
    # One task reads one partition, so this goes round once or twice.
    for one in pc.unique(pa.array(which)).to_pylist():
        mine = which == one
        newest = int(times[mine].max()) >> _PARTITION_BITS
        size = sizes[mine]
        found.append(
            Tally(
                topic=topics[one >> _PARTITION_BITS + _FAULT_BITS],
                partition=one >> _FAULT_BITS & (1 << _PARTITION_BITS) - 1,
                fault=one & (1 << _FAULT_BITS) - 1,
                records=len(size),
                time=None if newest == _NO_TIME else newest,
                kafka_time=int(size.max()) >> _AROUND_SIZE,
                size=int((size & (1 << _SIZE_BITS) - 1).sum()),
            )
        )
    return found


def carried(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows that were carried, with their columns."""
    arrays = [batch.column(_CARRIED).flatten() for batch in batches]
    return pa.RecordBatch.from_struct_array(pa.concat_arrays(arrays))


def tallied(rows: pa.RecordBatch) -> list[Tally]:
    """What carried rows count."""
    which = ["topic", "partition", "fault"]
    of_each = [("topic", "count"), ("time", "max"), ("kafka_time", "max"), ("size", "sum")]
    table = pa.table({name: rows.column(name) for name in (*which, "time", "kafka_time", "size")})
    grouped = (
        table.group_by(which)
        .aggregate(of_each)
        .select([*which, *(f"{name}_{what}" for name, what in of_each)])
    )
    return [Tally(*row.values()) for row in grouped.to_pylist()]
