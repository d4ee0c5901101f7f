"""The running service: from settings to a query that is kept running until it is told to stop.

One object, one run: :meth:`Service.run` plans the job while Spark starts
(:mod:`~spark_cep.pipeline.driver.start_plan`), and runs it
(:mod:`~spark_cep.pipeline.driver.job`).
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from spark_cep import __version__
from spark_cep.config import Settings, waits_of
from spark_cep.observability import metric_names as names
from spark_cep.observability.health import Health
from spark_cep.observability.logs import bound, logger
from spark_cep.observability.metrics import Metrics
from spark_cep.observability.start_clock import Phase, StartClock
from spark_cep.observability.traces import trace_writer
from spark_cep.pipeline.driver.checkpoint.files import held
from spark_cep.pipeline.driver.job import run_job
from spark_cep.pipeline.driver.lifecycle.retry import StopRequestedError
from spark_cep.pipeline.driver.lifecycle.run import Run
from spark_cep.pipeline.driver.lifecycle.scratch import scratch_folder
from spark_cep.pipeline.driver.observe.batch_traces import BatchTraces
from spark_cep.pipeline.driver.observe.progress import BatchReport
from spark_cep.pipeline.driver.observer import Observer
from spark_cep.pipeline.driver.rules.rule_status import RuleStatus
from spark_cep.pipeline.driver.start_plan import plan_start
from spark_cep.pipeline.spark.starting import StartingSpark

_log = logger(__name__)


class Service:
    """One run of the service. ``on_batch`` is called after each batch; ``spark`` is a session to
    use, and to leave running, or one that starts already, instead of one that ``run`` starts. The
    log calls this run ``run_id``; without one it gets its own."""

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics | None = None,
        health: Health | None = None,
        on_batch: Callable[[BatchReport], None] = lambda _: None,
        spark: SparkSession | StartingSpark | None = None,
        start: StartClock | None = None,
        run_id: str | None = None,
    ) -> None:
        self._run = Run(settings, metrics, health, start, run_id)
        self._spark = spark
        self._rules = RuleStatus(self._run.metrics)
        # At once: a job that waits for Kafka before Spark is up is to be seen, too.
        build = (__version__, platform.python_version(), pyspark.__version__)
        self._run.metrics.replace(names.BUILD, {build: 1})
        self._observer = Observer(self._run, self._rules, on_batch)

    def stop(self) -> None:
        """Ask the service to end after the batch in flight. Safe in a signal handler."""
        self._run.stop()

    def rules(self) -> list[dict[str, object]]:
        """The rules, as :meth:`rules_page` has them."""
        return self._rules.listing()

    def rules_page(self) -> dict[str, object]:
        """The page ``/rules``: event time, which all rules share, and the rules."""
        return {"time": self._observer.event_time.page(), "rules": self.rules()}

    @property
    def last_batch(self) -> int | None:
        """The number of the batch that this run has written last."""
        return self._observer.last_batch

    @property
    def told_to_stop(self) -> bool:
        """Tell whether :meth:`stop` was called."""
        return self._run.stopping.requested.is_set()

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
        run = self._run
        with ExitStack() as stack:
            if isinstance(self._spark, StartingSpark):
                scratch = self._spark.scratch
            else:
                scratch = stack.enter_context(scratch_folder(run.settings))
            stack.enter_context(bound(run=run.id))
            try:
                # A newer run may take over from one that does not end.
                with held(str(run.settings.state.checkpoint), alone=False):
                    self._start_and_run(scratch, planned_batch_only=planned_batch_only)
            except StopRequestedError:
                pass
            run.check_end()
            _log.info("stopped")

    def _start_and_run(self, scratch: Path, *, planned_batch_only: bool) -> None:
        run = self._run
        waits = waits_of(run.settings)
        if waits is not None and not planned_batch_only:
            _log.info("latency_of_settings", text=waits)
        spark = self._spark or StartingSpark(run.settings, scratch, run.start_clock.meanwhile)
        with ExitStack() as stack:
            self._trace(stack)
            plan = plan_start(run, self._rules, scratch, stack)
            run.start_clock.done(Phase.CHECKS)
            run.stopping.check()
            if isinstance(spark, StartingSpark):
                spark = spark.session()
                stack.callback(spark.stop)
            run.start_clock.done(Phase.SPARK)
            run_job(run, plan, spark, self._observer, planned_batch_only=planned_batch_only)

    def _trace(self, stack: ExitStack) -> None:
        """Write traces, where the settings name a collector, until the end of the run."""
        settings = self._run.settings
        traces = settings.observability.traces
        if traces is not None:
            writer = trace_writer(traces, settings.spark.app_name, self._run.id)
            stack.callback(writer.close)
            self._observer.trace(BatchTraces(writer))
