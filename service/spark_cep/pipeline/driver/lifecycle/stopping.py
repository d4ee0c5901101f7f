"""Ending a query in good order: the batch in flight is finished and committed, no other begins.

Spark's own ``query.stop()`` throws the batch in flight away. So it is called only when there is
none: between batches, while Spark asks Kafka what is new, and, as batches may come back to back,
while the next batch is *held*, that is, stands at its very beginning and waits to be interrupted.
A batch that does not end within the grace period is thrown away after all; the next start repeats
it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_cep.observability.logs import logger
from spark_cep.pipeline.driver.lifecycle.retry import StopRequestedError
from spark_cep.pipeline.spark.private_api import jvm

_log = logger(__name__)
_HOLD_MS: Final = 3_600_000
_INTERRUPTED: Final = (
    "py4j.protocol.Py4JJavaError: An error occurred while calling sleep:"
    " java.lang.InterruptedException"
)
"""By this text Spark knows that a batch's Python function was interrupted by query.stop(), which
is no error. Py4J's own says the same followed by Java's trace; at that length the regular
expression that Spark looks for it with overflows Java's stack."""


class Stopping:
    """The stop of the job, and what it means for its query."""

    def __init__(self, grace_ms: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.requested: Final = threading.Event()
        self.grace_ran_out = False
        self._grace = grace_ms / 1000
        self._clock = clock
        self._deadline = 0.0
        self._held = threading.Event()

    def request(self) -> None:
        """Tell the job to stop. Safe in a signal handler; the first time counts."""
        if not self.requested.is_set():
            self._deadline = self._clock() + self._grace
            self.requested.set()

    def check(self) -> None:
        """Raise StopRequestedError when the job was told to stop."""
        if self.requested.is_set():
            raise StopRequestedError

    def hold(self, spark: SparkSession) -> None:
        """Called at the beginning of a batch, on Spark's thread: returns, or, when the job was
        told to stop, waits for Spark to interrupt it, which raises."""
        if not self.requested.is_set():
            return
        self._held.set()
        with suppress(Py4JJavaError):
            # Asleep in Java, on the thread that query.stop() interrupts.
            jvm(spark).java.lang.Thread.sleep(_HOLD_MS)
        raise StopRequestedError(_INTERRUPTED)

    def end(self, query: StreamingQuery) -> None:
        """Stop the query if nothing is lost by it, or if the grace period has run out; otherwise
        do nothing. To be called again and again once :attr:`requested` is set."""
        if self._held.is_set() or _between_batches(query):
            query.stop()
        elif self._clock() >= self._deadline and not self.grace_ran_out:
            self.grace_ran_out = True
            _log.error("batch_given_up", grace_seconds=self._grace)
            query.stop()


def _between_batches(query: StreamingQuery) -> bool:
    status = query.status
    # What Spark does between two batches may take long when Kafka does not answer.
    return not status["isTriggerActive"] or status["message"].startswith("Getting offsets from")
