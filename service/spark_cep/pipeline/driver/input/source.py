"""The Spark source of the input: its tasks read records from Kafka, decode and pack them.

Spark asks it, in a process of its own, what there is to read and what the driver tells, and keeps
the answers in its offset log. Records never are Spark's rows: a task reads its range by librdkafka,
and hands on packets.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from spark_cep.pipeline.driver.control.answers import KafkaAnswer, tell_answer
from spark_cep.pipeline.driver.control.control_file import newest, record_between, time_ends
from spark_cep.pipeline.driver.control.source_offset import Ends, SourceOffset
from spark_cep.pipeline.driver.control.written_files import write_for_query
from spark_cep.pipeline.driver.input.batch_limit import RecordLimit
from spark_cep.pipeline.spark.forking.source_runner import no_trace_of_a_stop
from spark_cep.pipeline.spark.private_api import pickled, spark_type, unpickled
from spark_cep.pipeline.wire.packet_schemas import PACKET_SCHEMA, PacketKind

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from spark_cep.config import Settings
    from spark_cep.pipeline.driver.input.arrivals import Arrivals
    from spark_cep.pipeline.driver.input.offsets import InputOffsets
    from spark_cep.pipeline.driver.input.pacing import Pacing
    from spark_cep.pipeline.read.record_range import Range
    from spark_cep.pipeline.tasks.pack_batch import PackBatch

_numbers = count()
#: How often Kafka is asked while no batch is due.
_ASK_EVERY_SECONDS: Final = 0.5


class DriverFiles(NamedTuple):
    """Paths of the files between the driver and the source. The driver writes ``control``, a
    :class:`~spark_cep.pipeline.driver.control.control_file.ControlFile`'s, and ``limit``, that of
    :func:`limit_reads`; the source writes ``answers``
    (:func:`~spark_cep.pipeline.driver.control.answers.tell_answer`)."""

    control: Path
    limit: Path
    answers: Path

    @classmethod
    def below(cls, folder: Path) -> DriverFiles:
        """The files in a run's folder."""
        return cls(
            folder / "control.json", folder / "most_records.json", folder / "kafka_answers.json"
        )


#: Behind the files: where the first batch begins, if it is not done, and the number of key groups.
_Planning = tuple["Settings", DriverFiles, Ends | None, int]
#: librdkafka's properties, whether lost records are an error, and what packs.
_Reading = tuple[dict[str, Any], bool, "PackBatch"]


def input_packets(
    spark: SparkSession,
    settings: Settings,
    pack: PackBatch,
    files: DriverFiles,
    start: Ends | None,
    key_groups: int,
) -> DataFrame:
    """Packets of the input, and of what the driver tells, for all ``key_groups``. ``start``: where
    the first batch begins, if it is not done."""
    # Spark warns of two with the same name.
    name = f"spark_cep_input_{next(_numbers)}"
    fail = settings.source.fail_on_data_loss
    reading = (settings.reader_config(), fail, pack)
    spark.dataSource.register(input_source(name, (settings, files, start, key_groups), reading))
    return spark.readStream.format(name).load()


def input_source(name: str, planning: _Planning, reading: _Reading) -> type[DataSource]:
    """The source as a class of its own, with all it needs: Spark makes its objects."""
    made = {
        "format": name,
        "planning": pickled(planning),
        "reading": pickled(reading),
    }
    return type("InputSource", (_InputSource,), made)


def limit_reads(limit_file: Path, limit: RecordLimit) -> None:
    """From the next batch on, let each have so many records. Spark asks a source for its bound
    once, when the query starts. Raises StartError when the file cannot be written."""
    write_for_query(limit_file, json.dumps(limit), "how much to read")


class _InputSource(DataSource):
    format: ClassVar[str]
    planning: ClassVar[bytes]
    reading: ClassVar[bytes]

    @classmethod
    def name(cls) -> str:
        return cls.format

    def schema(self) -> StructType:
        return spark_type(PACKET_SCHEMA)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        no_trace_of_a_stop()
        return _StreamReader(self.planning, self.reading)


