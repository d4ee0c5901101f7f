"""Spark, on its way while other things are done: a JVM takes seconds to start, in which modules are
loaded, rules are read, and Kafka and the registry are asked."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

from spark_cep.config import Settings
from spark_cep.pipeline.spark.private_api import jvm
from spark_cep.pipeline.spark.session import LaunchedSpark, in_one_process


class StartingSpark:
    """Starts Spark as soon as it is made. ``scratch``: the run's folder for temporary files;
    ``done`` is told when the session is there, and when workers can be forked.

    Made before the first thread of a process, it also loads what Spark's Python processes need, and
    forks the process that they come from (:mod:`~spark_cep.pipeline.spark.forking.fork_server`).
    """

    def __init__(
        self, settings: Settings, scratch: Path, done: Callable[[str], None] = lambda _: None
    ) -> None:
        self.scratch = scratch
        self._settings = settings
        self._done = done
        self._ready = threading.Event()
        self._session: SparkSession | None = None
        self._failure: BaseException | None = None
        self._launched = LaunchedSpark(settings, scratch)
        self._launched.fork()
        threading.Thread(target=self._start, name="starting-spark", daemon=True).start()

    def session(self) -> SparkSession:
        """The session, once it is there. StartError when it does not come."""
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        assert self._session is not None
        return self._session

    def _start(self) -> None:
        try:
            self._session = self._launched.session()
        except BaseException as error:  # noqa: BLE001  raised where the session is asked for
            self._failure = error
            return
        finally:
            self._ready.set()
        self._done("session")
        if in_one_process(self._settings.spark.master):
            for what in (start_workers, initialize_classes):
                threading.Thread(target=self._meanwhile, args=(what,), daemon=True).start()

    def _meanwhile(self, what: Callable[[SparkSession], None]) -> None:
        # Whatever is wrong shows in the first batch, and a job may have ended meanwhile.
        with suppress(Exception):
            what(self.session())
            self._done(what.__name__)


def start_workers(spark: SparkSession) -> None:
    """Have Spark start the process that it forks Python workers from."""
    # A function of this module would have it imported there.
    spark.sparkContext.parallelize([0], 1).map(bool).count()


def initialize_classes(spark: SparkSession) -> None:
    """Have Java initialize, while the job takes over, what planning and tasks would wait for: error
    classes (each source whose name is new is an error at first), Scala's reflection, json4s' view
    of a snapshot's metadata, RocksDB's library."""
    java = jvm(spark)
    state = java.org.apache.spark.sql.execution.streaming.state
    for name in ("SparkThrowableHelper$", "sql.catalyst.ScalaReflection$"):
        java.java.lang.Class.forName(f"org.apache.spark.{name}")
    with tempfile.NamedTemporaryFile("w") as metadata:
        metadata.write('v1\n{"sstFiles":[],"numKeys":0}')
        metadata.flush()
        state.RocksDBCheckpointMetadata.readFromFile(java.java.io.File(metadata.name))
    state.RocksDBLoader.loadLibrary()
