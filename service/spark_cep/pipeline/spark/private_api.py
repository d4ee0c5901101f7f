"""PySpark's names that its documentation does not promise, each behind one function.

Another version of Spark may change them. ``tests/pipeline/spark/test_private_api.py`` asks the
installed version for each by name, and for those that only one module can use: the gateway
(:mod:`~spark_cep.pipeline.spark.jvm`), the worker's daemon
(:mod:`~spark_cep.pipeline.spark.forking.worker_daemon`) and the state's connection
(:mod:`~spark_cep.pipeline.tasks.pipelined_map`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark import SparkConf, SparkContext
from pyspark.serializers import CPickleSerializer
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_SERIALIZER: Any = CPickleSerializer()


def pickled(value: object) -> bytes:
    """``value`` as Spark's own functions travel to tasks: with the classes that it needs."""
    data: bytes = _SERIALIZER.dumps(value)
    return data


def unpickled(data: bytes) -> Any:
    """The value that :func:`pickled` made bytes of."""
    return _SERIALIZER.loads(data)


def spark_type(schema: pa.Schema) -> StructType:
    """An Arrow schema as Spark's type of rows."""
    return from_arrow_schema(schema)


def gateway() -> Any:
    """The connection of this process to its JVM; None before there is one."""
    return SparkContext._gateway  # noqa: SLF001  nothing public tells


def connect(connection: Any, conf: SparkConf) -> None:
    """Use the JVM behind ``connection`` (None: one that is there, or a new one) in this process."""
    SparkContext._ensure_initialized(gateway=connection, conf=conf)  # noqa: SLF001  PySpark's own launch


def running_jvm() -> Any:
    """Java's classes by name, as long as a Spark context is active; else None."""
    context = SparkContext._active_spark_context  # noqa: SLF001  another thread than the context's asks
    return None if context is None else jvm(context)


def jvm(spark: SparkSession | SparkContext) -> Any:
    """Java's classes by name: the way to Hadoop's file systems and to Spark's own classes."""
    return spark._jvm  # noqa: SLF001  py4j has no public way


def java_context(context: SparkContext) -> Any:
    """Java's side of a context."""
    return context._jsc  # noqa: SLF001  nothing public gives executors a jar


def hadoop_conf(spark: SparkSession) -> Any:
    """Hadoop's settings, with those of the session."""
    return _java_session(spark).sessionState().newHadoopConf()


def extensions(spark: SparkSession) -> Any:
    """The rules of a session's planner, to which queries that start later may be given others."""
    return _java_session(spark).extensions()


def java_frame(frame: DataFrame) -> Any:
    """Java's side of a frame."""
    return frame._jdf  # noqa: SLF001  nothing public has its rows without a second query


def offset_log(query: StreamingQuery) -> Any:
    """The log that a query plans its batches in (``OffsetSeqLog`` of Spark's own)."""
    execution: Any = query._jsq  # noqa: SLF001  progress tells of a batch when it is done
    return execution.streamingQuery().offsetLog()


def progress_after(query: StreamingQuery, batch: int) -> list[dict[str, Any]]:
    """Spark's progress of the batches after ``batch``, oldest first, of those that it keeps.

    The public ``recentProgress`` writes and parses a hundred texts for each call, and
    ``lastProgress`` one that need not be new: a tenth of a second of processor time, a few times a
    second.
    """
    execution: Any = query._jsq  # noqa: SLF001  Java's, each of which is read when asked
    last = execution.lastProgress()
    newest = batch if last is None else last.batchId()
    if newest <= batch:
        return []
    if newest == batch + 1:
        # An idle query adds progress with the number of the batch to come again and again.
        return [json.loads(last.json())]
    found: list[dict[str, Any]] = []
    for progress in reversed(execution.recentProgress()):
        if progress.batchId() <= batch:
            break
        found.append(json.loads(progress.json()))
    return found[::-1]


def repartition_checkpoint(spark: SparkSession, checkpoint: str, partitions: int) -> None:
    """Spread the state of a checkpoint over so many partitions, as a batch of its own."""
    manager = spark._streamingCheckpointManager  # noqa: SLF001  to be public in a later Spark
    manager.repartition(checkpoint, partitions)


def _java_session(spark: SparkSession) -> Any:
    """Java's side of a session."""
    return spark._jsparkSession  # noqa: SLF001  nothing public has its settings and rules
