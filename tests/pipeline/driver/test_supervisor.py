"""What ends a query, and whether it is started again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest.mock import Mock

import pytest
from pyspark.errors.exceptions.base import PySparkException

from spark_cep.cli.exit_codes import ExitCode, exit_code
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.config import Settings
from spark_cep.errors import ConfigurationError, KafkaUnavailableError, SparkCepError
from spark_cep.observability.health import Health
from spark_cep.observability.metrics import Metrics
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pipeline.driver.checkpoint.failures import JobFailedError, RefusedError
from spark_cep.pipeline.driver.input.source import DriverFiles
from spark_cep.pipeline.driver.lifecycle.retry import StopRequestedError
from spark_cep.pipeline.driver.lifecycle.run import Run
from spark_cep.pipeline.driver.observer import Observer
from spark_cep.pipeline.driver.rules.batch_rules import BatchRules, CompiledRules
from spark_cep.pipeline.driver.rules.rule_status import RuleStatus
from spark_cep.pipeline.driver.supervisor import Supervisor
from spark_cep.pipeline.driver.time_control import TimeControl
from spark_cep.pipeline.wire.new_schemas import NewSchemasError
from spark_cep.pipeline.wire.reports import Count, Report
from spark_cep.rules.overrides import Overrides
from spark_cep.rules.rule_set import assemble

RULE = """
id: ab
key: k
pattern:
  - {step: a, where: n = 1}
  - {step: b, after: next, where: n = 2}
"""
KAFKA_UNAVAILABLE = "spark_cep.errors.KafkaUnavailableError: no answer"
HANGS = "it hangs"
#: As Spark reports it, without most of the frames.
SOURCE_LOST = """[STREAM_FAILED] Query [id = 1] terminated with exception: {0} SQLSTATE: XXKST
org.apache.spark.sql.streaming.StreamingQueryException: {0}
\tat org.apache.spark.sql.execution.streaming.runtime.StreamExecution$$anon$1.run(Unknown)
Caused by: {1}
\tat java.base/java.io.DataOutputStream.flush(DataOutputStream.java:128)
\tat org.apache.spark.sql.execution.python.streaming.{2}(PythonStreamingSourceRunner.scala:234)
\tat scala.collection.immutable.List.map(List.scala:236)
"""
OF_SOURCE = "PythonStreamingSourceRunner.latestOffset"
KILLED_BEFORE = SOURCE_LOST.format("Broken pipe", "java.io.IOException: Broken pipe", OF_SOURCE)
KILLED_WITHIN = SOURCE_LOST.format("", "java.io.EOFException", OF_SOURCE)
EXECUTOR_LOST = """An exception was raised by the Python Proxy. Return Message: Traceback:
: org.apache.spark.SparkException: Job aborted due to stage failure: A shuffle map stage with \
indeterminate output was failed and retried. However, Spark cannot rollback the ResultStage 5 to \
re-process the input data, and has to fail this job.
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:3113)
"""
NEW_SCHEMAS = f"NewSchemasError: {NewSchemasError(['7', '9'])}"


class Query:
    """A query that ends as told: by itself, or with an error."""

    id = "query-1"
    status: ClassVar = {"isDataAvailable": False, "isTriggerActive": False, "message": "Stopped"}
    _jsq: ClassVar = SimpleNamespace(lastProgress=lambda: None)

    def __init__(self, error: str | None) -> None:
        self._error = error
        self.stopped = False

    def awaitTermination(self, _seconds: float) -> bool:  # noqa: N802  Spark's name
        """It ended, or hangs."""
        if self._error == HANGS:
            return False
        if self._error is not None:
            raise PySparkException(self._error)
        return True

    def stop(self) -> None:
        """Spark's own."""
        self.stopped = True


