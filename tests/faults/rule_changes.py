"""Kills while rules change: what the job writes is what it writes without kills, given the rules
that each batch ran under.

The command runs without end and is killed at random times; meanwhile, also while it is down, rules
of steps and in SQL come, change and go, some for a time to come and some in shadow mode, are paused
and resumed, and a file is wrong. The checkpoint's log says which rules each batch had. A
second job, which nothing disturbs, gets them batch by batch. The rules that never change are held
against the matcher without Spark, too.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import yaml
from pyspark.sql import SparkSession

from spark_cep.config import Settings
from spark_cep.pattern.tree import PreviousVersion
from spark_cep.pipeline.driver.checkpoint.local_files import LocalFiles
from spark_cep.pipeline.driver.commands.rule_history import read_audit
from spark_cep.pipeline.driver.control.source_offset import SourceOffset
from spark_cep.pipeline.driver.rules.batch_rules import BatchRules, CompiledRules
from spark_cep.pipeline.driver.rules.rule_log import RuleHistory
from spark_cep.pipeline.driver.service import Service
from spark_cep.rules.overrides import Override, PauseOrder, write_override
from spark_cep.rules.rule_set import RuleSet
from tests.e2e.command import Command
from tests.e2e.scenario import Scenario
from tests.e2e.stream import at, sequence
from tests.faults import kill_points, workload
from tests.faults.trial import Job, Score
from tests.faults.workload import Comparison, Content, Workload, content, whole

SECONDS = 300.0
_CHANGE_EVERY_SECONDS = 0.3
_NAMES = 3
_SQL = """SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts
  MEASURES first_.v AS began, COUNT(any_.*) AS n ALL ROWS PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (first_ any_* last_) WITHIN INTERVAL '20' SECOND
  DEFINE first_ AS name = '{}', last_ AS name = 'x')"""
#: By the number of a change, what is ordered instead of it: a pause, or its end.
_ORDERS = {5: PauseOrder(reason="a test"), 8: None}


class ChangingJob(Job):
    """A job with a rules folder of its own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rules = self.folder / "rules"
        self.rules.mkdir()
        for rule in workload.rules():
            self._write(rule["id"], rule)

    def change(self, number: int) -> None:
        """The change with this number: a rule comes, gets another version, is wrong, or goes; each
        one is paused for a while now and then."""
        name = f"extra-{number % _NAMES}"
        version = 1 + number // _NAMES
        if number % 11 in _ORDERS:
            order = _ORDERS[number % 11]
            kafka = Settings.model_validate(self.document()).kafka
            write_override(kafka, f"{self.name}.overrides", name, Override(by="test", pause=order))
        elif version % 4 == 0:
            (self.rules / f"{name}.yaml").unlink(missing_ok=True)
        elif version % 5 == 0:
            (self.rules / f"{name}.yaml").write_text("id: [", "utf-8")
        else:
            self._write(name, {**self._version(name, version, number), "version": version})

    def _version(self, name: str, version: int, number: int) -> dict[str, Any]:
        if version % 3 == 2:
            return {"id": name, "sql": _SQL.format("abcd"[number % 4])}
        after = "followed_by" if version % 2 else "not_followed_by"
        rule = sequence(name, "abcd"[number % 4], f"{after} x", within="20 seconds")
        match number % 8:
            case 0 | 3 | 6:
                return {**rule, "mode": "shadow", "previous_version": "drain"}
            case 1 | 4:
                ahead = at(self.records_done() / 10 + 10)
                begins = datetime.fromtimestamp(ahead / 1000, UTC).isoformat()
                return {**rule, "effective_from": begins, "previous_version": "drain"}
            case 2 | 7:
                return {**rule, "previous_version": "carry"}
        return rule

    def document(self, **sections: dict[str, Any]) -> dict[str, Any]:
        """Its settings; ``sections`` take the place of some."""
        rules = {
            "folder": str(self.rules),
            "refresh_interval": "100 ms",
            "overrides_topic": f"{self.name}.overrides",
        }
        trigger = {"mode": "continuous", "latency": "100 ms"}
        document = {**self._document(), "rules": rules, "trigger": trigger, **sections}
        document["outputs"]["topics"] |= {
            name: f"{self.name}.{name}" for name in ("rule_status", "rule_audit")
        }
        return document

    def _write(self, name: str, rule: dict[str, Any]) -> None:
        fresh = self.rules / f".{name}"
        fresh.write_text(yaml.safe_dump(rule, sort_keys=False), "utf-8")
        fresh.replace(self.rules / f"{name}.yaml")

    def history(self) -> list[tuple[int, RuleSet]]:
        """The rules of batches, by the first one."""
        sets = RuleHistory(LocalFiles(self.checkpoint)).history()
        return [(each.batch, each.rules) for each in sets]

    def last_batch(self) -> int:
        """The newest batch that is committed; -1 where none is."""
        return max(_numbers(self.checkpoint / "commits"), default=-1)

    def records_done(self) -> int:
        """How many records committed batches have read."""
        done = _numbers(self.checkpoint / "commits")
        if not done:
            return 0
        _, *sources = LocalFiles(self.checkpoint).parsed(f"offsets/{done[-1]}", after=1)
        return sum(SourceOffset.of_entry(sources).input.values())


