"""The streaming plan: packets of the input through the matcher, records out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_cep.codecs.output.outputs import OutputEncoder
from spark_cep.codecs.record_reader import RecordFormat
from spark_cep.config import Settings
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions, record_types
from spark_cep.pipeline.decode.packing import Packing
from spark_cep.pipeline.deliver.exactly_once import ExactlyOnce
from spark_cep.pipeline.deliver.output import WrittenBatch
from spark_cep.pipeline.deliver.sink import REPORT_SCHEMA, PartitionWriter
from spark_cep.pipeline.driver.checkpoint.partly_written import PartlyWritten
from spark_cep.pipeline.driver.control.source_offset import Ends, SourceOffset
from spark_cep.pipeline.driver.input.batch_limit import BatchLimit
from spark_cep.pipeline.driver.input.source import DriverFiles, input_packets, limit_reads
from spark_cep.pipeline.driver.rules.batch_rules import BatchRules
from spark_cep.pipeline.match.key_group import MatchOptions
from spark_cep.pipeline.match.match import Matching
from spark_cep.pipeline.spark.private_api import offset_log, spark_type
from spark_cep.pipeline.tasks.batch_properties import tell_tasks
from spark_cep.pipeline.tasks.match_operator import MatchOperator
from spark_cep.pipeline.tasks.pack_batch import PackBatch
from spark_cep.pipeline.wire.packets import OUTPUT_SCHEMA
from spark_cep.pipeline.wire.task_properties import TaskProperties

#: Spark's local property with the id of the query that a batch belongs to.
_QUERY_ID = "sql.streaming.queryId"

#: Called with a batch's number before it runs; raising leaves the batch undone. Returns the time
#: after which no event of the batch is late, if it is known.
BeforeBatch = Callable[[int], int | None]
#: Called with a batch's number and its reports once its records are acknowledged. Returns how many
#: records it had, and their bytes.
AfterBatch = Callable[[int, list[bytes]], tuple[int, int]]


@dataclass(frozen=True)
class Dataflow:
    """Everything a query is built from. Rules are no part of its plan: each batch is told its own.
    ``input_start``: where the first batch begins, if it is not done. ``planned_batch_only``: it
    ends after the batch that the checkpoint has planned and not done."""

    settings: Settings
    rules: BatchRules
    schemas: RecordFormat
    encoder: OutputEncoder
    control_file: Path
    delivery: ExactlyOnce
    limit: BatchLimit
    input_start: Ends | None
    planned_batch_only: bool = False

    def packets(self, spark: SparkSession) -> DataFrame:
        """Input packets of all key groups: events, and what is known of time."""
        # Schemas are learnt between two starts of the query.
        limit_reads(self._files.limit, self.limit.records)
        pack = PackBatch(self.packing, self.encoder)
        return input_packets(spark, self.settings, pack, self._files, self.input_start)

    def start(
        self,
        spark: SparkSession,
        before: BeforeBatch,
        after: AfterBatch,
        partly_written: PartlyWritten | None = None,
    ) -> StreamingQuery:
        """Start the query from its checkpoint, or a new one where there is none.
        ``partly_written``: the batch that it begins with, if some of its output is there."""
        settings = self.settings
        # A session that was handed in may say otherwise; a checkpoint keeps what it began with.
        spark.conf.set("spark.sql.shuffle.partitions", str(settings.state.state_partitions))
        # Decoding, and rules, mean this one.
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        matching = Matching(self.encoder, self._match_options())
        matched = (
            self.packets(spark)
            .groupBy("label")
            .transformWithStateInPandas(
                statefulProcessor=MatchOperator(matching),
                outputStructType=spark_type(OUTPUT_SCHEMA),
                outputMode="Append",
                timeMode="None",
            )
        )
        begun = False
        report_schema = spark_type(REPORT_SCHEMA)

        def run_batch(frame: DataFrame, batch: int) -> None:
            nonlocal begun
            context = frame.sparkSession.sparkContext
            query = context.getLocalProperty(_QUERY_ID)
            assert query is not None
            rules = self.rules.of(batch, partial(ends, spark, query, batch - 1))
            late_until = before(batch)
            known = self.schemas.known
            decided = None
            if partly_written is not None and partly_written.batch == batch:
                known = decided = partly_written.schemas
            offsets, before_it = (batch_offsets(spark, query, n) for n in (batch, batch - 1))
            planned = planned_at(spark, query, batch)
            tell_tasks(
                context,
                TaskProperties(planned, late_until, offsets, before_it, decided, rules.text),
            )
            output = WrittenBatch(query, batch, known, offsets)
            writer = PartitionWriter(self.delivery, output, first=not begun)
            begun = True
            reports = frame.mapInArrow(writer, report_schema).collect()
            size = after(batch, [bytes(row[0]) for row in reports])
            if self.limit.batch_done(*size) and self.limit.records is not None:
                limit_reads(self._files.limit, self.limit.records)

        stream = (
            matched.writeStream.queryName(settings.spark.app_name)
            .option("checkpointLocation", str(settings.state.checkpoint))
            .foreachBatch(run_batch)
        )
        if self.planned_batch_only:
            return stream.trigger(once=True).start()
        if settings.trigger.mode == "available_now":
            return stream.trigger(availableNow=True).start()
        return stream.trigger(processingTime=f"{settings.trigger.interval} milliseconds").start()

    @property
    def _files(self) -> DriverFiles:
        return DriverFiles(self.control_file, self.control_file.with_name("most_records.json"))

    @cached_property
    def _options(self) -> DecodeOptions:
        settings = self.settings
        return DecodeOptions(
            settings.state.key_groups,
            settings.time.max_ahead,
            settings.outputs.late_events == "all",
        )

    @property
    def packing(self) -> Packing:
        """The packing of events, with the schemas that are known by now."""
        return Packing(self.schemas.snapshot(), self._options)

    def _match_options(self) -> MatchOptions:
        time = self.settings.time
        return MatchOptions(
            key_groups=self.settings.state.key_groups,
            bucket_size=self.settings.state.bucket_size,
            policy=time.watermark,
            allowed_disorder_ms=time.allowed_disorder,
            emit_late=self.settings.outputs.late_events != "drop",
            type_names=tuple(t.name for t in self.schemas.types),
            types=record_types(self.schemas),
        )


def planned_at(spark: SparkSession, query: str, batch: int) -> int:
    """The time at which a batch of ``query`` was planned, in milliseconds since 1970, as its offset
    log has it, so that it is the same when the batch runs again."""
    return int(_planned(spark, query, batch).get().metadataOpt().get().batchTimestampMs())


def batch_offsets(spark: SparkSession, query: str, batch: int) -> str:
    """The digest of where a batch of ``query`` ends, as its offset log has it; empty for a batch
    that there is not."""
    offset = _offset(spark, query, batch)
    return "" if offset is None else offset.digest


def ends(spark: SparkSession, query: str, batch: int) -> dict[str, dict[int, int]]:
    """The offsets in Kafka at which a batch of ``query`` ends, by topic and partition, as its
    offset log has them; none for a batch that there is not."""
    offset = _offset(spark, query, batch)
    return {} if offset is None else offset.by_topic


def _offset(spark: SparkSession, query: str, batch: int) -> SourceOffset | None:
    entry = _planned(spark, query, batch)
    if batch < 0 or entry.isEmpty():
        return None
    return SourceOffset.from_json(json.loads(entry.get().offsets().head().get().json()))


def _planned(spark: SparkSession, query: str, batch: int) -> Any:
    stream = spark.streams.get(query)
    assert stream is not None
    return offset_log(stream).get(batch)
