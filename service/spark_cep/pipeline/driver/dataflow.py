"""The streaming plan: packets of the input to the matcher, which writes what it finds; reports
out."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_cep.codecs.output.outputs import OutputEncoder
from spark_cep.codecs.record_reader import RecordFormat
from spark_cep.config import Settings
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions, record_types
from spark_cep.pipeline.decode.packing import Packing
from spark_cep.pipeline.deliver.exactly_once import ExactlyOnce
from spark_cep.pipeline.driver.batches import AfterBatch, Batches, BeforeBatch
from spark_cep.pipeline.driver.checkpoint.partly_written import PartlyWritten
from spark_cep.pipeline.driver.control.source_offset import Ends
from spark_cep.pipeline.driver.input.batch_limit import BatchLimit
from spark_cep.pipeline.driver.input.source import DriverFiles, input_packets, limit_reads
from spark_cep.pipeline.driver.rules.batch_rules import BatchRules
from spark_cep.pipeline.match.match import Matching
from spark_cep.pipeline.match.options import MatchOptions
from spark_cep.pipeline.tasks.match_operator import MatchOperator, by_key_group
from spark_cep.pipeline.tasks.pack_batch import PackBatch


@dataclass(frozen=True)
class Dataflow:
    """Everything a query is built from. Rules are no part of its plan: each batch is told its own.
    ``key_groups``: their number in the checkpoint; ``input_start``: where the first batch begins,
    if it is not done. ``planned_batch_only``: it ends after the batch that the checkpoint has
    planned and not done."""

    settings: Settings
    rules: BatchRules
    schemas: RecordFormat
    encoder: OutputEncoder
    files: DriverFiles
    delivery: ExactlyOnce
    limit: BatchLimit
    key_groups: int
    input_start: Ends | None
    planned_batch_only: bool = False

    def packets(self, spark: SparkSession) -> DataFrame:
        """Input packets of all key groups: events, and what is known of time."""
        # Schemas are learnt between two starts of the query.
        limit_reads(self.files.limit, self.limit.records)
        pack = PackBatch(self.packing, self.encoder)
        start, key_groups = self.input_start, self.key_groups
        return input_packets(spark, self.settings, pack, self.files, start, key_groups)

    def start(
        self,
        spark: SparkSession,
        before: BeforeBatch,
        after: AfterBatch,
        partly_written: PartlyWritten | None = None,
    ) -> StreamingQuery:
        """Start the query from its checkpoint, or a new one where there is none.
        ``partly_written``: the batch that it begins with, if some of its output is there."""
        settings, state = self.settings, self.settings.state
        # A session that was handed in may say otherwise; a checkpoint keeps what it began with.
        spark.conf.set("spark.sql.shuffle.partitions", str(state.state_partitions))
        # Decoding, and rules, mean this one.
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        matching = Matching(self.encoder, self._match_options())
        matched = by_key_group(
            self.packets(spark), MatchOperator(matching, self.delivery, state.state_partitions)
        )
        batches = Batches(spark, self.rules, self.schemas, before, after, partly_written)

        def run_batch(frame: DataFrame, batch: int) -> None:
            size = batches.run(frame, batch)
            if self.limit.batch_done(*size):
                limit_reads(self.files.limit, self.limit.records)

        stream = (
            matched.writeStream.queryName(settings.spark.app_name)
            .option("checkpointLocation", str(state.checkpoint))
            .foreachBatch(run_batch)
        )
        if self.planned_batch_only:
            return stream.trigger(once=True).start()
        if settings.trigger.mode == "available_now":
            return stream.trigger(availableNow=True).start()
        # Batches are paced by the source.
        return stream.trigger(processingTime="0 seconds").start()

    @property
    def packing(self) -> Packing:
        """The packing of events, with the schemas that are known by now."""
        settings = self.settings
        options = DecodeOptions(
            self.key_groups,
            settings.time.max_ahead,
            settings.outputs.late_events == "all",
        )
        return Packing(self.schemas.snapshot(), options)

    def _match_options(self) -> MatchOptions:
        time = self.settings.time
        return MatchOptions(
            key_groups=self.key_groups,
            bucket_size=self.settings.state.bucket_size,
            policy=time.watermark,
            allowed_disorder_ms=time.allowed_disorder,
            emit_late=self.settings.outputs.late_events != "drop",
            type_names=tuple(t.name for t in self.schemas.types),
            types=record_types(self.schemas),
        )
