"""The batches of a query: decisions before each runs, properties of its tasks, their reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_cep.codecs.record_reader import RecordFormat
from spark_cep.pipeline.driver.checkpoint.partly_written import PartlyWritten
from spark_cep.pipeline.driver.control.source_offset import SourceOffset
from spark_cep.pipeline.driver.rules.batch_rules import BatchRules
from spark_cep.pipeline.spark.private_api import offset_log
from spark_cep.pipeline.tasks.batch_properties import set_properties
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

    def run(self, frame: DataFrame, batch: int) -> tuple[int, int]:
        """Run a batch, given its reports; how many records it had, and their bytes."""
        context = frame.sparkSession.sparkContext
        query = context.getLocalProperty(_QUERY_ID)
        assert query is not None
        planned = self._planned(query, batch)
        assert planned is not None
        offset, begins = _offset(planned), self._begins(query, batch)
        self._newest = batch, offset
        rules = self.rules.of(batch, lambda: {} if begins is None else begins.by_topic)
        late_until = self.before(batch)
        known, decided, partly = self.schemas.known, None, self.partly_written
        if partly is not None and partly.batch == batch:
            known = decided = partly.schemas
        properties = TaskProperties(
            planned_at=int(planned.metadataOpt().get().batchTimestampMs()),
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
        reports = frame.collect()
        return self.after(batch, [bytes(row[0]) for row in reports])

    def _begins(self, query: str, batch: int) -> SourceOffset | None:
        """The place in the sources where a batch begins; ``None`` for the first one."""
        if self._newest is not None and self._newest[0] == batch - 1:
            return self._newest[1]
        ends_at = self._planned(query, batch - 1)
        return None if ends_at is None else _offset(ends_at)

    def _planned(self, query: str, batch: int) -> Any:
        """Spark's entry of a batch in its offset log, the same when the batch runs again; ``None``
        for a batch that there is not."""
        stream = self.spark.streams.get(query)
        assert stream is not None
        entry = offset_log(stream).get(batch)
        return entry.get() if batch >= 0 and entry.isDefined() else None


def _offset(entry: Any) -> SourceOffset:
    return SourceOffset.from_json(json.loads(entry.offsets().head().get().json()))
