"""Rows of a stateful operator, read a batch at a time, and written as they are made.

PySpark's own writer collects all rows of a grouping key and sends them as one Arrow batch: all the
output of a key group would be in memory three times over, and above 2 GiB it would fail. Its reader
asks Arrow for each value of each row, which takes ten times as long as asking for a column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.pandas.serializers import (
    ArrowStreamSerializer,
    ArrowStreamUDFSerializer,
    TransformWithStateInPySparkRowSerializer,
)
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.streaming.stateful_processor_util import TransformWithStateInPandasFuncMode

#: Bytes of one Arrow batch, about: the last row may exceed it.
MOST_BYTES: Final = 4 << 20


def install() -> None:
    """Let this process, and those forked from it, read and write rows so."""
    TransformWithStateInPySparkRowSerializer.load_stream = _load_stream  # type: ignore[method-assign]
    TransformWithStateInPySparkRowSerializer.dump_stream = _dump_stream  # type: ignore[method-assign]


def by_key(
    read: Iterable[pa.RecordBatch], key: Sequence[int]
) -> Iterator[tuple[tuple[Any, ...], Iterator[Row]]]:
    """The rows of Arrow batches, those behind one another with the same values in the columns
    ``key`` together. One batch is in memory at a time."""

    def rows() -> Iterator[tuple[tuple[Any, ...], Row]]:
        for batch in read:
            columns = [column.to_pylist() for column in batch.columns]
            keys = zip(*(columns[place] for place in key), strict=True)
            made = map(Row(*batch.schema.names), *columns)
            yield from zip(keys, made, strict=True)

    for value, found in groupby(rows(), key=itemgetter(0)):
        yield value, map(itemgetter(1), found)


def batches(rows: Iterable[Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """``rows`` of Spark as Arrow batches; an empty one where there are none, which tells PySpark's
    reader that a key is done."""
    waiting: list[dict[str, Any]] = []
    size = sent = 0
    for row in rows:
        values = row.asDict()
        waiting.append(values)
        size += sum(len(value) for value in values.values() if isinstance(value, bytes))
        if size >= MOST_BYTES:
            yield pa.RecordBatch.from_pylist(waiting, schema=schema)
            waiting, size, sent = [], 0, sent + 1
    if waiting or not sent:
        yield pa.RecordBatch.from_pylist(waiting, schema=schema)


def _load_stream(self: Any, stream: Any) -> Iterator[tuple[Any, Any, Any]]:
    mode = TransformWithStateInPandasFuncMode
    read = ArrowStreamSerializer.load_stream(self, stream)
    for key, rows in by_key(read, self.key_offsets):
        yield mode.PROCESS_DATA, key, rows
    yield mode.PROCESS_TIMER, None, None
    yield mode.COMPLETE, None, None


def _dump_stream(self: Any, iterator: Iterable[Any], stream: Any) -> Any:
    def written() -> Iterator[tuple[pa.RecordBatch, pa.DataType]]:
        for ((rows, spark_type),) in iterator:
            of_type = to_arrow_type(spark_type, timezone="UTC", prefers_large_types=False)
            for batch in batches(rows, pa.schema(list(of_type))):
                yield batch, of_type

    return ArrowStreamUDFSerializer.dump_stream(self, written(), stream)  # type: ignore[no-untyped-call]
