"""An outage of Kafka while the job runs: what is said of it, and what becomes of the query.

Kafka's clients bridge a short outage by themselves. After a minute the query is ended, whatever its
tasks wait for: how long they would wait depends on the time-outs of several clients and on how
often Spark repeats a task. It is started again when Kafka answers, or the job ends at
``lifecycle.outage_limit``.

An outage begins when :mod:`~spark_cep.pipeline.driver.kafka.watch` gets no answer, or when a query
fails for that reason. It ends when Kafka answers again and, if a query has ended meanwhile, a batch
is done.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Final

from spark_cep.config import Lifecycle
from spark_cep.errors import KafkaUnavailableError, SparkCepError
from spark_cep.observability.health import Health
from spark_cep.observability.logs import logger

_log = logger(__name__)
_BRIDGED_SECONDS: Final = 60.0
_LOOK_EVERY_SECONDS: Final = 0.25
#: Who says to ``Health`` what is waited for.
_WATCH, _QUERY = "kafka", "query"


class Outage:
    """The outage of one run, if there is one. Safe to call from any thread.

    ``clock`` gives seconds; ``sleep`` raises StopRequestedError when the job is told to stop.
    """

    def __init__(
        self,
        settings: Lifecycle,
        health: Health,
        sleep: Callable[[float], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings: Final = settings
        self._limit: Final = settings.outage_limit / 1000
        self._health: Final = health
        self._sleep: Final = sleep
        self._clock: Final = clock
        self._lock: Final = threading.Lock()
        self._since: float | None = None
        self._silent_since: float | None = None
        self._error: SparkCepError | None = None
        self._failures = 0

    # What the watch hears.

    def unavailable(self, error: SparkCepError) -> None:
        """Kafka does not answer, or refuses the login; says so the first time."""
        now = self._clock()
        with self._lock:
            known, self._error = self._error, error
            if known is None:
                self._silent_since = now
                self._since = now if self._since is None else self._since
            waited = now - (self._since or now)
        self._health.waiting(str(error), by=_WATCH)
        if known is None:
            self._say_waiting(error, waited)

    def back(self) -> None:
        """Kafka answers; says so the first time."""
        with self._lock:
            if self._error is None:
                return
            self._error = None
            lasted = self._clock() - (self._silent_since or 0.0)
            if not self._failures:
                self._since = None
        self._health.waiting("", by=_WATCH)
        _log.info("kafka_back", unavailable_seconds=round(lasted, 1))

    # The query.

    @property
    def error(self) -> SparkCepError | None:
        """Why nothing can be read or written, as far as the watch knows."""
        return self._error

    def too_long_for_clients(self) -> SparkCepError | None:
        """The error, once Kafka has been unavailable for so long that the query is to be ended."""
        with self._lock:
            if self._error is None or self._silent_since is None or self._since is None:
                return None
            now = self._clock()
            over = now - self._silent_since >= _BRIDGED_SECONDS or now - self._since >= self._limit
            return self._error if over else None

    def batch_done(self) -> None:
        """A batch was done: what failed before does not count any longer."""
        with self._lock:
            self._failures = 0
            self._since = None if self._error is None else self._silent_since

    def survive(self, error: SparkCepError) -> None:
        """Return when the query that ended with ``error`` may be started again.

        Raises KafkaUnavailableError when the outage has lasted for ``lifecycle.outage_limit``, the
        error itself where waiting does not help, and StopRequestedError.
        """
        with self._lock:
            now = self._clock()
            self._since = since = now if self._since is None else self._since
            known = self._error is not None
            longest = self._settings.backoff * 2**self._failures
            longest = min(longest, self._settings.max_backoff) / 1000
            self._failures = min(self._failures + 1, 30)
        self._check(error, since)
        self._health.waiting(str(error), by=_QUERY)
        if not known:
            self._say_waiting(error, now - since)
        try:
            self._sleep(random.uniform(longest / 2, longest))  # noqa: S311  no secret
            while (error_now := self._error) is not None:
                self._check(error_now, since)
                self._sleep(_LOOK_EVERY_SECONDS)
        finally:
            self._health.waiting("", by=_QUERY)

    def _check(self, error: SparkCepError, since: float) -> None:
        if not isinstance(error, KafkaUnavailableError):
            raise error
        lasted = self._clock() - since
        if lasted >= self._limit:
            raise KafkaUnavailableError(
                f"{error} (no batch was done for {lasted:.0f} s since Kafka was first unavailable,"
                f" the limit is {self._limit:g} s)"
            )

    def _say_waiting(self, error: SparkCepError, waited: float) -> None:
        _log.warning(
            "waiting_for_kafka",
            reason=str(error),
            attempt=max(1, self._failures),
            waited_seconds=round(waited, 1),
            left_seconds=round(self._limit - waited, 1),
        )
