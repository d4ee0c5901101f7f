"""Retry policies for Kafka, the schema registry and the source of rules.

A request is asked again, with growing pauses that chance varies, while nobody answers
(KafkaUnavailableError, RegistryUnavailableError, RulesUnavailableError). Every attempt is logged,
health says what is waited for, and the wait ends at a limit, or when the job is told to stop.
Whatever else goes wrong is not waited for: it would go wrong again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
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

from spark_cep.config import Lifecycle
from spark_cep.errors import (
    KafkaUnavailableError,
    RegistryUnavailableError,
    RulesTopicUnavailableError,
    RulesUnavailableError,
)
from spark_cep.observability.health import Health
from spark_cep.observability.logs import logger

_log = logger(__name__)
_T = TypeVar("_T")

_LOOK_EVERY_SECONDS: Final = 0.1
UNAVAILABLE: Final = (KafkaUnavailableError, RegistryUnavailableError, RulesUnavailableError)


class StopRequestedError(Exception):
    """The job was told to stop; nothing is wrong."""


class RetryPolicy(Protocol):
    """A policy of asking again while nobody answers."""

    def __call__(self, request: Callable[[], _T], /) -> _T:
        """The answer, or the error of the last attempt."""


def ask_once(request: Callable[[], _T]) -> _T:
    """Without a retry."""
    return request()


@dataclass(frozen=True)
class RetryPolicies:
    """The retry policies of one run of the service. ``stop`` ends every wait."""

    settings: Lifecycle
    stop: threading.Event
    health: Health

    def at_start(self, request: Callable[[], _T]) -> _T:
        """The answer, waited for up to ``lifecycle.startup_limit``.

        Raises StopRequestedError when told to stop meanwhile, and the error of the last attempt
        at the limit.
        """
        return self._ask(request, self.settings.startup_limit / 1000)

    def of_kafka_at_start(self, request: Callable[[], _T]) -> _T:
        """Do as :meth:`at_start`, and do not wait for an attempt's end when told to stop: a client
        of Kafka waits ten seconds for an answer. ``request`` runs in a thread that is left to
        itself then, and uses nothing that others close."""
        return self.at_start(lambda: self._unless_stopped(request))

    def _unless_stopped(self, request: Callable[[], _T]) -> _T:
        answer: Future[_T] = Future()

        def ask() -> None:
            try:
                answer.set_result(request())
            except BaseException as error:  # noqa: BLE001  raised where it is waited for
                answer.set_exception(error)

        context = copy_context()  # with what log lines say of the run
        threading.Thread(target=lambda: context.run(ask), name="asks-kafka", daemon=True).start()
        while not answer.done():
            wait([answer], _LOOK_EVERY_SECONDS)
            if self.stop.is_set() and not answer.done():
                raise StopRequestedError
        return answer.result()

    def while_running(self, request: Callable[[], _T]) -> _T:
        """Do as :meth:`at_start`, up to ``lifecycle.outage_limit``."""
        return self._ask(request, self.settings.outage_limit / 1000)

    def sleep(self, seconds: float) -> None:
        """Sleep; raise StopRequestedError when told to stop."""
        if self.stop.wait(seconds):
            raise StopRequestedError

    def _ask(self, request: Callable[[], _T], seconds: float) -> _T:
        if self.stop.is_set():
            raise StopRequestedError

        retrying = Retrying(
            retry=retry_if_exception_type(UNAVAILABLE),
            wait=wait_random_exponential(
                self.settings.backoff / 1000, self.settings.max_backoff / 1000
            ),
            stop=stop_before_delay(seconds) | stop_when_event_set(self.stop),
            sleep=sleep_using_event(self.stop),
            before_sleep=partial(self._log_attempt, seconds),
            reraise=True,
        )
        began = time.monotonic()
        try:
            return retrying(request)
        except UNAVAILABLE as error:
            if self.stop.is_set():
                raise StopRequestedError from error
            waited = time.monotonic() - began
            text = f"(waited {waited:.0f} s, the limit is {seconds:g} s)"
            if isinstance(error, RulesUnavailableError):
                problems = [
                    replace(each, message=f"{each.message} {text}") for each in error.problems
                ]
                raise type(error)(problems) from error
            raise type(error)(f"{error} {text}") from error
        finally:
            self.health.waiting("")

    def _log_attempt(self, seconds: float, state: RetryCallState) -> None:
        assert state.outcome is not None
        error = state.outcome.exception()
        self.health.waiting(str(error))
        waited = state.seconds_since_start or 0.0
        of_kafka = isinstance(error, KafkaUnavailableError | RulesTopicUnavailableError)
        _log.warning(
            "waiting_for_kafka"
            if of_kafka
            else "waiting_for_rules"
            if isinstance(error, RulesUnavailableError)
            else "waiting_for_registry",
            reason=str(error),
            attempt=state.attempt_number,
            waited_seconds=round(waited, 1),
            left_seconds=round(seconds - waited, 1),
        )
