"""One soak, from the first record to the verdict.

The first half has kills: SIGKILL to driver and JVM every few minutes, every third time SIGTERM
instead. The second half has none, so that one process lives long enough for a trend of its memory;
load, late and broken records go on. Then a last kill, the end of the stream, and the comparison.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from bench.soak.comparison import Verdict, compare, expected, written
from bench.soak.flatness import Trend, Watched, trend
from bench.soak.job import TOPICS, SoakJob
from bench.soak.sampling import sample, with_batch_times
from bench.soak.stream import PARTITIONS, SCHEMA, TOPIC, Planned, Stream
from examples.embedded import EmbeddedBroker, EmbeddedRegistry
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.pattern.document.loading import load_rules

WATCHED = (
    Watched("driver_memory_mib", "MiB", 8.0),
    Watched("jvm_memory_mib", "MiB", 64.0),
    Watched("jvm_old_generation_mib", "MiB", 32.0, of_minima=True),
    Watched("workers_memory_mib", "MiB", 32.0),
    Watched("driver_open_files", "files", 4.0),
    Watched("jvm_open_files", "files", 16.0),
    Watched("workers_open_files", "files", 4.0),
    Watched("checkpoint_files", "files", 50.0),
    Watched("checkpoint_mib", "MiB", 2.0),
    # Spark removes the files of past shuffles when the JVM collects what refers to them.
    Watched("scratch_files", "files", 500.0, of_minima=True),
    Watched("scratch_mib", "MiB", 20.0, of_minima=True),
    Watched("state_rows", "rows", 50.0),
    Watched("state_mib", "MiB", 4.0),
    Watched("partial_matches", "partial matches", 200.0),
    Watched("batch_seconds", "s", 0.1),
    Watched("lag_records", "records", 500.0),
)
RULES_FILE = Path(__file__).with_name("rules.yaml")
_LATE_AFTER_SECONDS = 20
_DRAIN_SECONDS = 300.0
#: Of the part without kills, what is left out: caches fill, code is compiled.
_WARM_UP = 0.2


@dataclass
class Options:
    """``kill_every``: seconds from start to kill, in the part with kills."""

    minutes: float
    rate: int
    kill_every: float
    sample_every: float = 5.0


@dataclass
class Result:
    """Everything that a soak found."""

    options: Options
    records: int
    rules: int
    kills: int
    stops: int
    exit_codes: list[int | None]
    trends: list[Trend]
    verdict: Verdict
    flat_from: float
    events: list[tuple[float, str]]
    samples: list[dict[str, float]] = field(default_factory=list)

    @property
    def flat(self) -> bool | None:
        """Whether every figure is; ``None`` when the soak was too short to say."""
        verdicts = [one.flat for one in self.trends]
        return None if None in verdicts else all(verdicts)

    def document(self) -> dict[str, Any]:
        """For JSON."""
        made = asdict(self)
        # asdict takes a Counter's items for its elements.
        made["verdict"] = {name: dict(counts) for name, counts in vars(self.verdict).items()}
        made["flat"], made["outputs_equal"] = self.flat, self.verdict.clean
        return made


class _Feed(threading.Thread):
    """Produces the stream at its pace until told to stop, then up to a whole round."""

    def __init__(self, bootstrap: str, schema_id: int, stream: Stream) -> None:
        super().__init__(name="feed")
        self.stream = stream
        self.failures: list[str] = []
        self._schema_id = schema_id
        self._stop_asked = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 50,
                "log_level": 0,
            }
        )

    def run(self) -> None:
        number = 0
        while not (self._stop_asked.is_set() and number % PARTITIONS == 0):
            wait = self.stream.due_ms(number) / 1000 - time.time()
            if wait > 0:
                self._producer.poll(0)
                time.sleep(min(wait + 0.05, 1.0))
                continue
            self._send(self.stream.record(number))
            number += 1
        self.stream = replace(self.stream, count=number)
        for planned in self.stream.end():
            self._send(planned)
        if self._producer.flush(60):
            self.failures.append("records were not acknowledged")

    def stop(self) -> Stream:
        """End the stream; what it was."""
        self._stop_asked.set()
        self.join()
        if self.failures:
            raise RuntimeError(f"the stream could not be produced: {self.failures[0]}")
        return self.stream

    def _send(self, planned: Planned) -> None:
        value = planned.value(self._schema_id)
        while True:
            try:
                self._producer.produce(
                    planned.at.topic, value, partition=planned.at.partition,
                    on_delivery=self._delivered,
                )  # fmt: skip
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self.failures.append(error.str())


class Soak:
    """A soak below ``folder``; ``say`` is told what goes on."""

    def __init__(
        self, options: Options, folder: Path, jars: Path, say: Callable[[str], None]
    ) -> None:
        self._options, self._folder, self._jars, self._say = options, folder, jars, say
        self._began = 0.0
        self._samples: list[dict[str, float]] = []
        self._events: list[tuple[float, str]] = []
        self._codes: list[int | None] = []
        self._kills = 0

    def run(self) -> Result:
        """The whole soak."""
        shutil.rmtree(self._folder, ignore_errors=True)
        (self._folder / "rules").mkdir(parents=True)
        shutil.copy(RULES_FILE, self._folder / "rules")
        with (
            EmbeddedBroker(self._folder / "broker", self._jars) as broker,
            EmbeddedRegistry(self._folder / "registry", self._jars) as registry,
        ):
            broker.create_topics({TOPIC: PARTITIONS})
            with SchemaRegistryClient({"url": registry.url}) as client:
                schema_id = client.register_schema(
                    f"{TOPIC}-value", Schema(json.dumps(SCHEMA), "AVRO")
                )
            job = SoakJob(self._folder, broker.bootstrap, registry.url)
            rate = self._options.rate
            job.start()
            self._began = time.monotonic()
            start_ms = round(time.time() * 1000)
            feed = _Feed(
                broker.bootstrap, schema_id, Stream(start_ms, rate, rate * _LATE_AFTER_SECONDS)
            )
            feed.daemon = True
            feed.start()
            try:
                flat_from = self._load(job)
                self._end(job)
                stream = feed.stop()
                self._drain(job, stream)
                self._codes.append(job.terminate())
            finally:
                job.kill()
            self._say(f"{stream.count} records; the core runs over them again")
            plan = compile_rules(
                one.rule for one in load_rules(RULES_FILE.read_text(), str(RULES_FILE))
            )
            verdict = compare(expected(stream, plan), written(broker.bootstrap, TOPICS))
        with_batch_times(self._samples)
        return Result(
            options=self._options,
            records=stream.count,
            rules=len(plan.plans),
            kills=self._kills,
            stops=len(self._codes),
            exit_codes=self._codes,
            trends=self._trends(flat_from),
            verdict=verdict,
            flat_from=flat_from,
            events=self._events,
            samples=self._samples,
        )

    def _load(self, job: SoakJob) -> float:
        """Both halves; when the part begins that must be flat, in seconds from the start."""
        half = self._options.minutes * 30
        turn = 0
        while self._passed < half:
            self._watch(job, min(self._passed + self._options.kill_every, half))
            turn += 1
            self._interrupt(job, stop=turn % 3 == 0)
        quiet = self._passed
        end = max(2 * half, quiet + half / 2)
        self._watch(job, end)
        return quiet + _WARM_UP * (end - quiet)

    def _interrupt(self, job: SoakJob, *, stop: bool) -> None:
        self._note("SIGTERM" if stop else "SIGKILL")
        if stop:
            self._codes.append(job.terminate())
        else:
            job.kill()
            self._kills += 1
        job.start()
        self._note("ready")

    def _end(self, job: SoakJob) -> None:
        """A last kill, with load on."""
        self._interrupt(job, stop=False)

    def _drain(self, job: SoakJob, stream: Stream) -> None:
        """Until everything is read and time has come to the end of the stream."""
        deadline = self._passed + _DRAIN_SECONDS
        last = (stream.end_ms - 60_000) / 1000
        while True:
            figures = self._sample(job)
            if figures.get("watermark", 0) > last and figures.get("lag_records", 1) == 0:
                return
            if self._passed > deadline:
                raise TimeoutError(f"the job did not come to the end of the stream: {figures}")
            time.sleep(1.0)

    def _watch(self, job: SoakJob, until: float) -> None:
        while self._passed < until:
            if job.pid is None:
                raise RuntimeError(f"the job ended by itself; see {self._folder / 'job.log'}")
            self._samples.append(self._sample(job))
            time.sleep(self._options.sample_every)

    def _sample(self, job: SoakJob) -> dict[str, float]:
        figures = {"seconds": self._passed, "run": float(job.starts)}
        pid = job.pid
        return figures if pid is None else figures | sample(pid, job.folders, job.port)

    @property
    def _passed(self) -> float:
        return time.monotonic() - self._began

    def _note(self, what: str) -> None:
        self._events.append((self._passed, what))
        self._say(f"{self._passed:6.0f} s  {what}")

    def _trends(self, flat_from: float) -> list[Trend]:
        # The run that began with the last kill is another process.
        quiet = [one for one in self._samples if one["seconds"] >= flat_from]
        found = []
        for watched in WATCHED:
            points = [(one["seconds"] / 3600, one[watched.name]) for one in quiet
                      if watched.name in one]  # fmt: skip
            hours, values = zip(*points, strict=True) if points else ((), ())
            found.append(trend(watched, hours, values))
        return found