class Job:
    """A supervisor of queries that end one after the other as told, and what it asked for."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.settings = Settings.model_validate(
            {
                "kafka": {"bootstrap_servers": "localhost:9092"},
                "inputs": {"t": {"topics": ["t"]}},
                "registry": {"url": "http://localhost"},
                "state": {"checkpoint": str(folder / "checkpoint")},
                "rules": {"folder": str(folder)},
                "circuit_breaker": {"max_share": 0.5, "max_rule_share": 0.5, "min_records": 10},
            }
        )
        run = Run(self.settings, Metrics(), Health(60_000))
        self.metrics, self.health, self.breaker = run.metrics, run.health, run.breaker
        self.ends: list[str | None] = []
        self.queries: list[Query] = []
        self.learnt: list[Sequence[str]] = []
        self.outages: list[str] = []
        self.stopping = run.stopping
        self.rules = RuleStatus(self.metrics)
        self.time = TimeControl(self.settings, DriverFiles.below(folder), "run")
        wanted = CompiledRules.of(assemble(load_rules(RULE, "ab.yaml")), RecordTypes())
        log: Any = None
        self.batch_rules = BatchRules(
            log, None, wanted, None, Overrides(), lambda *_: None, lambda *_: None,
            self.rules.takes,
        )  # fmt: skip
        flow: Any = SimpleNamespace(
            settings=self.settings,
            rules=self.batch_rules,
            key_groups=2,
            schemas=SimpleNamespace(learn=self._learn),
            start=self._start,
            limit=SimpleNamespace(batch_done=lambda records, size: False),
        )
        self.away: KafkaUnavailableError | None = None
        self.outage: Any = SimpleNamespace(
            survive=self._survive,
            batch_done=self.outages.clear,
            error=None,
            too_long_for_clients=lambda: self.away,
        )
        monkeypatch.setattr(run, "outage", self.outage)
        observer = Observer(run, self.rules, lambda _: None)
        monkeypatch.setattr(observer, "_look_at_machine", lambda: None)
        spark: Any = None
        topics: Any = SimpleNamespace(check=lambda: None)
        self.supervisor = Supervisor(
            run, spark, flow, observer=observer, time=self.time, topics=topics,
            partly_written=lambda: None,
        )  # fmt: skip

    def run(self, *ends: str | None) -> None:
        """Let queries end so."""
        self.ends += ends
        self.supervisor.run()

    def batch(self, number: int, counts: Counter[Any]) -> None:
        """One batch of a query."""
        self.supervisor._before_batch(number)
        size = self.supervisor._after_batch(number, [Report(counts).encode()])
        assert size == (counts[Count.RECORDS, "t"], counts[Count.BYTES, "t"])

    def restarts(self, reason: str) -> float | None:
        """As the metric has it."""
        name = "spark_cep_query_restarts_total"
        return self.metrics.registry.get_sample_value(name, {"reason": reason})

    def _learn(self, schemas: Sequence[str]) -> list[str]:
        self.learnt.append(schemas)
        return ["9"]

    def _start(self, *_: object) -> Query:
        self.queries.append(Query(self.ends.pop(0)))
        return self.queries[-1]

    def _survive(self, error: KafkaUnavailableError) -> None:
        self.outages.append(str(error))
        self.away = None


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job that does not run yet."""
    return Job(tmp_path, monkeypatch)


def test_what_helps_is_followed_by_another_start(job: Job) -> None:
    """New schemas are learnt, and Kafka is waited for, each as often as it comes."""
    job.run(NEW_SCHEMAS, KAFKA_UNAVAILABLE, NEW_SCHEMAS, None)
    assert job.learnt == [("7", "9"), ("7", "9")]
    assert job.outages == [
        "Kafka does not answer: spark_cep.errors.KafkaUnavailableError: no answer"
    ]
    assert (job.restarts("new_schema"), job.restarts("kafka_unavailable")) == (2, 1)
    assert job.ends == []


def test_a_query_that_hangs_while_kafka_is_away_is_ended(job: Job) -> None:
    """And started again once the outage is survived."""
    job.away = KafkaUnavailableError("no answer")
    job.run(HANGS, None)
    assert [query.stopped for query in job.queries] == [True, False]
    assert job.outages == ["no answer"]
    assert job.restarts("kafka_unavailable") == 1


def test_a_lost_source_process_is_started_again(job: Job) -> None:
    """By another start of the query, a few times without a batch."""
    job.run(KILLED_BEFORE, KILLED_WITHIN, KILLED_BEFORE, None)
    assert job.restarts("source_process_lost") == 3
    with pytest.raises(JobFailedError, match="Broken pipe"):
        job.run(KILLED_BEFORE)
    job.batch(0, Counter())
    job.run(KILLED_BEFORE, None)
    assert job.restarts("source_process_lost") == 4


def test_a_batch_that_lost_output_with_an_executor_is_repeated(job: Job) -> None:
    """By another start of the query, a few times without a batch, whatever else is lost."""
    job.run(EXECUTOR_LOST, KILLED_BEFORE, EXECUTOR_LOST, None)
    assert job.restarts("executor_lost") == 2
    with pytest.raises(JobFailedError, match="indeterminate output"):
        job.run(EXECUTOR_LOST)
    with pytest.raises(JobFailedError, match="ExecutorLostFailure"):
        job.run("Job aborted due to stage failure: Task 3 failed 4 times: ExecutorLostFailure")


