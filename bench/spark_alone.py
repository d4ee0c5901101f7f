"""Spark alone, counting rows that it makes itself in state partitions like the job's: by its own
count of rows by key, and by a Python operator, which is the form that the job's matcher has."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from spark_cep.config import Settings
from spark_cep.pipeline.state.key_group_labels import label

#: As many tasks as log-ins have partitions, and few keys: the job has no row of state for each.
_READERS, _KEYS = 4, 1_000
#: To ask Spark for progress takes time of its batches.
_SELDOM_SECONDS = 1
_ENTRY = ("rows",)


def count_rows(
    spark: SparkSession, settings: Settings, batches: int, *, in_python: bool
) -> StreamingQuery:
    """A query that has counted rows in so many batches, or some more, of the service's size and
    state partitions into a sink that drops everything, and was stopped. ``in_python``: by an
    operator with one key for each state partition."""
    checkpoint = f"{settings.state.checkpoint}.counting"
    partitions = settings.state.state_partitions
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    rows = (
        spark.readStream.format("rate-micro-batch")
        .options(
            rowsPerBatch=settings.source.max_offsets_per_trigger,
            numPartitions=_READERS,
        )
        .load()
    )
    counted = _in_python(rows, partitions) if in_python else _by_spark(rows)
    query = (
        counted.writeStream.format("noop")
        .outputMode("update")
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime="0 seconds")
        .start()
    )
    last = None
    while last is None or last["batchId"] < batches - 1:
        query.awaitTermination(_SELDOM_SECONDS)
        last = query.lastProgress
    query.stop()
    shutil.rmtree(checkpoint, ignore_errors=True)
    return query


def _by_spark(rows: DataFrame) -> DataFrame:
    return rows.groupBy(F.col("value") % _KEYS).count()


def _in_python(rows: DataFrame, partitions: int) -> DataFrame:
    labels = F.array(*(F.lit(label(number)) for number in range(partitions)))
    place = (F.col("value") % partitions + 1).cast("int")
    # Grouping keys that Spark spreads evenly, one to a partition.
    keyed = rows.select(F.element_at(labels, place).alias("key"))
    return keyed.groupBy("key").transformWithStateInPandas(
        statefulProcessor=_Counter(),
        outputStructType="rows long",
        outputMode="Update",
        timeMode="None",
    )


class _Counter(StatefulProcessor):
    """Reads one entry of a map, and writes it: the least that a stateful operator does."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._entries = handle.getMapState("entries", "name string", "rows long")

    def handleInputRows(  # noqa: N802  Spark's name
        self,
        key: Any,  # noqa: ARG002  Spark's interface
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803, ARG002  Spark's interface
    ) -> Iterator[pd.DataFrame]:
        found = self._entries.getValue(_ENTRY)
        total = (0 if found is None else found[0]) + sum(map(len, rows))
        self._entries.updateValue(_ENTRY, (total,))
        yield pd.DataFrame({"rows": [total]})

    def close(self) -> None:
        """Spark owns the state."""
