"""Retry policies for Kafka and the schema registry, at the start and while the job runs.

A question is asked again, with growing pauses that chance varies, while nobody answers
(KafkaAwayError, RegistryAwayError). Every attempt is logged, health says what is waited for, and
the wait ends at a limit, or when the job is told to stop. Whatever else goes wrong is not waited
for: it would go wrong again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_before_delay,
    stop_when_event_set,
    wait_random_exponential,
)

from service.config import Lifecycle
from service.errors import KafkaAwayError, RegistryAwayError
from service.observability.health import Health
from service.observability.logs import logger

_log = logger(__name__)
_T = TypeVar("_T")

AWAY: Final = (KafkaAwayError, RegistryAwayError)


class StopRequestedError(Exception):
    """The job was told to stop; nothing is wrong."""


class RetryPolicy(Protocol):
    """How often a question is asked while nobody answers."""

    def __call__(self, question: Callable[[], _T], /) -> _T:
        """The answer, or the error of the last attempt."""


def ask_once(question: Callable[[], _T]) -> _T:
    """Without a retry."""
    return question()


class RetryPolicies:
    """The retry policies of one run of the service. ``stop`` ends every wait."""

    def __init__(self, settings: Lifecycle, stop: threading.Event, health: Health) -> None:
        self._settings = settings
        self._stop = stop
        self._health = health

    def at_start(self, question: Callable[[], _T]) -> _T:
        """The answer, waited for up to ``lifecycle.startup_limit``.

        Raises StopRequestedError when told to stop meanwhile, and the error of the last attempt
        at the limit.
        """
        return self._ask(question, self._settings.startup_limit / 1000)

    def while_running(self, question: Callable[[], _T]) -> _T:
        """As :meth:`at_start`, up to ``lifecycle.outage_limit``."""
        return self._ask(question, self._settings.outage_limit / 1000)

    def sleep(self, seconds: float) -> None:
        """Sleep; raise StopRequestedError when told to stop."""
        if self._stop.wait(seconds):
            raise StopRequestedError

    def _ask(self, question: Callable[[], _T], seconds: float) -> _T:
        if self._stop.is_set():
            raise StopRequestedError

        def before_sleep(state: RetryCallState) -> None:
            self._tell(state, seconds)

        retrying = Retrying(
            retry=retry_if_exception_type(AWAY),
            wait=wait_random_exponential(
                self._settings.backoff / 1000, self._settings.max_backoff / 1000
            ),
            stop=stop_before_delay(seconds) | stop_when_event_set(self._stop),
            sleep=sleep_using_event(self._stop),
            before_sleep=before_sleep,
            reraise=True,
        )
        began = time.monotonic()
        try:
            return retrying(question)
        except AWAY as error:
            if self._stop.is_set():
                raise StopRequestedError from error
            waited = time.monotonic() - began
            raise type(error)(f"{error} (waited {waited:.0f} s, the limit is {seconds:g} s)") from (
                error
            )
        finally:
            self._health.waiting("")

    def _tell(self, state: RetryCallState, seconds: float) -> None:
        assert state.outcome is not None
        error = state.outcome.exception()
        self._health.waiting(str(error))
        waited = state.seconds_since_start or 0.0
        _log.warning(
            "waiting_for_registry" if isinstance(error, RegistryAwayError) else "waiting_for_kafka",
            reason=str(error),
            attempt=state.attempt_number,
            waited_seconds=round(waited, 1),
            left_seconds=round(seconds - waited, 1),
        )
