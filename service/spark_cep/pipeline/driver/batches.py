"""The batches of a query: decisions before each runs, properties of its tasks, their reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from spark_cep.codecs.record_reader import RecordFormat
from spark_cep.pipeline.driver.checkpoint.partly_written import PartlyWritten
from spark_cep.pipeline.driver.control.source_offset import SourceOffset
from spark_cep.pipeline.driver.rules.batch_rules import BatchRules
from spark_cep.pipeline.match.watermark import BEGINNING
from spark_cep.pipeline.spark.java_batches import JavaBatches
from spark_cep.pipeline.spark.private_api import offset_log
from spark_cep.pipeline.tasks.batch_properties import set_properties
from spark_cep.pipeline.tasks.frames import reports_in
from spark_cep.pipeline.wire.task_properties import TaskProperties

#: Spark's local property with the id of the query that a batch belongs to.
_QUERY_ID = "sql.streaming.queryId"

#: Called with a batch's number before it runs; raising leaves the batch undone. Returns the time
#: after which no event of the batch is late, if it is known.
BeforeBatch = Callable[[int], int | None]
#: Called with a batch's number and its reports once its records are acknowledged. Returns how many
#: records it had, and their bytes.
AfterBatch = Callable[[int, list[bytes]], tuple[int, int]]


@dataclass
class Batches:
    """The batches of one query. ``partly_written``: the one that it begins with, if some of its
    output is there."""

    spark: SparkSession
    rules: BatchRules
    schemas: RecordFormat
    before: BeforeBatch
    after: AfterBatch
    partly_written: PartlyWritten | None
    _begun: bool = field(default=False, init=False)
    #: Where the newest batch ends in the sources, by its number.
    _newest: tuple[int, SourceOffset] | None = field(default=None, init=False)
    _java: JavaBatches = field(init=False)
    #: The query's id, and its offset log, once there is a batch.
    _query: tuple[str, Any] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._java = JavaBatches(self.spark)

    def run(self, frame: DataFrame, batch: int) -> tuple[int, int]:
        """Run a batch, given its reports; how many records it had, and their bytes."""
        context = frame.sparkSession.sparkContext
        query, log = self._query_of(context)
        planned = self._java.planned(log, batch)
        assert planned is not None
        planned_at, offset = planned[0], SourceOffset.from_json(planned[1])
        begins = self._begins(log, batch)
        self._newest = batch, offset
        rules = self.rules.of(batch, lambda: {} if begins is None else begins.by_topic)
        late_until = self.before(batch)
        if begins is None and late_until is None:
            # Nothing is late in a checkpoint's first batch, so records leave their bytes behind.
            late_until = BEGINNING
        known, decided, partly = self.schemas.known, None, self.partly_written
        if partly is not None and partly.batch == batch:
            known = decided = partly.schemas
        properties = TaskProperties(
            planned_at=planned_at,
            late_until=late_until,
            offsets=offset.digest,
            offsets_before="" if begins is None else begins.digest,
            schemas=decided,
            rules=rules.text,
            known_schemas=known,
            query=query,
            batch=batch,
            first=not self._begun,
        )
        set_properties(context, properties)
        self._begun = True
        return self.after(batch, reports_in(self._java.run(frame)))

    def _query_of(self, context: SparkContext) -> tuple[str, Any]:
        if self._query is None:
            identity = context.getLocalProperty(_QUERY_ID)
            assert identity is not None
            query = self.spark.streams.get(identity)
            assert query is not None
            self._query = identity, offset_log(query)
        return self._query

    def _begins(self, log: Any, batch: int) -> SourceOffset | None:
        """The place in the sources where a batch begins; ``None`` for the first one."""
        if self._newest is not None and self._newest[0] == batch - 1:
            return self._newest[1]
        # The entry is the same when the batch runs again.
        ends_at = self._java.planned(log, batch - 1)
        return None if ends_at is None else SourceOffset.from_json(ends_at[1])
