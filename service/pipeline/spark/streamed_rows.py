"""Rows of a stateful operator written as they are made, in Arrow batches of bounded size.

PySpark's own writer collects all rows of a grouping key and sends them as one Arrow batch: all the
output of a key group would be in memory three times over, and above 2 GiB it would fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.serializers import (
    ArrowStreamUDFSerializer,
    TransformWithStateInPySparkRowSerializer,
)
from pyspark.sql.pandas.types import to_arrow_type

#: Bytes of one Arrow batch, about: the last row may exceed it.
MOST_BYTES: Final = 4 << 20


def install() -> None:
    """Let this process, and those forked from it, write rows so."""
    TransformWithStateInPySparkRowSerializer.dump_stream = _dump_stream  # type: ignore[method-assign]


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


def _dump_stream(self: Any, iterator: Iterable[Any], stream: Any) -> Any:
    def written() -> Iterator[tuple[pa.RecordBatch, pa.DataType]]:
        for ((rows, spark_type),) in iterator:
            of_type = to_arrow_type(spark_type, timezone="UTC", prefers_large_types=False)
            for batch in batches(rows, pa.schema(list(of_type))):
                yield batch, of_type

    return ArrowStreamUDFSerializer.dump_stream(self, written(), stream)  # type: ignore[no-untyped-call]