def killed(
    scenario: Scenario,
    sent: Workload,
    kills: int,
    random: Random,
    spark: SparkSession | None,
    point: str | None = None,
) -> Score:
    """One run with this many kills at any time, and one at ``point``, and the comparisons."""
    job = ChangingJob(scenario, f"changing-{random.randrange(10**6)}")

    def kill(command: Command) -> int:
        size = job.records_done()
        wanted = random.choice([0, 1, 1, 1])
        command.wait_for(lambda: job.records_done() >= size + wanted, SECONDS)
        time.sleep(random.uniform(0, 4))
        command.kill()
        return 1

    started = partial(Command, job.folder, job.document())
    runs: list[Run] = [(started, kill)] * kills
    if point is not None:
        runs.append(_kill_at(job, point, 0, random))
    return run(scenario, job, sent, runs, "driver, rules change", spark)


def killed_at(
    scenario: Scenario,
    sent: Workload,
    point: str,
    kills: int,
    random: Random,
    spark: SparkSession | None,
) -> Score:
    """The same with kills at one of :data:`tests.faults.kill_points.POINTS`."""
    job = ChangingJob(scenario, f"changing-{random.randrange(10**6)}")
    runs = [_kill_at(job, point, number, random) for number in range(kills)]
    return run(scenario, job, sent, runs, point, spark)


def _kill_at(job: ChangingJob, point: str, number: int, random: Random) -> Run:
    times = 1 if point in kill_points.ONCE else random.randint(1, 3)
    program = kill_points.program(point, times, job.folder / f"flag-{number}")
    return partial(Command, job.folder, job.document(), program), _wait_until_dead


def _wait_until_dead(command: Command) -> int:
    code = command.ended(SECONDS)
    assert code == -signal.SIGKILL, (code, command.end_of_log())
    return 1


#: How a command is started, and what returns once it is dead, with the number of faults.
Run = tuple[Callable[[], Command], Callable[[Command], int]]


def run(
    scenario: Scenario,
    job: ChangingJob,
    sent: Workload,
    runs: Sequence[Run],
    fault: str,
    spark: SparkSession | None,
) -> Score:
    """Run the job to the end of the input while rules change, disturbed by ``runs``, and compare.
    ``spark``: of the undisturbed job; ``None`` for a session of its own."""
    began = time.monotonic()
    score = Score(fault, ends=[])
    ended = threading.Event()
    changes = threading.Thread(target=_keep_changing, args=(job, ended), daemon=True)
    command = Command(job.folder, job.document())
    try:
        # A first start refuses what is wrong.
        command.wait_for(lambda: job.records_done() > 0, SECONDS)
        changes.start()
        command.kill()
        for start, harm in runs:
            command = start()
            score.starts += 1
            score.faults += harm(command)
            # Rules change while it is down.
            time.sleep(_CHANGE_EVERY_SECONDS * (score.faults % 4))
        before = job.last_batch()
        command = Command(job.folder, job.document())
        score.starts += 1
        # A start has a batch in any case; a signal before it would meet no handler.
        command.wait_for(
            lambda: job.last_batch() > before and job.records_done() == sent.records, SECONDS
        )
    finally:
        ended.set()
        if changes.ident is not None:
            changes.join()
        command.signal(signal.SIGTERM)
        code = command.wait()
    assert code == 0, (code, command.end_of_log())
    outputs = job.outputs()
    untouched = {rule["id"] for rule in workload.rules()}
    score.comparison = Comparison.of(_of_rules(content(outputs), untouched), sent.expected)
    calm = _calm(scenario, job, spark)
    score.undisturbed = Comparison.of(whole(outputs), calm)
    logged = job.history()
    told = read_audit(Settings.model_validate(job.document()))
    fingerprints = {each.batch: each.rules.fingerprint for each in told}
    # The audit topic has every set, and the log of the checkpoint the last hundred.
    assert [fingerprints[first] for first, _ in logged] == [r.fingerprint for _, r in logged]
    score.changes = len(told)
    score.kinds = Counter(kind for each in told for kind in _kinds(each.rules))
    score.seconds = time.monotonic() - began
    return score


def _kinds(rules: RuleSet) -> set[str]:
    """What a set has beside rules that have begun and run live."""
    kinds = {"draining"} if rules.draining else set()
    kinds |= {"paused"} if rules.paused else set()
    for rule in rules.rules:
        kinds |= {"sql"} if rule.query is not None else set()
        kinds |= {"shadow"} if rule.shadow else set()
        kinds |= {"for a time"} if rule.effective_from_ms is not None else set()
        kinds |= {"carry"} if rule.previous_version is PreviousVersion.CARRY else set()
    return kinds


def _keep_changing(job: ChangingJob, ended: threading.Event) -> None:
    number = 0
    while not ended.wait(_CHANGE_EVERY_SECONDS):
        job.change(number)
        number += 1


def _calm(scenario: Scenario, job: ChangingJob, spark: SparkSession | None) -> Content:
    """What a job writes whose batches have the same rules, and which nothing disturbs."""
    calm = ChangingJob(scenario, f"{job.name}-calm")
    history = list(job.history())

    def of(batches: BatchRules, batch: int, offsets: object) -> CompiledRules:
        rules = [rules for first, rules in history if first <= batch][-1]
        return CompiledRules.of(rules, batches.wanted.types)

    trigger = {"mode": "available_now"}
    settings = Settings.model_validate(calm.document(trigger=trigger))
    if spark is not None:
        spark.conf.set("spark.sql.shuffle.partitions", str(settings.state.state_partitions))
    with mock.patch.object(BatchRules, "of", of):
        Service(settings, spark=spark).run()
    return whole(calm.outputs())


def _of_rules(found: Content, rules: set[str]) -> Content:
    kept = ("matches", "timeouts")
    return {
        kind: type(what)({k: n for k, n in what.items() if kind not in kept or k[0] in rules})
        for kind, what in found.items()
    }


def _numbers(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return sorted(int(file.name) for file in folder.iterdir() if file.name.isdigit())
