"""A query of the same plan as a job's, without Kafka, and a look at its state: they make the JVM
load what a job, and the commands that read a checkpoint, need of it
(:mod:`~spark_cep.pipeline.spark.class_archive`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StringType, StructField, StructType

from spark_cep.pipeline.spark.forking.source_runner import no_trace_of_a_stop
from spark_cep.pipeline.spark.java_batches import JavaBatches
from spark_cep.pipeline.spark.private_api import spark_type
from spark_cep.pipeline.wire.packet_schemas import PACKET_SCHEMA, REPORT_SCHEMA

_ROUNDS: Final = 2
_BATCHES: Final = 2
_TEXT: Final = StructType([StructField("text", StringType())])


class Packets(DataSource):
    """A packet in each of two partitions, for a few batches in each run."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "spark_cep_rehearsal"

    def schema(self) -> StructType:
        """The schema of a job's packets."""
        return spark_type(PACKET_SCHEMA)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        """The reader that Spark runs in a process of its own, and in tasks."""
        no_trace_of_a_stop()
        return _NoRecords()


class _NoRecords(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self) -> None:
        self._last: int | None = None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        """The first offset that is asked for tells where the run begins, and so where it ends."""

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
        row = {"label": 1, "kind": 1, "packet": b"packet"}
        yield pa.RecordBatch.from_pylist([row], schema=PACKET_SCHEMA)


class _Remember(StatefulProcessor):
    """Keeps an entry of a map."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._map = handle.getMapState("entries", _TEXT, _TEXT)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: ARG002, N802, N803
        for frame in rows:
            self._map.containsKey(("key",))
            self._map.updateValue(("key",), ("value",))
            yield frame[["packet"]].head(1).set_axis(REPORT_SCHEMA.names, axis=1)

    def close(self) -> None:
        """Nothing is held."""


def rehearse(spark: SparkSession, folder: Path) -> None:
    """Run the query for a few batches, then again from its checkpoint, which is in ``folder``, and
    read what it keeps."""
    spark.dataSource.register(Packets)
    checkpoint = folder / "checkpoint"
    for _ in range(_ROUNDS):
        _run(spark, checkpoint)
    state = spark.read.format("statestore").options(path=str(checkpoint), stateVarName="entries")
    of_label = state.load().where(F.col("key.label").bitwiseAND(1) == 1)
    of_label.select(F.col("user_map_value.text").alias("value")).collect()


def _run(spark: SparkSession, checkpoint: Path) -> None:
    batches = JavaBatches(spark)

    def run_batch(frame: DataFrame, batch: int) -> None:  # noqa: ARG001  Spark's interface
        batches.run(frame)

    (
        spark.readStream.format(Packets.name())
        .load()
        .groupBy("label")
        .transformWithStateInPandas(
            statefulProcessor=_Remember(),
            outputStructType=spark_type(REPORT_SCHEMA),
            outputMode="Append",
            timeMode="None",
        )
        .writeStream.option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .foreachBatch(run_batch)
        .start()
        .awaitTermination()
    )
