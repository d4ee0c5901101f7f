"""An outage of Kafka: when it begins and ends, what is said, and when a query may start again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import structlog

from spark_cep.config import Lifecycle
from spark_cep.errors import ConfigurationError, KafkaUnavailableError
from spark_cep.observability.health import Health
from spark_cep.pipeline.driver.lifecycle.outage import Outage

UNAVAILABLE = KafkaUnavailableError("away")


class Trial:
    """An outage by a clock of its own; pauses take time on it, and things happen meanwhile."""

    def __init__(self, **settings: str) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        self.meanwhile: dict[float, Callable[[], None]] = {}
        self.health = Health(60_000, lambda: self.now)
        self.health.ready()
        lifecycle = Lifecycle.model_validate(settings)
        self.outage = Outage(lifecycle, self.health, self._sleep, lambda: self.now)

    def _sleep(self, seconds: float) -> None:
        assert not self.health.readiness().ok
        self.pauses.append(seconds)
        self.now += seconds
        for moment in [each for each in self.meanwhile if each <= self.now]:
            self.meanwhile.pop(moment)()


def test_away_and_back_are_told_once() -> None:
    """However often Kafka is asked in between; readiness follows, and the process is to live."""
    trial = Trial()
    with structlog.testing.capture_logs() as lines:
        for trial.now in (0, 100, 200):
            trial.outage.unavailable(UNAVAILABLE)
            assert not trial.health.readiness().ok
            assert trial.health.live().ok
        for trial.now in (250, 260):
            trial.outage.back()
            assert trial.health.readiness().ok
    assert [line["event"] for line in lines] == ["waiting_for_kafka", "kafka_back"]
    assert lines[0]["left_seconds"] == 900
    assert lines[1]["unavailable_seconds"] == 250


def test_clients_bridge_a_minute() -> None:
    """Only then the query is ended; a limit that is shorter ends it sooner."""
    trial = Trial()
    for trial.now in (0, 59.9):
        trial.outage.unavailable(UNAVAILABLE)
        assert trial.outage.too_long_for_clients() is None
    trial.now = 60
    assert trial.outage.too_long_for_clients() is UNAVAILABLE
    trial.outage.back()
    assert trial.outage.too_long_for_clients() is None
    hasty = Trial(outage_limit="10 seconds")
    hasty.outage.unavailable(UNAVAILABLE)
    hasty.now = 10
    assert hasty.outage.too_long_for_clients() is UNAVAILABLE


def test_the_query_starts_again_when_kafka_is_back() -> None:
    """Not before, and the outage counts from its beginning, not from the end of the query."""
    trial = Trial(outage_limit="2 minutes")
    trial.outage.unavailable(UNAVAILABLE)
    trial.now = 60
    trial.meanwhile[100] = trial.outage.back
    with structlog.testing.capture_logs() as lines:
        trial.outage.survive(UNAVAILABLE)
    assert 100 <= trial.now < 101
    assert trial.health.readiness().ok
    assert [line["event"] for line in lines] == ["kafka_back"]
    trial.outage.unavailable(UNAVAILABLE)
    with pytest.raises(
        KafkaUnavailableError, match=r"away \(no batch was done for 12. s .*limit is 120"
    ):
        trial.outage.survive(UNAVAILABLE)


def test_pauses_between_restarts_grow() -> None:
    """Kafka answers, yet the query fails again and again: each pause is up to twice as long, to a
    limit; a batch that is done ends the outage."""
    trial = Trial(backoff="1 second", max_backoff="4 seconds")
    with structlog.testing.capture_logs() as lines:
        for _ in range(5):
            trial.outage.survive(UNAVAILABLE)
    assert [line["attempt"] for line in lines] == [1, 2, 3, 4, 5]
    for pause, longest in zip(trial.pauses, (1, 2, 4, 4, 4), strict=True):
        assert longest / 2 <= pause <= longest
    assert trial.health.readiness().ok
    trial.outage.batch_done()
    trial.outage.survive(UNAVAILABLE)
    assert trial.pauses[-1] <= 1


def test_an_outage_has_a_limit() -> None:
    """It counts from the first failure, over all restarts, until a batch is done."""
    trial = Trial(outage_limit="1 minute")
    trial.outage.survive(UNAVAILABLE)
    trial.now = 59
    trial.outage.survive(UNAVAILABLE)
    trial.outage.batch_done()
    trial.now = 1000
    trial.outage.survive(UNAVAILABLE)
    trial.now += 61
    with pytest.raises(
        KafkaUnavailableError, match=r"away \(no batch was done for 6. s .*limit is 60 s"
    ):
        trial.outage.survive(UNAVAILABLE)


def test_a_refused_login_is_not_waited_for() -> None:
    """Once the query has ended, the job does."""
    trial = Trial()
    trial.outage.unavailable(ConfigurationError("wrong password"))
    with pytest.raises(ConfigurationError, match="wrong password"):
        trial.outage.survive(UNAVAILABLE)
