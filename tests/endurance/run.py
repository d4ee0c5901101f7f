"""One endurance run: load and changes, time to settle, a fresh job next to which what is left is
held, and the comparison of outputs."""

from __future__ import annotations

import json
import math
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from bench.soak.comparison import Verdict, compare
from bench.soak.job import SoakJob
from bench.soak.sampling import heap_in_use, members, sample, series, totals, with_batch_times
from bench.soak.stream import PARTITIONS, TOPIC
from examples.embedded import EmbeddedBroker, EmbeddedRegistry
from spark_cep.config import Kafka
from spark_cep.pipeline.driver.checkpoint.local_files import LocalFiles
from spark_cep.pipeline.driver.control.source_offset import SourceOffset
from spark_cep.rules.topic_records import Decision
from tests.endurance.author import Author, Change
from tests.endurance.comparison import audited, epochs, expected, written
from tests.endurance.stream import ALLOWED_DISORDER_MS, SCHEMA, Feed, Stream
from tests.endurance.watching import Watcher, first

_OVERRIDES = "endurance.overrides"
_MATCH_TOPICS = ("matches", "timeouts", "shadow")
#: Figures that a fresh job is to have, too, and their units.
HELD = {
    "driver_memory_mib": "MiB",
    "jvm_memory_mib": "MiB",
    "jvm_heap_mib": "MiB, after a collection",
    "workers_memory_mib": "MiB",
    "metric_series": "series",
    "state_kib": "KiB",
    "state_keys": "keys",
    "state_folder_mib": "MiB",
    "partial_matches": "partial matches",
    "batch_seconds": "s",
}
MOST_TIMES = 2.0
#: Before that a fresh job has not kept as many batches as it will.
LEAST_SETTLE_MINUTES = 5.0


@dataclass(frozen=True)
class Options:
    """``settle``: minutes with load after the last change; the fresh job runs for as long.
    ``warm_up``: seconds with load before the first one."""

    changes: int
    minutes: float
    rate: int
    share: float
    settle: float
    warm_up: float
    seed: int
    sample_every: float = 5.0


@dataclass(frozen=True)
class Waited:
    """How long something took for several changes, in seconds."""

    values: Sequence[float]

    def at(self, share: float) -> float:
        """The value that so many are not above; NaN of none."""
        ordered = sorted(self.values)
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


@dataclass
class Result:
    """Everything that a run found. ``unseen``: changes that no committed batch had, or that
    ``/rules`` or the status topic did not tell. ``to_commit`` and ``to_rules`` count from
    publishing, ``agreed`` from the commit until both ``/rules`` and the status topic tell of it."""

    options: Options
    changes: Counter[str]
    rule_sets: int
    records: int
    feed_late_by: float
    to_commit: Waited
    to_rules: Waited
    agreed: Waited
    unseen: list[str]
    verdict: Verdict
    #: Figures at the end, by name, of both jobs.
    changed: dict[str, float]
    fresh: dict[str, float]
    exit_codes: list[int | None]
    faults: dict[str, float]
    compared_in: float
    samples: list[dict[str, float]] = field(default_factory=list)

    @property
    def times(self) -> dict[str, float]:
        """Each figure as a multiple of that of a fresh job."""
        return {
            name: self.changed[name] / self.fresh[name] if self.fresh[name] else math.inf
            for name in HELD
            if self.changed[name] or self.fresh[name]
        }

    def document(self) -> dict[str, Any]:
        """For JSON."""
        made = {name: value for name, value in vars(self).items() if name != "verdict"}
        waited = {name: list(v.values) for name, v in made.items() if isinstance(v, Waited)}
        verdict = {name: dict(counts) for name, counts in vars(self.verdict).items()}
        own = {"options": vars(self.options), "verdict": verdict, "times": self.times}
        return {**made, **waited, **own, "failures": self.failures}

    @property
    def failures(self) -> list[str]:
        """What is not as promised."""
        found = [f"no committed batch or no notice: {each}" for each in self.unseen]
        if not self.verdict.clean:
            found.append(f"outputs differ: {json.dumps(self.verdict.examples)}")
        for name, most in (("to_commit", 5.0), ("agreed", 2.0)):
            value = getattr(self, name).at(0.99)
            if not value < most:
                found.append(f"{name}: p99 is {value:.2f} s; allowed: below {most:g} s")
        if not self.to_commit.at(0.5) < 2.5:
            found.append(f"to_commit: p50 is {self.to_commit.at(0.5):.2f} s; allowed: below 2.5 s")
        found += [
            f"{name} is {times:.2f} times that of a fresh job; allowed: {MOST_TIMES:g}"
            for name, times in self.times.items()
            if times > MOST_TIMES and self.options.settle >= LEAST_SETTLE_MINUTES
        ]
        found += [f"{name}: {value:g}; allowed: 0" for name, value in self.faults.items() if value]
        found += [f"exit code {code}; allowed: 0" for code in self.exit_codes if code != 0]
        return found