class _Part(NamedTuple):
    """The part of a task: a control record, as a packet, and ranges of records; or one of them. It
    makes packets for ``key_groups``."""

    control: bytes | None
    ranges: list[Range]
    key_groups: range


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Travels to the tasks, which only :meth:`read`."""

    def __init__(self, planning: bytes, reading: bytes) -> None:
        self._planning, self._reading = planning, reading
        self._last_control: dict[str, Any] | None = None

    @cached_property
    def _given(self) -> _Planning:
        given: _Planning = unpickled(self._planning)
        return given

    @cached_property
    def _planned(self) -> tuple[InputOffsets, DriverFiles]:
        # Tasks do without.
        from spark_cep.pipeline.driver.input.offsets import InputOffsets

        settings, files, *_ = self._given
        return InputOffsets(settings), files

    @cached_property
    def _pacing(self) -> Pacing:
        from spark_cep.pipeline.driver.input.pacing import Pacing

        return Pacing(self._given[0].trigger.latency / 1000)

    @cached_property
    def _arrivals(self) -> Arrivals:
        from spark_cep.pipeline.driver.input.arrivals import Arrivals

        return Arrivals(self._given[0].reader_config())

    @property
    def _limit(self) -> RecordLimit:
        return RecordLimit(*json.loads(self._planned[1].limit.read_text("ascii")))

    @property
    def _control(self) -> dict[str, Any]:
        return newest(self._planned[1].control)

    def __getstate__(self) -> dict[str, Any]:
        return {"_planning": b"", "_reading": self._reading}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        # Spark does not keep it, and asks again when it runs the first batch again.
        *_, start, key_groups = self._given
        ends = self._planned[0].initial() if start is None else start
        return SourceOffset({}, ends, key_groups).as_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        most = self._limit.most
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        bounded = self._last_control is not None
        if not bounded:
            self._pacing.asked()
        most, most_of_one_stage = self._limit
        begins, offsets = SourceOffset.from_json(start), self._planned[0]
        ends = offsets.latest(begins.input, None if isinstance(limit, ReadAllAvailable) else most)
        control = self._control if self._last_control is None else self._last_control
        if time_ends(control):
            # What has come since the end of the input is for the next run: here it would be late.
            ends = begins.input
        records = sum(end - begins.input.get(at, 0) for at, end in ends.items())
        one_stage = most_of_one_stage is not None and records <= most_of_one_stage
        planned = SourceOffset(control, ends, self._given[-1], one_stage)
        # However the batch before was run.
        end = start if planned == begins else planned.as_json()
        return end if bounded else self._paced(start, end, control, ends)

    def _paced(
        self, start: dict[str, Any], end: dict[str, Any], control: dict[str, Any], ends: Ends
    ) -> dict[str, Any]:
        """The end of the next batch where it is due; otherwise, after a while, its start."""
        known = self._planned[0].known
        more_waits = any(known[at] > each for at, each in ends.items())
        left = 0.0 if more_waits else self._pacing.seconds_left()
        if end != start and not left:
            self._pacing.planned(more_waits=more_waits)
            self._arrivals.rest()
            self._tell_answer(waits=False)
            return end
        # Spark's time of a batch begins when it asks: so the waiting is in a question that brings
        # none.
        self._tell_answer(waits=True)
        if end != start:
            time.sleep(min(left, _ASK_EVERY_SECONDS))
        else:
            self._arrivals.wait(ends, _ASK_EVERY_SECONDS, lambda: self._control != control)
        return start

    def _tell_answer(self, *, waits: bool) -> None:
        answer = KafkaAnswer(time.monotonic_ns() // 1_000_000, waits)
        tell_answer(self._planned[1].answers, answer)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        return SourceOffset(input=self._planned[0].known).as_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        # The clock stands still in a bounded run, or it would have no end.
        self._last_control = self._control
        self._planned[0].stop_at_present_ends()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        begins, ends = SourceOffset.from_json(start), SourceOffset.from_json(end)
        record = record_between(begins, ends)
        packet = None if record is None else record.encode()
        offsets, key_groups = self._planned[0], range(self._given[-1])
        ranges = offsets.ranges(begins.input, ends.input)
        if ends.one_stage:
            every, tasks = [each for task in ranges for each in task], offsets.state_partitions
            parts = [_Part(packet, every, key_groups[number::tasks]) for number in range(tasks)]
        else:
            parts = [_Part(None, each, key_groups) for each in ranges]
            if packet is not None:
                parts[:1] = [_Part(packet, ranges[0] if ranges else [], key_groups)]
        return [InputPartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark plans in processes that it starts with each query, and which import this module.
        from spark_cep.pipeline.read.ranges import records_left, records_of
        from spark_cep.pipeline.tasks.packet_rows import packet_rows

        config, fail, pack = _made(self._reading)
        part: _Part = partition.value
        if part.control is not None and part.key_groups:
            kind = PacketKind.CONTROL
            yield packet_rows([(group, kind, part.control) for group in part.key_groups])
        if part.ranges:
            read = records_of if fail else records_left
            yield from pack(read(part.ranges, config), part.key_groups)


@lru_cache(maxsize=1)
def _made(reading: bytes) -> _Reading:
    made: _Reading = unpickled(reading)
    return made
