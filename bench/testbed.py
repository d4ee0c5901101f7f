"""What both sides of a comparison share: one broker, one registry, topics, cores."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from bench.command import PYTHON_PATH
from bench.feed import LARGEST_RECORD, Stream, produce
from bench.flink_program import FlinkProgram
from bench.peer import start_peer
from bench.side import Side
from examples.embedded import EmbeddedBroker, EmbeddedRegistry

PARTITIONS = 4
DISORDER_MS = 1_000
OUTPUTS = ("matches", "timeouts", "late", "dead_letters")
_DRIVER_MEMORY = "2g"
#: Each run is a query with a consumer for each partition, and megabytes that it has fetched ahead.
#: Spark would keep those of 64 partitions for minutes: a heap full of them slowed later runs.
_NO_CONSUMERS_KEPT = {
    f"spark.kafka.consumer.{cache}.{name}": value
    for cache in ("cache", "fetchedData.cache")
    for name, value in (("timeout", "5s"), ("evictorThreadRunInterval", "1s"))
}
#: Records, and markers of transactions, tell when the broker appended them.
_BROKERS_TIME = {"log.message.timestamp.type": "LogAppendTime"}
_NOT_IN_TOPICS = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Topic:
    """An input topic, and how many records it holds."""

    name: str
    records: int


@dataclass
class TestBed:
    """Broker, registry and sides below ``folder``, which is emptied; ``with`` ends them all.

    ``say`` is told what goes on.
    """

    __test__ = False

    folder: Path
    jars: Path
    cores: tuple[int, ...]
    say: Callable[[str], None]
    _stack: ExitStack = field(default_factory=ExitStack)
    _runs: int = 0

    def __enter__(self) -> Self:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        with ExitStack() as stack:
            self.broker = stack.enter_context(
                EmbeddedBroker(self.folder / "broker", self.jars, heap="1g", settings=_BROKERS_TIME)
            )
            self.registry = stack.enter_context(
                EmbeddedRegistry(self.folder / "registry", self.jars)
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # Topics.

    def topic(self, name: str, schema: Any, partitions: int = PARTITIONS) -> int:
        """Make an input topic of events of ``schema``, of Avro unless it says what it is; the id of
        the schema."""
        largest = {"max.message.bytes": str(LARGEST_RECORD)}
        self.broker.create_topics({name: partitions}, largest)
        written = schema if isinstance(schema, Schema) else Schema(json.dumps(schema), "AVRO")
        with SchemaRegistryClient({"url": self.registry.url}) as client:
            given = client.register_schema(f"{name}-value", written)
        return int(given)

    def filled(self, name: str, stream: Stream, count: int, partitions: int = PARTITIONS) -> Topic:
        """A topic with the ``count`` events of ``stream``, closed."""
        self.say(f"writing {count:,} events to {name}")
        schema_id = self.topic(name, stream.schema, partitions)
        records = produce(self.broker.bootstrap, name, schema_id, stream, partitions)
        if records != count + partitions:
            raise ValueError(f"{name} should have {count:,} events and has {records:,}")
        return Topic(name, records)

    def next_run(self, what: str) -> str:
        """A name for a run, its outputs and its transactions, that no other run has; a topic may
        have it."""
        self._runs += 1
        return f"run-{self._runs}-{_NOT_IN_TOPICS.sub('-', what)}"

    def forget(self, topics: Iterable[str]) -> None:
        """Delete topics that were read; where that fails they only take room."""
        admin = self.broker.admin()  # must outlive the futures
        for future in admin.delete_topics(list(topics), operation_timeout=30).values():
            future.exception(timeout=30)

    # Sides.

    def our_side(self, cores: tuple[int, ...] | None = None) -> Side:
        """A new process of ours, on ``cores`` instead of those of the test bed."""
        # A long path leaves no room for sockets.
        scratch = self._stack.enter_context(
            TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True)
        )
        side = Side(
            "the job",
            [sys.executable, "-m", "bench.job"],
            self.folder / "job.log",
            cores=cores or self.cores,
            environment={
                "PYTHONPATH": PYTHON_PATH,
                "TMPDIR": scratch,
                "SPARK_LOCAL_DIRS": scratch,
            },
        )
        return self._stack.enter_context(side)

    def peer(self, program: FlinkProgram) -> Side:
        """A new process of the peer."""
        return self._stack.enter_context(start_peer(program, self.folder / "peer.log", self.cores))

    # What to ask them.

    def settings(
        self,
        run: str,
        topic: str,
        rules: Path,
        *,
        batch: int | None,
        cores: int | None = None,
        changed: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Settings of a run of ours. What is not given is as the service comes, except that a run
        has a core for each state partition; without ``batch``, batches and memory come so, too.
        ``changed``: sections with what else is."""
        cores = cores or len(self.cores)
        memory = {} if batch is None else {"spark.driver.memory": _DRIVER_MEMORY}
        source = {} if batch is None else {"max_offsets_per_trigger": batch}
        sections: dict[str, dict[str, Any]] = {
            "kafka": {"bootstrap_servers": self.broker.bootstrap},
            "registry": {"url": self.registry.url},
            "inputs": {"events": {"topics": [topic], "event_time": "ts"}},
            "outputs": {
                "topics": {name: output_topic(run, name) for name in OUTPUTS},
                "create_topics": {"partitions": PARTITIONS, "replication": 1},
                "transactional_id_prefix": run,
            },
            "time": {"allowed_disorder": f"{DISORDER_MS} ms"},
            "source": source,
            "state": {
                "checkpoint": str(self.folder / "checkpoints" / run),
                "state_partitions": cores,
            },
            "trigger": {"mode": "available_now"},
            "spark": {
                "master": f"local[{cores},4]",
                "conf": {
                    **memory,
                    **_NO_CONSUMERS_KEPT,
                    "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
                },
            },
            "rules": {"folder": str(rules), "max_rules": 10_000},
        }
        return _merged(sections, changed or {})

    def request(
        self,
        run: str,
        topic: str,
        rule: str,
        *,
        within_ms: int,
        statement: str = "",
        state: str = "hashmap",
        filtered: bool = True,
        shares: Iterable[str] = ("",),
        delivery: str = "exactly_once",
        checkpoint_ms: int = 5_000,
        until_checkpoint: int = 0,
        until_asked: bool = False,
        disorder_ms: int = DISORDER_MS,
        options: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """A run of the peer's; its output topic is ``run``, which is made here. ``options``: of
        Flink's configuration, by name."""
        self.broker.create_topics({run: PARTITIONS})
        checkpoints = self.folder / "peer" / run
        checkpoints.mkdir(parents=True)
        return {
            "bootstrap": self.broker.bootstrap,
            "topic": topic,
            "output": run,
            "rule": rule,
            "statement": statement,
            "shares": list(shares),
            "state": state,
            "filter": "pre" if filtered else "all",
            "parallelism": len(self.cores),
            "within_ms": within_ms,
            "delivery": delivery,
            "prefix": run,
            "checkpoint_folder": str(checkpoints),
            "checkpoint_ms": checkpoint_ms,
            "until_checkpoint": until_checkpoint,
            "until_asked": until_asked,
            "disorder_ms": disorder_ms,
            "options": dict(options or {}),
        }


def _merged(sections: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Sections with what else is, below the same names."""
    found = dict(sections)
    for name, value in changed.items():
        before = found.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            found[name] = _merged(before, value)
        else:
            found[name] = value
    return found


def output_topic(run: str, name: str) -> str:
    """The topic of one kind of output of a run of ours."""
    return f"{run}.{name.replace('_', '-')}"


def equal_batches(records: int, most: int) -> int:
    """The size of batches that cut ``records`` into equal parts of at most ``most``.

    Spark shares a batch among the partitions and rounds; without some room, a few records would
    be left for a batch of their own.
    """
    room = 4 * PARTITIONS
    parts = max(1, -(-(records - room) // most))
    return -(-records // parts) + room


def all_cores() -> tuple[int, ...]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))
