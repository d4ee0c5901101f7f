"""A small query of the kinds of operators that a job has, without Kafka: it makes the JVM load what
a job needs of it (:mod:`~service.pipeline.spark.class_archive`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructType

from service.pipeline.spark.source_runner import no_trace_of_a_stop

_ROUNDS = 2
_BATCHES = 2
_SCHEMA = "label BINARY, kind INT, packet BINARY"


class Numbers(DataSource):
    """One row in each batch, and a few batches in each run."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "spark_cep_numbers"

    def schema(self) -> str:
        """One packet a row."""
        return "packet BINARY"

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:  # noqa: ARG002, N802
        """The reader that Spark runs in a process of its own."""
        no_trace_of_a_stop()
        return _Reader()


class _Reader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self) -> None:
        self._last: int | None = None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        """The first read tells where the run begins, and so where it ends."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        return {"number": 0}

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[bytes]], dict[str, Any]]:
        if self._last is None:
            self._last = start["number"] + _BATCHES
        if start["number"] >= self._last:
            return iter(()), start
        end = {"number": start["number"] + 1}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(  # noqa: N802  Spark's name
        self,
        start: dict[str, Any],  # noqa: ARG002  Spark's interface
        end: dict[str, Any],  # noqa: ARG002
    ) -> Iterator[tuple[bytes]]:
        return iter([(b"packet",)])


class _Remember(StatefulProcessor):
    """Keeps a packet as a value and as an entry of a map."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._value = handle.getValueState("group", "value BINARY")
        self._map = handle.getMapState("entries", "key BINARY", "value BINARY")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        for row in rows:
            self._value.get()
            self._map.containsKey((b"key",))
            self._value.update((bytes(row["packet"]),))
            self._map.updateValue((b"key",), (bytes(row["packet"]),))
            yield Row(label=key[0], kind=0, packet=row["packet"])

    def close(self) -> None:
        """Nothing is held."""


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def rehearse(spark: SparkSession, folder: Path) -> None:
    """Run the query for a few batches, then again from its checkpoint, which is in ``folder``."""
    spark.dataSource.register(Numbers)
    for _ in range(_ROUNDS):
        _run(spark, folder / "checkpoint")


def _run(spark: SparkSession, checkpoint: Path) -> None:
    def packets() -> DataFrame:
        return (
            spark.readStream.format(Numbers.name())
            .load()
            .select(
                F.explode(F.array(F.lit(b"a"), F.lit(b"b"))).alias("label"),
                F.lit(1).alias("kind"),
                "packet",
            )
        )

    def run_batch(frame: DataFrame, batch: int) -> None:  # noqa: ARG001  Spark's interface
        frame.mapInArrow(_same, _SCHEMA).collect()

    (
        packets()
        .mapInArrow(_same, _SCHEMA)
        .unionByName(packets())
        .groupBy("label")
        .transformWithState(
            statefulProcessor=_Remember(),
            outputStructType=_SCHEMA,
            outputMode="Append",
            timeMode="None",
        )
        .writeStream.option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .foreachBatch(run_batch)
        .start()
        .awaitTermination()
    )
