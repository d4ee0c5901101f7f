"""The streaming plan: Kafka and the clock in, packets through the matcher, records out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from service.codecs.outputs import OutputEncoder
from service.compiler.record_types import RecordTypes
from service.compiler.rule_set import RuleSetPlan
from service.config import Settings
from service.matcher.columnar.tables import can_run
from service.pipeline import clock_source
from service.pipeline.bare_records import bare
from service.pipeline.catalogue import Catalogue
from service.pipeline.compiled_decoding import CompiledDecoder
from service.pipeline.compiled_plan import NotCompiledError, compiled_decoder
from service.pipeline.crossing import Crossing
from service.pipeline.decode import DecodeOptions, decode
from service.pipeline.key_group import MatchOptions, packed_shape
from service.pipeline.key_group_labels import label
from service.pipeline.match import MatchProcessor
from service.pipeline.match_operator import OUTPUT_SQL_SCHEMA, MatchOperator
from service.pipeline.output import Delivery
from service.pipeline.pack import (
    LATE_UNTIL,
    PACKET_SQL_SCHEMA,
    PLANNED_AT,
    Kind,
    Packer,
    RecordReader,
    Records,
)
from service.pipeline.sink import REPORT_SQL_SCHEMA, PartitionWriter

#: Spark's local property with the id of the query that a batch belongs to.
_QUERY_ID = "sql.streaming.queryId"
_FUSION = "spark.sql.codegen.wholeStage"
#: More conditions than these are not evaluated in one generated method: Java's compiler gives up on
#: one of 54 KB, which then is interpreted, and above 64 KiB Spark compiles it in vain, anew in
#: every batch. A condition takes about 400 bytes.
_MOST_FUSED = 64

#: Called with a batch's number before it runs; raising leaves the batch undone. Returns the time
#: after which no event of the batch is late, if it is known.
BeforeBatch = Callable[[int], int | None]
#: Called with a batch's number and its reports once its records are acknowledged.
AfterBatch = Callable[[int, list[bytes]], None]


@dataclass(frozen=True)
class Dataflow:
    """Everything a query is built from. ``planned_batch_only``: it ends after the batch that the
    checkpoint has planned and not done."""

    settings: Settings
    plan: RuleSetPlan
    catalogue: Catalogue
    encoder: OutputEncoder
    clock_file: Path
    delivery: Delivery
    planned_batch_only: bool = False

    def decoder(self) -> CompiledDecoder | NotCompiledError:
        """The compiled decoder, or why Spark decodes. The catalogue learns: ask at each start."""
        if self.settings.source.decoder == "spark":
            return NotCompiledError("source.decoder is spark")
        try:
            return compiled_decoder(self.plan, self.catalogue, self._options)
        except NotCompiledError as reason:
            return reason

    def packets(
        self, spark: SparkSession, decoder: CompiledDecoder | NotCompiledError
    ) -> DataFrame:
        """Input packets of all key groups: events, and what is known of time."""
        groups = self.settings.state.key_groups
        read = spark.readStream.format("kafka").options(**source_options(self.settings)).load()
        records: Records
        if isinstance(decoder, CompiledDecoder):
            records, frame = decoder, bare(read, self._topic)
            evaluated = 0
        else:
            decoded = decode(read, self.plan, self.catalogue, self._options)
            records, frame = Crossing(self._topic), decoded.frame
            evaluated = sum(part.evaluated for part in decoded.partitionings)
        if _FUSION not in self.settings.spark.conf:
            spark.conf.set(_FUSION, str(evaluated <= _MOST_FUSED).lower())
        events = frame.mapInArrow(self._packer(records), PACKET_SQL_SCHEMA)
        spark.dataSource.register(clock_source.ClockSource)
        clock = (
            spark.readStream.format(clock_source.FORMAT)
            .option("file", str(self.clock_file))
            .load()
            .select(
                F.explode(F.array(*map(F.lit, map(label, range(groups))))).alias("label"),
                F.lit(int(Kind.CLOCK)).alias("kind"),
                "packet",
            )
        )
        return events.unionByName(clock)

    def engines(self) -> dict[str, dict[str, str]]:
        """Of each rule that runs: its plan's fingerprint and the engine that runs it."""
        types = self._match_options().types
        return {
            rule.plan.rule.id: {
                "fingerprint": rule.plan.fingerprint,
                "engine": "kernel" if can_run(rule.plan, part.slots, types) else "interpreter",
            }
            for part in self.plan.partitionings
            for rule in part.rules
        }

    def start(
        self,
        spark: SparkSession,
        decoder: CompiledDecoder | NotCompiledError,
        before: BeforeBatch,
        after: AfterBatch,
    ) -> StreamingQuery:
        """Start the query from its checkpoint, or anew where there is none."""
        settings = self.settings
        # A session that was handed in may say otherwise; a checkpoint keeps what it began with.
        spark.conf.set("spark.sql.shuffle.partitions", str(settings.state.state_partitions))
        # Decoding, and rules, mean this one.
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        matcher = MatchProcessor(self.plan, self.encoder, self._match_options())
        matched = (
            self.packets(spark, decoder)
            .groupBy("label")
            .transformWithState(
                statefulProcessor=MatchOperator(matcher),
                outputStructType=OUTPUT_SQL_SCHEMA,
                outputMode="Append",
                timeMode="None",
            )
        )
        begun = False

        def run_batch(frame: DataFrame, batch: int) -> None:
            nonlocal begun
            late_until = before(batch)
            context = frame.sparkSession.sparkContext
            query = context.getLocalProperty(_QUERY_ID)
            assert query is not None
            context.setLocalProperty(PLANNED_AT, str(planned_at(spark, query)))
            context.setLocalProperty(LATE_UNTIL, "" if late_until is None else str(late_until))
            writer = PartitionWriter(self.delivery, query, batch, first=not begun)
            begun = True
            reports = frame.mapInArrow(writer, REPORT_SQL_SCHEMA).collect()
            after(batch, [bytes(row[0]) for row in reports])

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

    @cached_property
    def _options(self) -> DecodeOptions:
        settings = self.settings
        return DecodeOptions(
            settings.state.key_groups,
            settings.time.max_ahead,
            settings.outputs.late_events == "all",
            self._topic,
        )

    @cached_property
    def _topic(self) -> str | None:
        """The topic that is read, where it is one by name."""
        sources = self.settings.inputs.values()
        topics = {topic for source in sources for topic in source.topics}
        if len(topics) > 1 or any(source.topic_pattern is not None for source in sources):
            return None
        return topics.pop()

    def _packer(self, records: Records) -> Packer:
        catalogue = self.catalogue
        readers = {
            schema_id: RecordReader(
                writers[0].schema.text,
                {
                    w.type: catalogue.types[w.type].reader.text
                    for w in writers
                    if w.type is not None
                },
            )
            for schema_id, writers in catalogue.writers.items()
        }
        keys = [
            tuple(
                part.key_name
                for part in self.plan.partitionings
                if part.key and part.reads(t.input)
            )
            for t in catalogue.types
        ]
        return Packer(
            partitionings=tuple(
                packed_shape(number, part) for number, part in enumerate(self.plan.partitionings)
            ),
            key_groups=self.settings.state.key_groups,
            readers=readers,
            unknown_ids=frozenset(catalogue.unknown_ids),
            unreadable=dict(catalogue.unreadable),
            encoder=self.encoder,
            time_columns=tuple(t.event_time for t in catalogue.types),
            key_texts=tuple(keys),
            max_ahead_ms=self.settings.time.max_ahead,
            records=records,
        )

    def _match_options(self) -> MatchOptions:
        time = self.settings.time
        return MatchOptions(
            key_groups=self.settings.state.key_groups,
            slot_size=self.settings.state.slot_size,
            policy=time.watermark,
            allowed_disorder_ms=time.allowed_disorder,
            emit_late=self.settings.outputs.late_events != "drop",
            type_names=tuple(t.name for t in self.catalogue.types),
            types=RecordTypes(tuple((t.input, t.name, t.columns) for t in self.catalogue.types)),
        )


def planned_at(spark: SparkSession, query: str) -> int:
    """When the batch that ``query`` is at was planned, in milliseconds since 1970: what its offset
    log keeps, so that a batch that is run again is told the same."""
    stream: Any = spark.streams.get(query)
    execution = stream._jsq.streamingQuery().lastExecution()  # noqa: SLF001  nothing public tells
    return int(execution.offsetSeqMetadata().batchTimestampMs())


def source_options(settings: Settings) -> dict[str, str]:
    """Options of the one Kafka source that reads every input."""
    options: dict[str, str] = {}
    topics: list[str] = []
    patterns: list[str] = []
    for name, source in settings.inputs.items():
        options |= settings.source_options(name)
        topics += source.topics
        patterns += [source.topic_pattern] if source.topic_pattern is not None else []
    options["includeHeaders"] = "true"
    options.pop("subscribe", None)
    options.pop("subscribePattern", None)
    if patterns:
        patterns += [re.escape(topic) for topic in topics]
        options["subscribePattern"] = "|".join(f"({pattern})" for pattern in patterns)
    else:
        options["subscribe"] = ",".join(dict.fromkeys(topics))
    return options
