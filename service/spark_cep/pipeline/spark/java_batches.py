"""A batch of a streaming query, asked of Java in one call for each question: a call takes a small
batch half a millisecond, and there would be ten.

``DataFrame.collect`` would plan the rows of a batch as a query of their own, with metrics and
events that Spark keeps: a twentieth of a small batch. There is nothing to plan, since the rows are
those of the plan that the batch has. Java's row is used again for the next one of its task, so a
task may give one.
"""

from __future__ import annotations

import json
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from spark_cep.pipeline.spark.compiled_java import new_object, send_to_executors
from spark_cep.pipeline.spark.private_api import extensions, java_frame, jvm

#: The name under which an offset's JSON has whether its batch goes without a shuffle.
ONE_STAGE: Final = "one_stage"


class JavaBatches:
    """Java's side of the batches of a session's queries."""

    def __init__(self, spark: SparkSession) -> None:
        self._java = new_object(jvm(spark), "Batches")
        send_to_executors(spark.sparkContext, "Batches")
        mark = json.dumps({ONE_STAGE: True}).strip("{}")
        new_object(jvm(spark), "OneStage").use(extensions(spark), mark)

    def planned(self, log: Any, batch: int) -> tuple[int, Any] | None:
        """The time of a batch's entry in the offset log ``log`` of a query, in milliseconds since
        1970, and the offset of its one source; ``None`` for a batch that there is not."""
        found = self._java.planned(log, batch) if batch >= 0 else None
        return None if found is None else (int(found[0]), json.loads(found[1]))

    def run(self, frame: DataFrame) -> bytes:
        """Run a batch, given its frame as ``foreachBatch`` is; the bytes that its tasks give, one
        column of one row each, in the order of partitions."""
        return bytes(self._java.run(java_frame(frame)))
