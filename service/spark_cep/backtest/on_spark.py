"""A replay on a Spark master, for more than one core: a batch job of production's two stages.

Tasks of the first stage read and decode parts of the recordings, and tell a few numbers about each
piece. Of these the driver finds the order in which one process would have merged the pieces, with
the watermark of each batch (:mod:`~spark_cep.recorded.merging`). Packets go to the tasks of the
second stage by key; there the batch runner matches them, batch by batch. So nothing is read or
decoded twice, and the results are those of one process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spark_cep.backtest.replay import OpenMatches, Replay, ReplayedBatch
from spark_cep.backtest.stages.matching import matching_of
from spark_cep.backtest.stages.reading import Failed, PieceSummary, Reading, shares_of
from spark_cep.errors import StartError, printable
from spark_cep.pipeline.wire.new_schemas import NewSchemasError
from spark_cep.recorded.merging import AtEnd

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext


class SparkReplay:
    """A replay of the rules of ``replay`` over its events, on Spark."""

    def __init__(self, replay: Replay, spark: SparkContext, *, keeps_results: bool) -> None:
        self._replay, self._spark, self._keeps_results = replay, spark, keeps_results
        self._open = OpenMatches()

    def run(self, at_end: AtEnd = "wait") -> Iterator[ReplayedBatch]:
        """The results of each task, batch by batch. Raises what reading raises in one process."""
        from pyspark import StorageLevel

        tasks = self._spark.defaultParallelism
        packets, summaries = self._packed(tasks)
        matching = matching_of(self._reading(tasks), summaries, at_end, tasks, self._keeps_results)
        by_task: Any = packets.mapPartitions(matching.keyed).repartitionAndSortWithinPartitions(
            tasks, lambda key: key[1]
        )
        results = by_task.mapPartitionsWithIndex(matching.matched)
        # The driver takes in the results of one task after the other, which would run so, too.
        results.persist(StorageLevel.DISK_ONLY)
        results.count()
        for found in results.toLocalIterator():
            if isinstance(found, OpenMatches):
                self._open.add(found)
            else:
                yield found
        results.unpersist()
        packets.unpersist()

    def _packed(self, tasks: int) -> tuple[RDD[Any], list[PieceSummary]]:
        """The first stage, and the numbers about all pieces. Schemas that are new to it are
        learnt."""
        from pyspark import StorageLevel

        while True:
            reading = self._reading(tasks)
            shares = shares_of(self._replay.events.recordings, tasks)
            packets = self._spark.parallelize(shares, len(shares)).flatMap(reading.packed)
            # Matching has to know all numbers first.
            packets.persist(StorageLevel.DISK_ONLY)
            found = packets.filter(lambda each: isinstance(each, PieceSummary | Failed)).collect()
            failed = next((each for each in found if isinstance(each, Failed)), None)
            if failed is None:
                return packets, [each for each in found if isinstance(each, PieceSummary)]
            packets.unpersist()
            error = failed.raised()
            if not isinstance(error, NewSchemasError):
                raise error
            self._replay.events.learn(error)

    def _reading(self, tasks: int) -> Reading:
        settings = replace(self._replay.settings, key_groups=tasks)
        return Reading(self._replay.events.snapshot(), self._replay.plan_text, settings)

    def open_matches(self) -> OpenMatches:
        """The partial matches that are open at the end."""
        return self._open


@contextmanager
def spark_context(master: str) -> Iterator[SparkContext]:
    """Spark at ``master``, until the block ends. Raises StartError where it does not start."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("spark-cep backtest")
    builder = builder.config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    try:
        session = builder.getOrCreate()
    except Exception as error:  # noqa: BLE001  Spark raises all kinds
        raise StartError(
            f"Spark cannot start with --master {printable(repr(master))}: {printable(str(error))};"
            " allowed is a master as spark-submit takes it, as local[4], spark://HOST:PORT, yarn or"
            " k8s://HOST:PORT"
        ) from None
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session.sparkContext
    finally:
        session.stop()
