"""What the driver needs to know of a checkpoint, wherever it is kept."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyspark.sql import SparkSession

from service.errors import StateError


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """``query``: Spark's id of the query; ``batch``: the newest batch that was begun, or -1."""

    query: str
    batch: int


def read_checkpoint(spark: SparkSession, location: str) -> Checkpoint | None:
    """The checkpoint at ``location`` (a path or a URL of Hadoop's); None where none was begun."""
    jvm, java = spark._jvm, spark._jsc  # noqa: SLF001  PySpark has no public door to Hadoop's files
    assert jvm is not None
    folder = jvm.org.apache.hadoop.fs.Path(location)
    files = folder.getFileSystem(java.hadoopConfiguration())
    metadata = jvm.org.apache.hadoop.fs.Path(folder, "metadata")
    if not files.exists(metadata):
        return None
    stream = files.open(metadata)
    try:
        text = jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
    finally:
        stream.close()
    try:
        query = str(json.loads(text)["id"])
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(
            f"state.checkpoint {location}: the file metadata is damaged ({text[:100]!r}); restore"
            " the checkpoint from a copy, or start from a new one"
        ) from error
    offsets = jvm.org.apache.hadoop.fs.Path(folder, "offsets")
    listed = files.listStatus(offsets) if files.exists(offsets) else ()
    numbers = [int(name) for one in listed if (name := one.getPath().getName()).isdigit()]
    return Checkpoint(query, max(numbers, default=-1))
