"""The running service: from settings to a query that is kept running until it is told to stop.

One object, one run: :meth:`Service.run` loads and checks everything before Spark is started, runs
the query, builds it anew when a schema id appears that the plan does not know (the batch that met
it runs again, nothing of it was written), and stops after the batch in flight when asked to.
"""

from __future__ import annotations

import math
import platform
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from service import __version__
from service.codecs.compiled_code import prepare
from service.codecs.outputs import OutputEncoder, OutputSchemaIds, OutputTopics, schema_text
from service.codecs.registry import Registry
from service.codecs.registry_settings import RegistrySettings
from service.compiler.rule_set import RuleSetPlan, compile_rules
from service.config import Settings
from service.errors import (
    ConfigurationError,
    FuseError,
    GraceError,
    OutputError,
    Problem,
    RuleSetError,
    SparkCepError,
    StateError,
    TakenOverError,
)
from service.observability import metric_names as names
from service.observability.health import Health
from service.observability.logs import bound, logger
from service.observability.metrics import Metrics
from service.pattern.document import LoadedRule
from service.pattern.tree import Rule
from service.pattern.type_check import type_check
from service.pipeline import catalogue as catalogues
from service.pipeline.at_least_once import AtLeastOnce
from service.pipeline.catalogue import Catalogue
from service.pipeline.checkpoint_files import CheckpointFiles, check_position, held
from service.pipeline.clock_source import ClockFile
from service.pipeline.columns import partitioning_sql
from service.pipeline.compiled_plan import NotCompiledError
from service.pipeline.dataflow import Dataflow
from service.pipeline.exactly_once import ExactlyOnce
from service.pipeline.failures import kafka_away, not_started
from service.pipeline.fuse import Blown, Fuse
from service.pipeline.input_position import InputPosition, Lag
from service.pipeline.kafka import Cluster
from service.pipeline.latency import publish_latency, source_delay
from service.pipeline.listening_clock import ListeningClock, awaits_data
from service.pipeline.memory import Process, by_process, driver_jvm
from service.pipeline.output import Delivery
from service.pipeline.pack import NEW_SCHEMA_IDS
from service.pipeline.progress import BatchReport, count, merge, show
from service.pipeline.query_progress import is_batch, offsets_read, publish_progress
from service.pipeline.refusals import refusal_of_source
from service.pipeline.scratch import scratch_folder
from service.pipeline.session import spark_session
from service.pipeline.state_faults import state_fault
from service.pipeline.stopping import Stopping
from service.pipeline.takeover import take_over
from service.pipeline.timekeeper import Timekeeper
from service.pipeline.waiting import Outage, StopRequestedError, Waiting
from service.pipeline.watermark import BEGINNING, END, ClockStatement
from service.rules.folder import read_rules
from service.rules.rule_set import RuleSet

_log = logger(__name__)
_LOOK_EVERY_SECONDS = 0.25
_MEMORY_EVERY_SECONDS = 10.0
#: Spark looks for records at each trigger; so much later a batch for them has called us.
_NOTICED_AFTER_MS = 1_000


class JobFailedError(SparkCepError):
    """The query ended by an error that the service cannot mend."""


