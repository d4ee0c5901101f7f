"""Key groups of a checkpoint split into more, by a query of its own with one batch.

The batch reads nothing and tells nothing: its offset is that of the last one, with another number
of key groups. If it is killed, the next query on the checkpoint with this source repeats it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from spark_cep.pipeline.driver.control.source_offset import SourceOffset
from spark_cep.pipeline.spark.private_api import spark_type
from spark_cep.pipeline.tasks.match_operator import by_key_group
from spark_cep.pipeline.tasks.packet_rows import packet_rows
from spark_cep.pipeline.tasks.split_operator import SplitOperator
from spark_cep.pipeline.wire.packet_schemas import PACKET_SCHEMA, PacketKind

if TYPE_CHECKING:
    import pyarrow as pa

_NAME = "spark_cep_key_groups"


def split_key_groups(
    spark: SparkSession, checkpoint: str, partitions: int, key_groups: int, bucket_size: int
) -> None:
    """Split the key groups of a checkpoint so that there are ``key_groups``: a multiple of their
    number, which the number of state partitions divides. Raises PySparkException."""
    spark = spark.newSession()
    # Those of the checkpoint are used; Spark warns where the session says something else.
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    spark.dataSource.register(type("SplitSource", (_SplitSource,), {"key_groups": key_groups}))
    packets = spark.readStream.format(_NAME).load()
    query = (
        by_key_group(packets, SplitOperator(key_groups, bucket_size))
        .writeStream.option("checkpointLocation", checkpoint)
        .foreachBatch(_run)
        .trigger(once=True)
        .start()
    )
    query.awaitTermination()


def _run(frame: DataFrame, batch: int) -> None:  # noqa: ARG001  Spark's interface
    frame.collect()


class _SplitSource(DataSource):
    key_groups: ClassVar[int]

    @classmethod
    def name(cls) -> str:
        return _NAME

    def schema(self) -> StructType:
        return spark_type(PACKET_SCHEMA)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return _Reader(self.key_groups)


class _Reader(DataSourceStreamReader):
    def __init__(self, key_groups: int) -> None:
        self._key_groups = key_groups

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        return SourceOffset().as_json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802
        begins = SourceOffset.from_json(start)
        return SourceOffset(begins.control, begins.input, self._key_groups).as_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:  # noqa: ARG002
        return [InputPartition(SourceOffset.from_json(start).key_groups)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """A row for each key group that there is: an operator is called for those with rows."""
        yield packet_rows([(n, PacketKind.CONTROL, b"") for n in range(partition.value)])
