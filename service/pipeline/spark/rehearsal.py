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
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructType

_BATCHES = 2
_SCHEMA = "label BINARY, kind INT, packet BINARY"


class Numbers(DataSource):
    """One row in each batch, ``last`` rows in all."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "spark_cep_numbers"

    def schema(self) -> str:
        """One packet a row."""
        return "packet BINARY"

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:  # noqa: ARG002, N802
        """The reader that Spark runs in a process of its own."""
        return _Reader()


class _Reader(SimpleDataSourceStreamReader):
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        return {"number": 0}

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[bytes]], dict[str, Any]]:
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
    """Run the query for two batches, from its checkpoint in ``folder`` if there is one."""
    spark.dataSource.register(Numbers)

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

    done: list[int] = []

    def run_batch(frame: DataFrame, batch: int) -> None:
        frame.mapInArrow(_same, _SCHEMA).collect()
        done.append(batch)

    query = (
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
        .writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        .foreachBatch(run_batch)
        .start()
    )
    while len(done) < _BATCHES and not query.awaitTermination(1):
        pass
    query.stop()