@pytest.mark.parametrize(
    "report",
    [
        SOURCE_LOST.format("Broken pipe", "java.io.IOException: Broken pipe", "StateServer.run"),
        SOURCE_LOST.format("no", "org.apache.spark.SparkException: the reader failed", OF_SOURCE),
    ],
)
def test_not_every_failure_of_input_is_a_lost_process(job: Job, report: str) -> None:
    """Another connection, and an error that the source itself raised."""
    with pytest.raises(JobFailedError):
        job.run(report, None)
    assert job.ends == [None]


def test_any_other_error_ends_the_job(job: Job) -> None:
    """Nothing is started again, and health says so."""
    with pytest.raises(JobFailedError, match="ZeroDivisionError"):
        job.run("ZeroDivisionError: division by zero", None)
    assert job.ends == [None]
    assert not job.health.live().ok


@pytest.mark.parametrize("kind", ["ConfigurationError", "StartError"])
def test_a_job_that_runs_does_not_end_as_a_refused_start(job: Job, kind: str) -> None:
    """What is refused to it ends it as a failed job, which may be started again."""
    with pytest.raises(RefusedError, match=r"^no right to read$") as ended:
        job.run(f"spark_cep.errors.{kind}: no right to read", None)
    assert exit_code(ended.value) is ExitCode.JOB_FAILED
    assert job.ends == [None]


def test_a_login_that_is_refused_while_the_job_runs(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same, where the outage is not survived for it; at its limit the job says so."""
    for error, expected in (
        (ConfigurationError("wrong password"), ExitCode.JOB_FAILED),
        (KafkaUnavailableError("the limit is 1 s"), ExitCode.KAFKA_UNAVAILABLE),
    ):
        monkeypatch.setattr(job.outage, "survive", Mock(side_effect=error))
        with pytest.raises(SparkCepError) as ended:
            job.run(KAFKA_UNAVAILABLE)
        assert (str(ended.value), exit_code(ended.value)) == (str(error), expected)


def test_nothing_starts_once_the_job_is_told_to_stop(job: Job) -> None:
    """Neither at first, nor after an error that could be recovered from."""
    job.stopping.request()
    with pytest.raises(StopRequestedError):
        job.run(None)
    assert job.ends == [None]


def test_a_query_that_does_not_start(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the checkpoint."""

    def refuse(*_: object) -> None:
        raise PySparkException("no such file system")

    monkeypatch.setattr(job.supervisor._flow, "start", refuse)
    with pytest.raises(SparkCepError, match=r"state\.checkpoint .*/checkpoint: no such file"):
        job.run(None)


@pytest.mark.parametrize(
    ("counts", "paused", "stopped"),
    [
        (Counter({(Count.DEAD_LETTERS, "undecodable"): 5}), [], False),
        (Counter({(Count.DEAD_LETTERS, "undecodable"): 6}), [], True),
        (Counter({(Count.DEAD_LETTERS, "missing_key"): 6}), [], True),
        # Rules with another key use them.
        (Counter({(Count.DEAD_LETTERS, "missing_key"): 6, (Count.PARTLY_USED,): 6}), [], False),
        (Counter({(Count.RULE_DEAD_LETTERS, "ab", "1", "condition_failed"): 6}), ["ab"], False),
        # Of a version that drains beside the one that runs.
        (Counter({(Count.RULE_DEAD_LETTERS, "ab", "0", "condition_failed"): 9}), [], False),
    ],
)
def test_too_many_dead_letters(
    job: Job, counts: Counter[Any], paused: list[str], stopped: bool
) -> None:
    """Those of records stop the job behind the batch, those of a rule pause it, and once; those of
    another version do not."""
    told: list[str] = []
    changed: Callable[[str], None] = job.time.rules_changed
    job.time.rules_changed = lambda rules: (told.append(rules), changed(rules))  # type: ignore[assignment,func-returns-value]
    read = Counter(
        {(Count.RECORDS, "t"): 10, (Count.BYTES, "t"): 900, (Count.RELEVANT_EVENTS,): 10}
    )
    job.batch(0, read + counts)
    wanted = job.batch_rules.wanted
    assert (list(wanted.rules.paused), job.stopping.requested.is_set()) == (paused, stopped)
    assert (job.breaker.job_trip is not None) == stopped
    if paused:
        job.batch(1, read + counts)
    assert told == [wanted.rules.fingerprint] * len(paused)
    assert len(wanted.plan.plans) == 1 - len(paused)
    assert job.rules.rules.paused == wanted.rules.paused