class Run:
    """A run below ``folder``, which is emptied; ``say`` is told what goes on."""

    def __init__(
        self, options: Options, folder: Path, jars: Path, say: Callable[[str], None]
    ) -> None:
        self._options, self._folder, self._jars, self._say = options, folder, jars, say
        self._samples: list[dict[str, float]] = []
        self._began = 0.0

    def run(self) -> Result:
        """All of it."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        options = self._options
        with (
            EmbeddedBroker(self._folder / "broker", self._jars, heap="1g") as broker,
            EmbeddedRegistry(self._folder / "registry", self._jars) as registry,
        ):
            broker.create_topics({TOPIC: PARTITIONS})
            with SchemaRegistryClient({"url": registry.url}) as client:
                schema = Schema(json.dumps(SCHEMA), "AVRO")
                schema_id = client.register_schema(f"{TOPIC}-value", schema)
            rules = self._folder / "rules"
            author = Author(
                rules,
                Kafka(bootstrap_servers=broker.bootstrap),
                _OVERRIDES,
                options.changes,
                options.minutes * 60 / options.changes,
                options.seed,
            )
            job = self._job("changed", rules, broker.bootstrap, registry.url)
            stream = Stream(round(time.time() * 1000), options.rate, options.share, options.seed)
            feed = Feed(broker.bootstrap, schema_id, stream)
            feed.start()
            self._began = time.monotonic()
            job.start()
            status = _topic("changed", "rule_status")
            checkpoint = job.folders["checkpoint"]
            watcher = Watcher(checkpoint, job.port, broker.bootstrap, status)
            watcher.start()
            fresh = None
            codes = []
            try:
                self._watch(job, options.warm_up)
                self._say(f"{options.changes} changes in {options.minutes:g} minutes")
                author.start()
                while author.is_alive():
                    self._watch(job, options.sample_every)
                if author.failure is not None:
                    raise author.failure
                self._say(f"{options.settle:g} minutes without changes")
                changed = self._settled(job)
                faults = _faults(job.port)
                codes.append(job.terminate())
                watcher.end()
                self._say(f"a fresh job for {options.settle:g} minutes")
                fresh = self._job("fresh", rules, broker.bootstrap, registry.url)
                fresh.start()
                next_to = self._settled(fresh)
                codes.append(fresh.terminate())
                feed.stop()
                changed |= _sizes(self._state("changed"))
                next_to |= _sizes(self._state("fresh"))
            finally:
                job.kill()
                if fresh is not None:
                    fresh.kill()
            self._say("comparing outputs")
            began = time.monotonic()
            audit = _topic("changed", "rule_audit")
            sets, decisions = audited(broker.bootstrap, audit, "changed")
            ends = _read_to(checkpoint)
            verdict = compare(
                expected(stream, epochs(sets, ends)),
                written(
                    broker.bootstrap,
                    [_topic("changed", kind) for kind in _MATCH_TOPICS],
                    _topic("changed", "shadow"),
                ),
            )
            compared_in = time.monotonic() - began
        return Result(
            options=options,
            changes=Counter(change.kind for change in author.changes),
            rule_sets=len(sets),
            records=sum(ends.values()),
            feed_late_by=feed.late_by,
            **waits(author.changes, decisions, watcher),
            verdict=verdict,
            changed=changed,
            fresh=next_to,
            exit_codes=codes,
            faults=faults,
            compared_in=compared_in,
            samples=self._samples,
        )

    def _job(self, name: str, rules: Path, bootstrap: str, registry: str) -> SoakJob:
        """A job with topics and a checkpoint of its own; a fresh one begins with the newest
        records."""
        folder = self._folder / name
        folder.mkdir()
        kinds = (*_MATCH_TOPICS, "late", "dead_letters", "rule_status", "rule_audit")
        changed: dict[str, dict[str, Any]] = {
            "outputs": {
                "topics": {kind: _topic(name, kind) for kind in kinds},
                "transactional_id_prefix": name,
            },
            # A busy machine makes no late events.
            "time": {
                "allowed_disorder": f"{ALLOWED_DISORDER_MS} ms",
                "partition_idle_after": "1 hour",
            },
            "source": {
                "starting_offsets": "latest" if name == "fresh" else "earliest",
                "max_offsets_per_trigger": 1_000_000,
            },
            "trigger": {"mode": "continuous", "latency": "0 ms"},
            "rules": {"folder": str(rules), "overrides_topic": _OVERRIDES},
            "spark": {"app_name": name},
        }
        return SoakJob(folder, bootstrap, registry, changed)

    def _watch(self, job: SoakJob, seconds: float) -> list[dict[str, float]]:
        """Samples taken for so long. RuntimeError when the job has ended."""
        until = time.monotonic() + seconds
        found = []
        while time.monotonic() < until:
            pid = job.pid
            if pid is None:
                raise RuntimeError("the job ended by itself")
            state = job.folders["checkpoint"] / "state"
            figures = sample(pid, {**job.folders, "state_folder": state}, job.port)
            figures["seconds"] = time.monotonic() - self._began
            figures["run"] = float(pid)
            figures["metric_series"] = len(series(job.port))
            found.append(figures)
            self._samples.append(figures)
            time.sleep(self._options.sample_every)
        return found

    def _state(self, name: str) -> dict[str, Any]:
        """What ``spark-cep state`` says of a job that has ended."""
        config = self._folder / name / "config.yaml"
        command = [sys.executable, "-m", "spark_cep.cli.main", "state", "--config", str(config)]
        done = subprocess.run([*command, "--json"], capture_output=True, timeout=300, check=True)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def _settled(self, job: SoakJob) -> dict[str, float]:
        """The figures at the end of the time to settle: medians of its second half."""
        samples = self._watch(job, self._options.settle * 60)
        with_batch_times(samples)
        late = samples[len(samples) // 2 :]
        found = {
            name: statistics.median([each[name] for each in late if name in each] or [0.0])
            for name in HELD
        }
        assert job.pid is not None
        found["jvm_heap_mib"] = sum(
            heap_in_use(int(entry.name)) for entry, kind in members(job.pid) if kind == "jvm"
        )
        return found


def _topic(job: str, kind: str) -> str:
    return f"{job}.{kind.replace('_', '-')}"


def _read_to(checkpoint: Path) -> dict[int, int]:
    """Up to which offsets committed batches have read, by partition: one more may be planned."""
    files = LocalFiles(checkpoint)
    last = max(int(name) for name in files.names("commits") if name.isdigit())
    _, *sources = files.parsed(f"offsets/{last}", after=1)
    return SourceOffset.of_entry(sources).by_topic[TOPIC]


def _sizes(state: dict[str, Any]) -> dict[str, float]:
    total = state["total"]
    return {
        "state_kib": total["bytes"] / 1024,
        "state_keys": total["keys"],
        "partial_matches": total["partial_matches"],
    }


def _faults(port: int) -> dict[str, float]:
    """What must not have happened."""
    total = totals(port)
    return {
        name: total[f"spark_cep_{name}_total"]
        for name in ("late_events", "dead_letters", "rule_errors", "partial_matches_dropped")
    }


def waits(
    changes: Iterable[Change], decisions: Sequence[Decision], watcher: Watcher
) -> dict[str, Any]:
    """How long changes took, as :class:`Result` has it."""
    to_commit, to_rules, agreed, unseen = [], [], [], []
    for change in changes:
        wrong = change.state == "rejected"
        version = (change.rule, None if wrong else change.version)
        listed = first(watcher.listed, version, change.state, change.published)
        told = first(watcher.told, version, change.state, change.published)
        commits = (
            watcher.commits[each.batch]
            for each in decisions
            if (each.rule_id, each.rule_version) == version
            and each.decision == change.decision
            and watcher.commits.get(each.batch, 0.0) >= change.published
        )
        commit = listed if wrong else min(commits, default=None)
        if commit is None or listed is None or told is None:
            seen = {"committed": commit, "listed": listed, "told": told}
            unseen.append(f"{change} {seen}")
            continue
        if not wrong:
            to_commit.append(commit - change.published)
        to_rules.append(listed - change.published)
        agreed.append(max(0.0, max(listed, told) - commit))
    return {
        "to_commit": Waited(to_commit),
        "to_rules": Waited(to_rules),
        "agreed": Waited(agreed),
        "unseen": unseen,
    }
