"""The Spark source of the input: its tasks read records from Kafka, decode and pack them.

Spark asks it, in a process of its own, what there is to read, and keeps the answers in its offset
log. Records never are Spark's rows: a task reads its range by librdkafka, and hands on packets.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.serializers import CPickleSerializer
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from service.pipeline.decode.packing import PackBatch, Packing
from service.pipeline.driver.told_files import tell
from service.pipeline.read.ranges import Range, records_of
from service.pipeline.spark.source_runner import no_trace_of_a_stop
from service.pipeline.wire.packets import PACKET_SCHEMA

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from service.config import Settings
    from service.pipeline.driver.input_offsets import InputOffsets, Offsets

_SERIALIZER: Any = CPickleSerializer()
_numbers = count()


def input_packets(
    spark: SparkSession,
    settings: Settings,
    packing: Packing,
    limit_file: Path,
    start: Offsets | None,
) -> DataFrame:
    """Packets of the input, in batches as :func:`limit_reads` says in ``limit_file``. ``start``:
    where the first one begins, if it is not done."""
    reading = (settings.reader_config(), PackBatch(packing))
    # Spark keeps a source as a class, so what it needs to know is in one of its own. It warns of
    # two with the same name.
    name = f"spark_cep_input_{next(_numbers)}"
    made = {
        "format": name,
        "planning": _SERIALIZER.dumps((settings, limit_file, start)),
        "reading": _SERIALIZER.dumps(reading),
    }
    spark.dataSource.register(type("InputSource", (_InputSource,), made))
    return spark.readStream.format(name).load()


def limit_reads(limit_file: Path, most_records: int | None) -> None:
    """From the next batch on, let each have so many records (``None``: all there are). Spark asks a
    source for its bound once, when the query starts. Raises StartError when it cannot be told."""
    tell(limit_file, json.dumps(most_records), "how much to read")


class _InputSource(DataSource):
    format: ClassVar[str]
    planning: ClassVar[bytes]
    reading: ClassVar[bytes]

    @classmethod
    def name(cls) -> str:
        return cls.format

    def schema(self) -> StructType:
        return from_arrow_schema(PACKET_SCHEMA)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        no_trace_of_a_stop()
        return _Reader(self.planning, self.reading)


class _Range(InputPartition):
    """Of a task."""


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Travels to the tasks, which only :meth:`read`."""

    def __init__(self, planning: bytes, reading: bytes) -> None:
        self._planning, self._reading = planning, reading

    @cached_property
    def _planned(self) -> tuple[InputOffsets, Path, Offsets | None]:
        # Tasks do without.
        from service.pipeline.driver.input_offsets import InputOffsets

        settings, limit_file, start = _SERIALIZER.loads(self._planning)
        return InputOffsets(settings), limit_file, start

    @property
    def _most_records(self) -> int | None:
        most: int | None = json.loads(self._planned[1].read_text("ascii"))
        return most

    def __getstate__(self) -> dict[str, Any]:
        return {"_planning": b"", "_reading": self._reading}

    def initialOffset(self) -> Offsets:  # noqa: N802  Spark's name
        # Spark does not keep it, and asks again when it runs the first batch again.
        offsets, _, start = self._planned
        return offsets.initial() if start is None else start

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        most = self._most_records
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:  # noqa: N802
        most = None if isinstance(limit, ReadAllAvailable) else self._most_records
        return self._planned[0].latest(start, most)

    def reportLatestOffset(self) -> Offsets:  # noqa: N802  Spark's name
        return self._planned[0].known

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        self._planned[0].stop_at_present_ends()

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        return [_Range(each) for each in self._planned[0].ranges(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        config, pack = _made(self._reading)
        wanted: Range = partition.value
        return pack(records_of(wanted, config))


@lru_cache(maxsize=1)
def _made(reading: bytes) -> tuple[dict[str, Any], PackBatch]:
    made: tuple[dict[str, Any], PackBatch] = _SERIALIZER.loads(reading)
    return made
