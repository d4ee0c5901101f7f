"""A small query of the kinds of operators that a job has, without Kafka: it makes the JVM load what
a job needs of it (:mod:`~spark_cep.pipeline.spark.class_archive`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamReader,
    InputPartition,
    SimpleDataSourceStreamReader,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructType

from spark_cep.pipeline.spark.source_runner import no_trace_of_a_stop

_ROUNDS = 2
_BATCHES = 2
_SCHEMA = "label BINARY, kind INT, packet BINARY"
_PACKETS = pa.schema([("label", pa.binary()), ("kind", pa.int32()), ("packet", pa.binary())])


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


class Packets(DataSource):
    """Packets, read in tasks, for as many batches."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "spark_cep_packets"

    def schema(self) -> StructType:
        """As those of a job."""
        return from_arrow_schema(_PACKETS)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        """The reader that Spark runs in a process of its own, and in tasks."""
        no_trace_of_a_stop()
        return _PacketReader()


class _PacketReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self) -> None:
        self._last: int | None = None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        """As the other source."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        return {"number": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        return ReadMaxRows(1)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802
        if self._last is None:
            self._last = start["number"] + _BATCHES
        return {"number": min(start["number"] + 1, self._last)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:  # noqa: ARG002
        return [InputPartition(number) for number in range(2)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        row = {"label": b"a", "kind": 1, "packet": b"packet"}
        yield pa.RecordBatch.from_pylist([row], schema=_PACKETS)


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
    spark.dataSource.register(Packets)
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
        spark.readStream.format(Packets.name())
        .load()
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
