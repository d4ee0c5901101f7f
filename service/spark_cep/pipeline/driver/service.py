"""The running service: from settings to a query that is kept running until it is told to stop.

One object, one run: :meth:`Service.run` plans the job before Spark is started
(:mod:`~spark_cep.pipeline.driver.rules.job_plan`), has its query kept running
(:mod:`~spark_cep.pipeline.driver.supervisor`), and its batches observed
(:mod:`~spark_cep.pipeline.driver.observer`).
"""

from __future__ import annotations

import platform
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Protocol

import pyspark
from pyspark.sql import SparkSession

from spark_cep import __version__
from spark_cep.codecs.formats import record_format
from spark_cep.codecs.registry.registry import Registry
from spark_cep.config import Settings
from spark_cep.errors import (
    CircuitBreakerError,
    GraceError,
    RegistryUnavailableError,
    StartError,
    StateError,
    TakenOverError,
)
from spark_cep.observability import metric_names as names
from spark_cep.observability.health import Health
from spark_cep.observability.logs import bound, logger
from spark_cep.observability.metrics import Metrics
from spark_cep.observability.start_clock import Phase, StartClock
from spark_cep.pipeline.compiled_code import prepare
from spark_cep.pipeline.driver.checkpoint.failures import RefusedError
from spark_cep.pipeline.driver.checkpoint.files import (
    CheckpointFiles,
    Position,
    check_position,
    held,
)
from spark_cep.pipeline.driver.checkpoint.partly_written import partly_written
from spark_cep.pipeline.driver.control.source_offset import Ends
from spark_cep.pipeline.driver.dataflow import Dataflow
from spark_cep.pipeline.driver.input.batch_limit import BatchLimit, mean_size
from spark_cep.pipeline.driver.input.offsets import InputOffsets
from spark_cep.pipeline.driver.kafka.cluster import Cluster
from spark_cep.pipeline.driver.kafka.topic_ids import TopicIds
from spark_cep.pipeline.driver.kafka.watch import KafkaWatch
from spark_cep.pipeline.driver.lifecycle.circuit_breaker import CircuitBreaker
from spark_cep.pipeline.driver.lifecycle.outage import Outage
from spark_cep.pipeline.driver.lifecycle.retry import RetryPolicies, StopRequestedError
from spark_cep.pipeline.driver.lifecycle.scratch import scratch_folder
from spark_cep.pipeline.driver.lifecycle.stopping import Stopping
from spark_cep.pipeline.driver.observe.progress import BatchReport, begin_topics
from spark_cep.pipeline.driver.observer import Observer
from spark_cep.pipeline.driver.output_setup import output_encoder, start_delivery
from spark_cep.pipeline.driver.rules.batch_rules import BatchRules
from spark_cep.pipeline.driver.rules.job_plan import input_topics
from spark_cep.pipeline.driver.rules.rule_status import RuleStatus
from spark_cep.pipeline.driver.rules.rule_topics import RuleTopics
from spark_cep.pipeline.driver.rules.rule_watch import RuleWatch
from spark_cep.pipeline.driver.rules.rules_at_start import RulesAtStart
from spark_cep.pipeline.driver.supervisor import Supervisor
from spark_cep.pipeline.driver.time_control import TimeControl
from spark_cep.pipeline.librdkafka.consumer import check as check_properties
from spark_cep.pipeline.spark.starting import StartingSpark
from spark_cep.rules.overrides import OverrideTopic
from spark_cep.rules.sources.configured import source_of
from spark_cep.rules.sources.source import RuleSource

_log = logger(__name__)


