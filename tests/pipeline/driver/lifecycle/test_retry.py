"""Retries of what is unavailable: how often it is asked, what is said meanwhile, and when it
ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from unittest.mock import Mock

import pytest
import structlog

from spark_cep.config import Lifecycle
from spark_cep.errors import (
    ConfigurationError,
    KafkaUnavailableError,
    Problem,
    RegistryUnavailableError,
    RulesTopicUnavailableError,
    RulesUnavailableError,
)
from spark_cep.observability.health import Health
from spark_cep.pipeline.driver.lifecycle.retry import RetryPolicies, StopRequestedError

QUICK = {"backoff": "1 ms", "max_backoff": "2 ms"}


class Dependency:
    """Fails as told, then answers; notes what health says at each question."""

    def __init__(self, health: Health, *errors: Exception) -> None:
        self._health = health
        self._errors: Iterator[Exception] = iter(errors)
        self.reasons: list[str] = []

    def __call__(self) -> str:
        """The answer."""
        self.reasons.append(self._health.readiness().reason)
        for error in self._errors:
            raise error
        return "answer"


@pytest.fixture
def health() -> Health:
    """Health of a running job."""
    made = Health(60_000)
    made.ready()
    return made


@pytest.fixture
def stop() -> threading.Event:
    """Whether the job was told to stop."""
    return threading.Event()


@pytest.fixture
def retries(health: Health, stop: threading.Event) -> RetryPolicies:
    """Waits that take a few milliseconds."""
    return RetryPolicies(Lifecycle.model_validate(QUICK), stop, health)


@pytest.mark.parametrize(
    "error",
    [KafkaUnavailableError("K is unavailable"), RegistryUnavailableError("R is unavailable")],
)
def test_it_asks_until_there_is_an_answer(
    retries: RetryPolicies, health: Health, error: Exception
) -> None:
    """Meanwhile health is not ready and says for what; afterwards it is ready again."""
    dependency = Dependency(health, error, error)
    assert retries.while_running(dependency) == "answer"
    assert dependency.reasons == ["ready", *[f"ready: waits for {error}"] * 2]
    assert health.readiness().ok


@pytest.mark.parametrize("kind", [RulesUnavailableError, RulesTopicUnavailableError])
def test_the_limit_of_rules(
    health: Health, stop: threading.Event, kind: type[RulesUnavailableError]
) -> None:
    """Their problem says how long they were waited for; the log calls a topic Kafka."""
    settings = Lifecycle.model_validate({**QUICK, "startup_limit": "30 ms"})
    error = kind([Problem("no answer", "rules")])
    dependency = Dependency(health, *[error] * 1000)
    with (
        structlog.testing.capture_logs() as logged,
        pytest.raises(kind, match=r"rules: no answer \(waited 0 s, the limit is 0\.03 s\)"),
    ):
        RetryPolicies(settings, stop, health).at_start(dependency)
    waiting = "waiting_for_kafka" if kind is RulesTopicUnavailableError else "waiting_for_rules"
    assert {each["event"] for each in logged} == {waiting}


def test_what_a_retry_cannot_mend_is_raised_at_once(retries: RetryPolicies, health: Health) -> None:
    """A refused login is asked once."""
    dependency = Dependency(health, ConfigurationError("wrong password"))
    with pytest.raises(ConfigurationError, match="wrong password"):
        retries.at_start(dependency)
    assert len(dependency.reasons) == 1


def test_the_limit(health: Health, stop: threading.Event) -> None:
    """At the limit the last error is raised as what it is, with how long it was waited."""
    settings = Lifecycle.model_validate({**QUICK, "startup_limit": "30 ms"})
    dependency = Dependency(health, *[RegistryUnavailableError("R is unavailable")] * 1000)
    with pytest.raises(
        RegistryUnavailableError, match=r"^R is unavailable \(waited 0 s, the limit is 0\.03 s\)"
    ):
        RetryPolicies(settings, stop, health).at_start(dependency)
    assert len(dependency.reasons) > 2
    assert health.readiness().ok


def test_a_stop_ends_the_wait(
    retries: RetryPolicies, health: Health, stop: threading.Event
) -> None:
    """In the middle of a pause as between two questions; afterwards nothing is asked at all."""

    def question() -> None:
        stop.set()
        raise KafkaUnavailableError("K is unavailable")

    with pytest.raises(StopRequestedError):
        retries.at_start(question)
    dependency = Dependency(health)
    with pytest.raises(StopRequestedError):
        retries.while_running(dependency)
    with pytest.raises(StopRequestedError):
        retries.sleep(3600)
    assert dependency.reasons == []
    assert health.readiness().ok


def test_backoff_must_fit() -> None:
    """The first wait is not longer than the longest."""
    with pytest.raises(ValueError, match="the first wait is longer than the longest"):
        Lifecycle.model_validate({"backoff": "1 minute"})


def test_an_attempt_of_kafka_is_left_when_told_to_stop(
    retries: RetryPolicies, stop: threading.Event
) -> None:
    """Its answer is not waited for; until then it is asked as often as anything else."""
    assert retries.of_kafka_at_start(lambda: "answer") == "answer"
    with pytest.raises(ConfigurationError, match="refused"):
        retries.of_kafka_at_start(Mock(side_effect=ConfigurationError("refused")))
    asked = Mock(side_effect=[KafkaUnavailableError("no answer"), "answer"])
    assert retries.of_kafka_at_start(asked) == "answer"

    never = threading.Event()

    def hangs() -> None:
        stop.set()
        never.wait(60)

    began = time.monotonic()
    with pytest.raises(StopRequestedError):
        retries.of_kafka_at_start(hangs)
    never.set()
    assert time.monotonic() - began < 10