class Service:
    """One run of the service. ``on_batch`` is called after each batch; ``spark`` is a session to
    use, and to leave running, instead of one of its own."""

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics | None = None,
        health: Health | None = None,
        on_batch: Callable[[BatchReport], None] = lambda _: None,
        spark: SparkSession | None = None,
    ) -> None:
        self._settings = settings
        self._metrics = metrics or Metrics(settings.observability.max_rule_labels)
        self._health = health or Health(settings.observability.stall_limit)
        self._on_batch = on_batch
        self._spark = spark
        self._stopping = Stopping(settings.lifecycle.stop_grace)
        self._waiting = Waiting(settings.lifecycle, self._stopping.requested, self._health)
        self._telling = threading.Lock()
        self._started: dict[int, float] = {}
        self._began: dict[int, float] = {}
        self._seen_batch = -1
        self._counted_batch = -1
        self._watermark = math.nan
        self._processes: dict[tuple[str, int], Process] = {}
        self._looked_at_memory = -math.inf
        self._lag = Lag(self._metrics)
        self._follow()
        self._rules: RuleSet = RuleSet()
        self._fuse = Fuse(settings.fuse, lambda: time.monotonic_ns() // 1_000_000)
        self._blown: Blown | None = None
        self._paused: dict[str, Rule] = {}
        self._planned: dict[str, dict[str, str]] = {}
        self._live: Mapping[str, int] = {}
        self._run = uuid.uuid4().hex[:12]
        self._query: str | None = None
        self._listened = ListeningClock(lambda: time.monotonic_ns() // 1_000_000)
        time_settings = settings.time
        self._timekeeper = Timekeeper(
            time_settings.watermark,
            time_settings.allowed_disorder,
            time_settings.partition_idle_after,
            time_settings.advance_when_idle,
            self._listened,
            settings.trigger.interval + _NOTICED_AFTER_MS,
        )

    @property
    def run_id(self) -> str:
        """What the log calls this run."""
        return self._run

    def stop(self) -> None:
        """Ask the service to end after the batch in flight. Safe in a signal handler."""
        self._health.stopping()
        self._stopping.request()

    def rules(self) -> list[dict[str, object]]:
        """What runs, for ``/rules``."""
        return [
            {
                "id": rule.id,
                "version": rule.version,
                "state": self._state_of(rule),
                **self._planned.get(rule.id, {"fingerprint": None, "engine": None}),
                "partial_matches": self._live.get(rule.id, 0),
            }
            for rule in self._rules.rules
        ]

    def _state_of(self, rule: Rule) -> str:
        if not rule.enabled:
            return "disabled"
        if rule.id in self._paused:
            return "paused"
        return "running" if rule.id in self._planned else "starting"

    def run(self, *, planned_batch_only: bool = False) -> None:
        """Run until :meth:`stop`, or, with ``trigger.mode: available_now``, to the end of input;
        ``planned_batch_only``: only the batch that the checkpoint has planned and not done.

        Raises ConfigurationError, RuleSetError, RegistryError, SchemaError, StartError and
        StateError before anything is read; JobFailedError when the query fails for good, StateError
        when its checkpoint does; TakenOverError when another run writes the output now;
        KafkaAwayError and RegistryAwayError when they were waited for in vain, at the start or
        later; GraceError when the batch in flight did not end in time after :meth:`stop`;
        FuseError when too many records became dead letters.
        """
        with scratch_folder(self._settings) as scratch, bound(run=self._run):
            registry = Registry(registry_settings(self._settings), sleep=self._waiting.sleep)
            try:
                # In transactions the newer run may take over from one that does not end.
                alone = self._settings.outputs.delivery == "at_least_once"
                with held(str(self._settings.state.checkpoint), alone=alone):
                    self._run_with(registry, scratch, planned_batch_only)
            except StopRequestedError:
                pass
            finally:
                registry.close()
            if self._blown is not None:
                topic = self._settings.outputs.topics.dead_letters
                raise FuseError(
                    f"the fuse stopped the job: {self._blown.told(topic)}. Nothing is lost: the"
                    " next start goes on behind the last batch"
                )
            if self._stopping.grace_ran_out:
                raise GraceError(
                    "the batch in flight did not end within lifecycle.stop_grace; it was given up,"
                    " and the next start repeats it"
                )
            _log.info("stopped")

    def _run_with(self, registry: Registry, scratch: Path, one_batch: bool) -> None:
        settings = self._settings
        self._rules = read_rules(settings.rules.folder)
        if len(self._rules.enabled) > settings.rules.max_rules:
            raise ConfigurationError(
                f"rules.folder {settings.rules.folder} holds {len(self._rules.enabled)} rules;"
                f" rules.max_rules allows {settings.rules.max_rules}"
            )
        cluster = Cluster(settings, self._waiting.at_start)
        existing = cluster.topics()
        topics = input_topics(settings, existing)
        catalogue = self._waiting.at_start(lambda: catalogues.build(settings, registry, existing))
        plan = checked_plan(self._rules, catalogue)
        for warning in self._rules.warnings:
            _log.warning("rule_warning", rule=warning.rule, step=warning.step, text=warning.message)
        encoder = self._outputs(registry, cluster)
        clock_file = ClockFile(scratch / "clock.json")
        waiting_for = (
            []
            if settings.source.starting_offsets == "latest"
            else cluster.partitions_with_records(topics)
        )
        clock_file.write(self._timekeeper.expect(waiting_for), self._run)
        for rule in self._rules.enabled:
            _log.info("rule_loaded", rule=rule.id, version=rule.version)
        self._metrics.replace(
            names.RULES_LOADED, {(r.id, str(r.version)): 1 for r in self._rules.enabled}
        )
        # Workers find it in the cache; without, the first batch would wait for each of them.
        prepare()
        self._stopping.check()
        spark = self._spark or spark_session(settings, scratch)
        position = self._position = InputPosition(settings, self._lag, self._metrics, self._run)
        try:
            checkpoint = CheckpointFiles(spark, str(settings.state.checkpoint))
            check_position(checkpoint.position(), settings, topics)
            self._metrics.replace(names.BUILD, {_build(spark): 1})
            position.start()
            delivery = self._delivery(checkpoint, cluster)
            flow = Dataflow(
                settings, plan, catalogue, encoder, scratch / "clock.json", delivery, one_batch
            )
            outage = Outage(settings.lifecycle, self._waiting, cluster.reach)
            self._planned = flow.engines()
            self._keep_running(spark, flow, clock_file, outage)
            if settings.trigger.at_end_of_input == "decide" and not one_batch:
                clock_file.write(ClockStatement((), END), self._run)
                self._keep_running(spark, flow, clock_file, outage)
        finally:
            position.stop()
            if self._spark is None:
                spark.stop()

    def _outputs(self, registry: Registry, cluster: Cluster) -> OutputEncoder:
        topics = self._settings.outputs.topics
        made = cluster.create_missing(topics.all())
        if made:
            _log.info("topics_created", topics=made)
        auto = self._settings.registry.auto_register
        ask = registry.register if auto else registry.lookup
        ids = self._waiting.at_start(
            lambda: OutputSchemaIds(
                match=ask(f"{topics.matches}-value", schema_text("match")),
                timeout=ask(f"{topics.timeouts}-value", schema_text("timeout")),
                dead_letter=ask(f"{topics.dead_letters}-value", schema_text("dead-letter")),
            )
        )
        names_of_topics = OutputTopics(
            topics.matches, topics.timeouts, topics.late, topics.dead_letters
        )
        return OutputEncoder(names_of_topics, ids, largest=cluster.largest_record(topics.all()))

    def _delivery(self, checkpoint: CheckpointFiles, cluster: Cluster) -> Delivery:
        """How output is written; from here on an earlier run can write no more."""
        settings = self._settings
        outputs = settings.outputs
        config = settings.kafka.producer_config()
        if outputs.delivery == "at_least_once":
            return AtLeastOnce(config)
        prefix = settings.marks_prefix
        delivery = ExactlyOnce(
            config,
            settings.kafka.consumer_config(f"{prefix}.marks"),
            prefix,
            self._run,
            outputs.transaction_timeout,
        )
        partitions = settings.state.state_partitions
        cluster.create_marks(delivery.marks_topic, partitions)
        self._waiting.at_start(
            lambda: take_over(
                delivery,
                partitions,
                checkpoint,
                outputs.if_marks_disagree == "go_on",
            )
        )
        return delivery

    # The query.

    def _keep_running(
        self, spark: SparkSession, flow: Dataflow, clock: ClockFile, outage: Outage
    ) -> None:
        """Run queries until one ends by itself; StopRequestedError when told to stop."""

        def before(batch: int) -> int | None:
            self._stopping.hold(spark)
            self._before_batch(batch)
            return self._timekeeper.late_until()

        while True:
            self._stopping.check()

            def after(batch: int, reports: list[bytes]) -> None:
                self._heed_fuse(self._after_batch(batch, reports), clock, flow.plan)
                outage.over()
                # Batches may come back to back: between two of them is the only chance to speak.
                self._tell_time(clock)

            decoder = flow.decoder()
            try:
                query = flow.start(spark, decoder, before, after)
            except (PySparkException, Py4JJavaError) as error:
                place = str(self._settings.state.checkpoint)
                raise state_fault(str(error), place) or not_started(place, error) from error
            self._query = str(query.id)
            with bound(query=self._query):
                _log.info(
                    "query_started",
                    checkpoint=str(self._settings.state.checkpoint),
                    decoder="spark" if isinstance(decoder, NotCompiledError) else "compiled",
                    reason=str(decoder) if isinstance(decoder, NotCompiledError) else None,
                )
                try:
                    self._watch(query, clock)
                except PySparkException as error:
                    if self._stopping.grace_ran_out:  # we ended it ourselves
                        raise StopRequestedError from error
                    self._mend(error, flow.catalogue, outage)
                    continue
            self._stopping.check()
            return

    def _mend(self, error: PySparkException, catalogue: Catalogue, outage: Outage) -> None:
        """Return when the query may be started again after ``error``; raise when it may not."""
        self._started.clear()
        ids = new_schema_ids(str(error))
        away = None if ids else kafka_away(error)
        if not ids and away is None:
            self._metrics.increment(names.BATCHES, result="failed")
            self._health.failed("the query failed")
            raise failure(error, str(self._settings.state.checkpoint)) from error
        self._health.expect_progress(expected=False)
        if away is not None:
            outage.survive(away, self._health)
            self._metrics.increment(names.QUERY_RESTARTS, reason="kafka_away")
        else:
            self._waiting.while_running(lambda: catalogue.learn(ids))
            self._metrics.increment(names.QUERY_RESTARTS, reason="new_schema")
            unknown = sorted(catalogue.unknown_ids.intersection(ids))
            _log.info("schemas_learnt", ids=ids, unknown=unknown)
        self._health.expect_progress(expected=True)

    def _watch(self, query: StreamingQuery, clock: ClockFile) -> None:
        """Wait for the query to end, telling it what idleness says about time."""
        with self._telling:
            self._listened.look(listening=False)  # since the last query ended
        while not query.awaitTermination(_LOOK_EVERY_SECONDS):  # type: ignore[arg-type]  # takes fractions
            if self._stopping.requested.is_set():
                self._stopping.end(query)
                continue
            self._look_at(query)
            with self._telling:
                self._listened.look(listening=awaits_data(query.status))
            self._tell_time(clock)
        self._look_at(query)

    def _tell_time(self, clock: ClockFile) -> None:
        with self._telling:
            statement = self._timekeeper.statement()
            if statement is not None:
                clock.write(statement, self._run)

    def _look_at(self, query: StreamingQuery) -> None:
        """Publish what Spark says of a batch that is new, and that an idle query is alive."""
        status = query.status
        if awaits_data(status):
            self._health.ready()
        if not status["isDataAvailable"]:
            self._health.progressed()
        last = query.lastProgress
        if last is not None and last["batchId"] > self._seen_batch:
            # All of them are many texts to read, and most often the last one is the only new one.
            several = last["batchId"] > self._seen_batch + 1
            for progress in query.recentProgress if several else [last]:
                if progress["batchId"] > self._seen_batch and is_batch(progress):
                    self._seen_batch = progress["batchId"]
                    self._batch_committed(progress)
        self._look_at_memory()

    def _batch_committed(self, progress: Mapping[str, Any]) -> None:
        """Spark has committed a batch, for good."""
        publish_progress(progress, self._metrics)
        read, ends = offsets_read(progress)
        self._lag.read(read, ends)
        self._position.read(read)

    def _look_at_memory(self) -> None:
        now = time.monotonic()
        if now - self._looked_at_memory < _MEMORY_EVERY_SECONDS:
            return
        self._looked_at_memory = now
        process, used, most = driver_jvm()
        self._metrics.replace(names.MEMORY, by_process(self._processes.values(), process))
        self._metrics.replace(names.JVM_HEAP, {("used",): used, ("max",): most})

    def _follow(self) -> None:
        """Gauges that go on between batches."""
        follow = self._metrics.follow
        follow(names.READY, lambda: float(self._health.readiness().ok))
        follow(names.WATERMARK_LAG, lambda: max(0.0, time.time() - self._watermark))
        follow(names.BATCH_RUNNING, self._batch_running)

    def _batch_running(self) -> float:
        began = min(list(self._started.values()), default=None)
        return 0.0 if began is None else time.monotonic() - began

    def _before_batch(self, batch: int) -> None:
        self._timekeeper.batch_started()
        # What is left of a batch that failed is this one's, run again.
        self._started = {batch: time.monotonic()}
        self._began = {batch: time.time()}
        with bound(query=self._query, run=self._run, batch=batch):
            _log.debug("batch_started")

    def _heed_fuse(self, report: BatchReport, clock: ClockFile, plan: RuleSetPlan) -> None:
        """Stop, or pause rules, as the fuse says. The batch is written; Spark commits it after."""
        found = self._fuse.batch_done(
            report.total("records"),
            report.total("relevant"),
            report.by_label("dead_letters"),
            report.rule_dead_letters,
        )
        topic = self._settings.outputs.topics.dead_letters
        pausing = {}
        for blown in found:
            if blown.rule is None:
                self._blown = blown
                self.stop()
            elif blown.rule not in self._paused:
                pausing[blown.rule] = blown
        if not pausing:
            return
        plans = [each for each in plan.plans if each.rule.id in pausing]
        for each in plans:
            rule = each.rule
            self._paused[rule.id] = rule
            with bound(query=self._query, run=self._run, batch=report.batch, rule=rule.id):
                told = pausing[rule.id].told(topic)
                _log.warning("rule_paused", version=rule.version, reason=told)
        clock.pause((each.fingerprint for each in plans), self._run)
        self._metrics.replace(
            names.RULE_PAUSED, {(r.id, str(r.version)): 1 for r in self._paused.values()}
        )

    def _after_batch(self, batch: int, reports: list[bytes]) -> BatchReport:
        seconds = time.monotonic() - self._started.pop(batch)
        began, committed = self._began.pop(batch), time.time()
        report = merge(batch, seconds, reports, self._settings.time.watermark)
        with self._telling:
            self._listened.batch_done(round(seconds * 1000))
        watermark = report.watermark if report.watermark > BEGINNING else None
        self._timekeeper.batch_done(report.maxima, report.read, watermark)
        topics = self._settings.outputs.topics
        kinds = {
            topics.matches: "match",
            topics.timeouts: "timeout",
            topics.late: "late",
            topics.dead_letters: "dead_letter",
        }
        show(report, self._metrics)
        if BEGINNING < report.watermark < END:
            self._watermark = report.watermark / 1000
        self._live = report.live
        self._lag.arrived(report.arrivals)
        self._processes = {
            (host, pid): told for told in report.processes for host, pid, *_ in [told]
        }
        self._metrics.set(
            names.PYTHON_WORKERS, sum(not is_jvm for *_, is_jvm, _ in self._processes.values())
        )
        if batch > self._counted_batch:
            # One that was committed and failed after all comes again, and is counted already.
            self._counted_batch = batch
            count(report, self._metrics, kinds)
            time_settings = self._settings.time
            publish_latency(
                report.match_times,
                self._metrics,
                began=began,
                committed=committed,
                disorder_ms=time_settings.allowed_disorder,
                delay_ms=source_delay(
                    report.arrivals, slowest=time_settings.watermark == "partition_minimum"
                ),
            )
        self._tell_of_gone_rules(report)
        self._health.ready()
        self._health.progressed()
        with bound(query=self._query, run=self._run, batch=batch):
            _log.info(
                "batch_done",
                records=report.total("records"),
                matches=report.total("matched"),
                timeouts=report.total("timed_out"),
                late=report.total("late"),
                dead_letters=report.total("dead_letters"),
                seconds=round(seconds, 3),
            )
        self._on_batch(report)
        return report

    def _tell_of_gone_rules(self, report: BatchReport) -> None:
        """Say which rules' partial matches went: those of rules that changed or were removed."""
        now = {loaded.rule.id: loaded.rule.version for loaded in self._rules.loaded}
        for (rule, version), live in report.gone.items():
            with bound(query=self._query, run=self._run, batch=report.batch, rule=rule):
                changed = now.get(rule) == version and rule not in self._paused
                reason = "changed without a new version" if changed else "replaced or removed"
                (_log.warning if changed and live else _log.info)(
                    "rule_state_dropped",
                    version=version,
                    partial_matches=live,
                    reason="paused by the fuse" if rule in self._paused else reason,
                )


def checked_plan(rules: RuleSet, catalogue: Catalogue) -> RuleSetPlan:
    """Type-check all rules against the schemas and compile them; RuleSetError with everything."""
    problems = []
    inputs = {t.input for t in catalogue.types}
    for loaded in rules.loaded:
        unknown = [name for name in loaded.rule.events if name not in inputs]
        if unknown or (not loaded.rule.events and len(inputs) > 1):
            problems.append(_which_input(loaded, unknown, sorted(inputs)))
            continue
        types = catalogue.record_types(loaded.rule.events)
        short = {name.rpartition(".")[2]: record for name, record in types.items()}
        problems += type_check(loaded, {**short, **types})
    if problems:
        raise RuleSetError(problems)
    plan = compile_rules(rules.enabled)
    for number, part in enumerate(plan.partitionings):
        partitioning_sql(number, part, catalogue)
    return plan


def registry_settings(settings: Settings) -> RegistrySettings:
    """The registry's settings as its client wants them."""
    given = settings.registry

    def path(file: Path | None) -> str | None:
        return None if file is None else str(file)

    def secret(value: object) -> str | None:
        return None if value is None else value.get_secret_value()  # type: ignore[attr-defined]

    return RegistrySettings(
        url=given.url,
        username=given.username,
        password=secret(given.password),
        token=secret(given.bearer_token),
        ca_file=path(given.ssl_ca_file),
        certificate_file=path(given.ssl_certificate_file),
        key_file=path(given.ssl_key_file),
        key_password=secret(given.ssl_key_password),
        logical_cluster=given.bearer_logical_cluster,
        timeout_seconds=given.timeout / 1000,
        max_attempts=given.max_attempts,
        first_wait_seconds=given.backoff / 1000,
        longest_wait_seconds=given.max_backoff / 1000,
    )


def input_topics(settings: Settings, existing: list[str]) -> list[str]:
    """The topics that are read; ConfigurationError when one does not exist."""
    topics: list[str] = []
    for name, source in settings.inputs.items():
        found = catalogues.topics_of(source, existing)
        missing = sorted(set(found) - set(existing))
        if missing:
            raise ConfigurationError(
                f"inputs.{name}.topics: {', '.join(missing)} do not exist on"
                f" {settings.kafka.bootstrap_servers}; there are: {', '.join(existing) or 'none'}"
            )
        if not found:
            raise ConfigurationError(
                f"inputs.{name}.topic_pattern {source.topic_pattern!r} matches none of:"
                f" {', '.join(existing) or 'no topics'}"
            )
        topics += found
    return list(dict.fromkeys(topics))


def new_schema_ids(text: str) -> list[int]:
    """The schema ids that a failed batch did not know, from its error's text."""
    found = re.search(NEW_SCHEMA_IDS + r"([0-9,]+);", text)
    return [int(number) for number in found[1].split(",")] if found else []


def _which_input(loaded: LoadedRule, unknown: list[str], inputs: list[str]) -> Problem:
    rule = loaded.rule
    message = (
        f"events: there is no input {', '.join(unknown)}"
        if unknown
        else "events: there are several inputs, so the rule must say which it reads"
    )
    return Problem(
        message=message, source=rule.source, rule=rule.id, allowed=f"one of {', '.join(inputs)}"
    )


def _build(spark: SparkSession) -> tuple[str, str, str]:
    return __version__, platform.python_version(), spark.version


def failure(error: PySparkException, checkpoint: str) -> SparkCepError:
    """What went wrong with Spark on a checkpoint, as one line out of a long report; our own errors
    keep their kind."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for kind in (StateError, TakenOverError, OutputError):
        name = f"{kind.__module__}.{kind.__name__}: "
        own = [line.partition(name)[2] for line in lines if name in line]
        if own:
            return kind(own[-1])
    if "CONCURRENT_STREAM_LOG_UPDATE" in str(error):
        return TakenOverError("another instance of the service works from the same checkpoint now")
    refused = refusal_of_source(str(error))
    if refused is not None:
        return JobFailedError(f"the query failed: {refused}")
    state = state_fault(str(error), checkpoint)
    if state is not None:
        return state
    told = re.findall(r"\b[\w.]*(?:Error|Exception): .+", "\n".join(lines))
    # The worker's own error says more than Java's wrapping of it.
    python = [text for text in told if not text.startswith(("org.", "java.", "py4j."))]
    text = (python or told or lines[:1] or ["no message"])[-1]
    return JobFailedError(f"the query failed: {text}")