class Service:
    """One run of the service. ``on_batch`` is called after each batch; ``spark`` is a session to
    use, and to leave running, or one that starts already, instead of one that ``run`` starts. The
    log calls this run ``run_id``."""

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics | None = None,
        health: Health | None = None,
        on_batch: Callable[[BatchReport], None] = lambda _: None,
        spark: SparkSession | StartingSpark | None = None,
        start: StartClock | None = None,
    ) -> None:
        self._start = start or StartClock()
        self.run_id = uuid.uuid4().hex[:12]
        self._settings = settings
        self._metrics = metrics or Metrics(settings.observability.max_rule_labels)
        self._health = health or Health(settings.observability.stall_limit)
        self._spark = spark
        self._stopping = Stopping(settings.lifecycle.stop_grace)
        self._retries = RetryPolicies(settings.lifecycle, self._stopping.requested, self._health)
        self._breaker = CircuitBreaker(
            settings.circuit_breaker, lambda: time.monotonic_ns() // 1_000_000
        )
        self._rules = RuleStatus(self._metrics)
        # At once: a job that waits for Kafka before Spark is up is to be seen, too.
        build = (__version__, platform.python_version(), pyspark.__version__)
        self._metrics.replace(names.BUILD, {build: 1})
        self._observer = Observer(
            settings, self._metrics, self._health, self._rules, on_batch, self.run_id, self._start
        )

    def stop(self) -> None:
        """Ask the service to end after the batch in flight. Safe in a signal handler."""
        self._health.stopping()
        self._stopping.request()

    @property
    def last_batch(self) -> int | None:
        """The number of the batch that this run has written last."""
        return self._observer.last_batch

    @property
    def told_to_stop(self) -> bool:
        """Tell whether :meth:`stop` was called."""
        return self._stopping.requested.is_set()

    def rules(self) -> list[dict[str, object]]:
        """The rows of the page ``/rules``."""
        return self._rules.listing()

    def run(self, *, planned_batch_only: bool = False) -> None:
        """Run until :meth:`stop`, or, with ``trigger.mode: available_now``, to the end of input;
        ``planned_batch_only``: only the batch that the checkpoint has planned and not done.

        Raises ConfigurationError, RuleSetError, RegistryError, SchemaError, StartError and
        StateError before anything is read; JobFailedError when the query fails for good, StateError
        when its checkpoint does; TakenOverError when another run writes the output now;
        KafkaUnavailableError and RegistryUnavailableError when they did not answer within the
        limit, at the start or later; GraceError when the batch in flight did not end in time after
        :meth:`stop`; CircuitBreakerError when too many records became dead letters.
        """
        with ExitStack() as stack:
            if isinstance(self._spark, StartingSpark):
                scratch = self._spark.scratch
            else:
                scratch = stack.enter_context(scratch_folder(self._settings))
            stack.enter_context(bound(run=self.run_id))
            source = stack.enter_context(closing(source_of(self._settings)))
            name = self._settings.rules.overrides_topic
            overrides = stack.enter_context(closing(OverrideTopic(self._settings.kafka, name)))
            registry = stack.enter_context(
                Registry.opened(self._settings.registry, self._retries.sleep)
            )
            try:
                # A newer run may take over from one that does not end.
                with held(str(self._settings.state.checkpoint), alone=False):
                    self._run(registry, source, overrides, scratch, planned_batch_only)
            except StopRequestedError:
                pass
            trip = self._breaker.job_trip
            if trip is not None:
                topic = self._settings.outputs.topics.dead_letters
                raise CircuitBreakerError(
                    f"the circuit breaker stopped the job: {trip.sentence(topic)}. Nothing is lost:"
                    " the next start goes on behind the last batch"
                )
            if self._stopping.grace_ran_out:
                raise GraceError(
                    "the batch in flight did not end within lifecycle.stop_grace; it was given up,"
                    " and the next start repeats it"
                )
            _log.info("stopped")

    def _run(
        self,
        registry: Registry | None,
        source: RuleSource,
        overrides: OverrideTopic,
        scratch: Path,
        one_batch: bool,
    ) -> None:
        settings, retry = self._settings, self._retries.at_start
        starting = self._spark or StartingSpark(settings, scratch, self._start.meanwhile)
        at_start = RulesAtStart(settings, source, self._rules, retry)
        check_properties(settings.reader_config())
        cluster = Cluster(settings, retry)
        existing = cluster.topics()
        topics = input_topics(settings, existing)
        begin_topics(self._metrics, topics)
        schemas = retry(lambda: record_format(settings, registry, existing))
        at_start.check(schemas)
        encoder = output_encoder(settings, registry, cluster, retry)
        control_file = scratch / "control.json"
        ids = cluster.topic_ids(topics)
        event_time = TimeControl(settings, control_file, self.run_id, ids)
        latest = settings.source.starting_offsets == "latest"
        filled = [] if latest else cluster.partitions_with_records(topics)
        event_time.expect(filled)
        sampling = ThreadPoolExecutor(1, "sample").submit(mean_size, settings, filled)
        # Workers find it in the cache; without, the first batch would wait for each of them.
        prepare()
        self._start.done(Phase.CHECKS)
        self._stopping.check()
        spark = starting if isinstance(starting, SparkSession) else starting.session()
        self._start.done(Phase.SPARK)
        outage = Outage(settings.lifecycle, self._health, self._retries.sleep)
        watch = KafkaWatch(settings, topics, self._observer.lag, outage, self.run_id)
        with ExitStack() as stack:
            if not isinstance(self._spark, SparkSession):
                stack.callback(spark.stop)
            checkpoint = CheckpointFiles(spark, str(settings.state.checkpoint))
            position = checkpoint.position()
            check_position(position, settings, topics, ids)
            start = _input_start(settings, position, event_time)
            _beside(stack, self._observer.position, watch)
            delivery = start_delivery(settings, self.run_id, checkpoint, cluster, retry)
            begun = partial(partly_written, delivery, settings.state.state_partitions, checkpoint)
            rule_topics = RuleTopics(settings, self._rules.listing, self.run_id)
            rules = at_start.decide(checkpoint, retry(begun), overrides, rule_topics.decided)
            _beside(stack, rule_topics)
            self._start.done(Phase.TAKEOVER)
            limit = BatchLimit(settings, sampling.result())
            flow = Dataflow(
                settings, rules, schemas, encoder, control_file, delivery, limit, start, one_batch
            )
            if settings.trigger.mode == "continuous" and not one_batch:
                rule_watch = RuleWatch(
                    settings, source, overrides, (at_start.files, at_start.overrides), rules,
                    lambda: flow.packing, self._rules, event_time.rules_changed, self.run_id,
                )  # fmt: skip
                _beside(stack, rule_watch)
            supervisor = Supervisor(
                spark,
                flow,
                run=self.run_id,
                stop=self.stop,
                stopping=self._stopping,
                partly_written=begun,
                retry=self._retries.while_running,
                outage=outage,
                breaker=self._breaker,
                topics=TopicIds(settings, ids),
                observer=self._observer,
                time=event_time,
                metrics=self._metrics,
                health=self._health,
            )
            with _attempts_counted(rules):
                supervisor.run()
                if not one_batch:
                    self._finish(supervisor, event_time, rules)

    def _finish(self, supervisor: Supervisor, event_time: TimeControl, rules: BatchRules) -> None:
        """Finish the work that is left at the end of input."""
        if self._settings.trigger.ends:
            event_time.end_of_input()
            supervisor.run()
        done: int | None = None
        while rules.pauses_wait and done != self.last_batch:
            # A pause is written down with the batch that begins with it.
            done = self.last_batch
            supervisor.run()


def _input_start(
    settings: Settings, position: Position | None, event_time: TimeControl
) -> Ends | None:
    """The offsets at which the first batch begins, if it is not done: a new job decides them, and
    has them logged."""
    if position is not None:
        return position.start
    start = InputOffsets(settings).initial()
    event_time.start_at(start)
    return start


class _Beside(Protocol):
    def start(self) -> None: ...
    def stop(self) -> object: ...


def _beside(stack: ExitStack, *threads: _Beside) -> None:
    """Start what works beside the batches, until the stack ends."""
    for each in threads:
        each.start()
        stack.callback(each.stop)


@contextmanager
def _attempts_counted(rules: BatchRules) -> Iterator[None]:
    """An end that says nothing against the rules of the batch in flight is no failure of theirs: a
    stop, and what Kafka, registry or storage did not do."""
    try:
        yield
    except (
        StopRequestedError,
        StartError,
        RefusedError,
        StateError,
        TakenOverError,
        RegistryUnavailableError,
    ):
        with suppress(StateError):
            rules.not_at_fault()
        raise
