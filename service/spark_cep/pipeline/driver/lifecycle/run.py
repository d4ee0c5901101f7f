"""One run of the service: its name, what it is seen by, and what it waits for and ends of."""

from __future__ import annotations

import time

from spark_cep.config import Settings
from spark_cep.errors import CircuitBreakerError, GraceError
from spark_cep.observability.health import Health
from spark_cep.observability.logs import new_run_id
from spark_cep.observability.metrics import Metrics
from spark_cep.observability.start_clock import StartClock
from spark_cep.pipeline.driver.lifecycle.circuit_breaker import CircuitBreaker
from spark_cep.pipeline.driver.lifecycle.outage import Outage
from spark_cep.pipeline.driver.lifecycle.retry import RetryPolicies
from spark_cep.pipeline.driver.lifecycle.stopping import Stopping


class Run:
    """A run, which the log calls ``id``."""

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics | None = None,
        health: Health | None = None,
        start: StartClock | None = None,
        run_id: str | None = None,
    ) -> None:
        self.id = run_id or new_run_id()
        self.settings = settings
        self.metrics = metrics or Metrics(settings.observability.max_rule_labels)
        self.health = health or Health(settings.observability.stall_limit)
        self.start_clock = start or StartClock()
        self.stopping = Stopping(settings.lifecycle.stop_grace)
        self.retries = RetryPolicies(settings.lifecycle, self.stopping.requested, self.health)
        self.outage = Outage(settings.lifecycle, self.health, self.retries.sleep)
        self.breaker = CircuitBreaker(
            settings.circuit_breaker, lambda: time.monotonic_ns() // 1_000_000
        )

    def stop(self) -> None:
        """Ask the run to end after the batch in flight. Safe in a signal handler."""
        self.health.stopping()
        self.stopping.request()

    def check_end(self) -> None:
        """Raise the error of a run that has ended, if it has one: CircuitBreakerError when too many
        records became dead letters, GraceError when the batch in flight was given up."""
        trip = self.breaker.job_trip
        if trip is not None:
            topic = self.settings.outputs.topics.dead_letters
            raise CircuitBreakerError(
                f"the circuit breaker stopped the job: {trip.sentence(topic)}. Nothing is lost:"
                " the next start goes on behind the last batch"
            )
        if self.stopping.grace_ran_out:
            raise GraceError(
                "the batch in flight did not end within lifecycle.stop_grace; it was given up,"
                " and the next start repeats it"
            )
