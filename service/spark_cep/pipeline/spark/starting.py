"""Spark, on its way while other things are done: a JVM takes seconds to start, in which modules are
loaded, rules are read, and Kafka and the registry are asked."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_cep.config import Settings
from spark_cep.pipeline.spark.private_api import jvm
from spark_cep.pipeline.spark.session import LaunchedSpark, in_one_process


class StartingSpark:
    """Starts Spark as soon as it is made. ``scratch``: the run's folder for temporary files;
    ``done`` is told when the session is there, and when workers can be forked.

    Made before the first thread of a process, it also loads what Spark's Python processes need, and
    forks the process that they come from (:mod:`~spark_cep.pipeline.spark.forking.fork_server`).
    ``short``: for a few small queries that need no Python processes, and whose first answer counts.
    """

    def __init__(
        self,
        settings: Settings,
        scratch: Path | None,
        done: Callable[[str], None] = lambda _: None,
        *,
        short: bool = False,
    ) -> None:
        self._scratch = scratch
        self._settings = settings
        self._done = done
        self._short = short
        self._ready = threading.Event()
        self._session: SparkSession | None = None
        self._failure: BaseException | None = None
        self._launched = LaunchedSpark(settings, scratch, short=short)
        if not short:
            self._launched.fork()
        threading.Thread(target=self._start, name="starting-spark", daemon=True).start()

    @property
    def scratch(self) -> Path:
        """The run's folder for temporary files."""
        assert self._scratch is not None
        return self._scratch

    def session(self) -> SparkSession:
        """The session, once it is there. StartError when it does not come."""
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        assert self._session is not None
        return self._session

    def _start(self) -> None:
        try:
            self._session = self._launched.session(self._connected)
        except BaseException as error:  # noqa: BLE001  raised where the session is asked for
            self._failure = error
            return
        finally:
            self._ready.set()
        self._done("session")
        if in_one_process(self._settings.spark.master) and not self._short:
            self._meanwhile(start_workers, self._session)
            self._meanwhile(initialize_classes, jvm(self._session))

    def _connected(self, java: Any) -> None:
        # Queries wait for nothing else of the start.
        if self._short:
            self._meanwhile(initialize_classes, java)

    def _meanwhile(self, what: Callable[[Any], None], given: Any) -> None:
        def run() -> None:
            # Whatever is wrong shows in the first batch, and a job may have ended meanwhile.
            with suppress(Exception):
                what(given)
                self._done(what.__name__)

        threading.Thread(target=run, daemon=True).start()


def start_workers(spark: SparkSession) -> None:
    """Have Spark start the process that it forks Python workers from."""
    # A function of this module would have it imported there.
    spark.sparkContext.parallelize([0], 1).map(bool).count()


def initialize_classes(java: Any) -> None:
    """Have Java, whose classes are given by name, initialize meanwhile what planning and tasks
    would wait for: error classes (each source whose name is new is an error at first), Scala's
    reflection, json4s' view of a snapshot's metadata, RocksDB's library."""
    state = java.org.apache.spark.sql.execution.streaming.state
    for name in ("SparkThrowableHelper$", "sql.catalyst.ScalaReflection$"):
        java.java.lang.Class.forName(f"org.apache.spark.{name}")
    with tempfile.NamedTemporaryFile("w") as metadata:
        metadata.write('v1\n{"sstFiles":[],"numKeys":0}')
        metadata.flush()
        state.RocksDBCheckpointMetadata.readFromFile(java.java.io.File(metadata.name))
    state.RocksDBLoader.loadLibrary()
