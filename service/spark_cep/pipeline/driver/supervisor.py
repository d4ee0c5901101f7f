"""Keeps a query running until its input ends or the job is told to stop.

A query that ends with an error is started again from its checkpoint where that helps: when a batch
met schemas that the plan does not know (the batch runs again, nothing of it was written), when
Kafka did not answer, and when the Python process that plans the input or an executor with output of
the batch was lost. Any other error ends the job. So does the circuit breaker, behind the batch that
trips it; rules that trip it are paused.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.errors import ConfigurationError, KafkaUnavailableError, SparkCepError, StartError
from spark_cep.observability import metric_names as names
from spark_cep.observability.logs import bound, logger
from spark_cep.pipeline.driver.checkpoint.failures import (
    RefusedError,
    executor_lost,
    failure,
    kafka_unavailable,
    not_started,
    source_process_lost,
)
from spark_cep.pipeline.driver.checkpoint.partly_written import PartlyWritten
from spark_cep.pipeline.driver.dataflow import Dataflow
from spark_cep.pipeline.driver.kafka.topic_ids import TopicIds
from spark_cep.pipeline.driver.lifecycle.retry import StopRequestedError
from spark_cep.pipeline.driver.lifecycle.run import Run
from spark_cep.pipeline.driver.observe.progress import BatchReport
from spark_cep.pipeline.driver.observer import Observer
from spark_cep.pipeline.driver.time_control import TimeControl
from spark_cep.pipeline.wire.new_schemas import schemas_in
from spark_cep.pipeline.wire.reports import Count
from spark_cep.rules.pauses import Pause

_log = logger(__name__)
_LOOK_EVERY_SECONDS = 0.25
#: Starts without a batch after a process was lost: as often as Spark starts a task again.
_MOST_PROCESSES_LOST = 3


class _KafkaUnavailableTooLongError(Exception):
    """The query was ended because of ``reason``."""

    def __init__(self, reason: SparkCepError) -> None:
        super().__init__(reason)
        self.reason = reason


class Supervisor:
    """Supervises the queries of one run. ``partly_written`` says which batch the output has in
    part."""

    def __init__(
        self,
        run: Run,
        spark: SparkSession,
        flow: Dataflow,
        *,
        observer: Observer,
        time: TimeControl,
        topics: TopicIds,
        partly_written: Callable[[], PartlyWritten | None],
    ) -> None:
        self._run = run
        self._stopping, self._outage = run.stopping, run.outage
        self._metrics, self._health = run.metrics, run.health
        self._retry = run.retries.while_running
        self._spark = spark
        self._flow = flow
        self._observer = observer
        self._time = time
        self._topics = topics
        self._partly_written = partly_written
        self._checkpoint = str(flow.settings.state.checkpoint)
        self._query: str | None = None
        self._processes_lost = 0

    def run(self) -> None:
        """Run queries until one ends by itself.

        Raises StopRequestedError when told to stop, and what :meth:`Service.run
        <spark_cep.pipeline.driver.service.Service.run>` says of a query that fails for good.
        """
        try:
            self._keep_running()
        except (ConfigurationError, StartError) as error:
            if self._query is None or isinstance(error, KafkaUnavailableError):
                raise
            raise RefusedError(str(error)) from error

    def _keep_running(self) -> None:
        while True:
            self._stopping.check()
            try:
                begun = self._retry(self._partly_written)
                query = self._flow.start(self._spark, self._before_batch, self._after_batch, begun)
            except (PySparkException, Py4JJavaError) as error:
                raise not_started(self._checkpoint, error) from error
            self._query = str(query.id)
            with bound(query=self._query):
                _log.info("query_started", checkpoint=self._checkpoint)
                try:
                    self._watch(query)
                except PySparkException as error:
                    if self._stopping.grace_ran_out:  # we ended it ourselves
                        raise StopRequestedError from error
                    self._recover(error)
                    continue
                except _KafkaUnavailableTooLongError as error:
                    self._wait_for_kafka(error.reason)
                    continue
            self._stopping.check()
            return

    def _watch(self, query: StreamingQuery) -> None:
        """Wait for the query to end; end it when Kafka is unavailable for too long."""
        self._time.query_started()
        while not query.awaitTermination(_LOOK_EVERY_SECONDS):  # type: ignore[arg-type]  # takes fractions
            if self._stopping.requested.is_set():
                self._stopping.end(query)
                continue
            away = self._outage.too_long_for_clients()
            if away is not None:
                query.stop()
                raise _KafkaUnavailableTooLongError(away)
            waits = self._time.look()
            self._observer.look_at(query, self._time.holding(), waits=waits)
        self._observer.look_at(query, self._time.holding())

    def _recover(self, error: PySparkException) -> None:
        """Return when the query may be started again after ``error``; raise when it may not."""
        new = schemas_in(str(error))
        # Whatever failed while Kafka was unavailable would have failed for that.
        away = None if new else kafka_unavailable(error) or self._outage.error
        if away is not None:
            self._wait_for_kafka(away)
            return
        self._observer.query_ended()
        if not new and self._process_lost(error):
            return
        if not new:
            self._metrics.increment(names.BATCHES, result="failed")
            self._health.failed("the query failed")
            # A topic created again, before it has as many records, looks to the source like a
            # partition that lost some.
            self._topics.check()
            raise failure(error, self._checkpoint) from error
        self._health.expect_progress(expected=False)
        unknown = self._retry(lambda: self._flow.schemas.learn(new))
        self._metrics.increment(names.QUERY_RESTARTS, reason="new_schema")
        _log.info("schemas_learnt", schemas=list(new), unknown=list(unknown))
        self._health.expect_progress(expected=True)

    def _process_lost(self, error: PySparkException) -> bool:
        """Return whether the query failed because a process was lost, and may be started again."""
        attempt = self._processes_lost + 1
        if attempt > _MOST_PROCESSES_LOST:
            return False
        if (reason := source_process_lost(error)) is not None:
            self._metrics.increment(names.QUERY_RESTARTS, reason="source_process_lost")
            _log.warning("source_process_lost", reason=reason, attempt=attempt)
        elif (reason := executor_lost(error)) is not None:
            self._metrics.increment(names.QUERY_RESTARTS, reason="executor_lost")
            _log.warning("executor_lost", reason=reason, attempt=attempt)
        else:
            return False
        self._processes_lost = attempt
        return True

    def _wait_for_kafka(self, away: SparkCepError) -> None:
        """Return when the query may be started again; raise at the limit."""
        self._observer.query_ended()
        self._health.expect_progress(expected=False)
        self._outage.survive(away)
        self._metrics.increment(names.QUERY_RESTARTS, reason="kafka_unavailable")
        self._health.expect_progress(expected=True)

    # Called by Spark, on a thread of its own.

    def _before_batch(self, batch: int) -> int | None:
        self._stopping.hold(self._spark)
        self._topics.check()
        with self._bound(batch):
            self._observer.batch_started(batch)
        return self._time.batch_started()

    def _after_batch(self, batch: int, reports: list[bytes]) -> tuple[int, int]:
        with self._bound(batch):
            report = self._observer.batch_done(batch, reports)
            self._protect(report)
        self._flow.rules.done()
        self._flow.rules.drained(report.drained, self._flow.key_groups)
        self._outage.batch_done()
        self._processes_lost = 0
        self._time.batch_done(report)
        return report.total(Count.RECORDS), report.total(Count.BYTES)

    def _bound(self, batch: int) -> AbstractContextManager[None]:
        return bound(query=self._query, run=self._run.id, batch=batch)

    def _protect(self, report: BatchReport) -> None:
        """Stop, or pause rules, where the circuit breaker trips. The batch is written; Spark
        commits it after."""
        letters = {reason: n for (reason,), n in report.by_labels(Count.DEAD_LETTERS).items()}
        partly_used = report.total(Count.PARTLY_USED)
        if partly_used:
            letters[Reason.MISSING_KEY.value] -= partly_used
        trips = self._run.breaker.batch_done(
            report.total(Count.RECORDS),
            report.total(Count.RELEVANT_EVENTS),
            letters,
            {
                (rule, int(version), reason): n
                for (rule, version, reason), n in report.by_labels(Count.RULE_DEAD_LETTERS).items()
            },
        )
        if self._run.breaker.job_trip is not None:
            self._run.stop()
        topic, rules = self._flow.settings.outputs.topics.dead_letters, self._flow.rules
        # Versions that drain go by themselves.
        versions = {(one.rule.id, one.rule.version) for one in rules.current.rules.running}
        pauses = {
            trip.rule[0]: Pause(trip.sentence(topic), "circuit breaker", trip.rule[1])
            for trip in trips
            if trip.rule in versions
        }
        if rules.pause(pauses):
            self._time.rules_changed(rules.wanted.rules.fingerprint)
