"""From the append of the event that completes a match to when a consumer can have the match.

All times are those of the broker's log (:mod:`bench.kafka_log`), so no consumer runs meanwhile.
Each job is a process of its own, over a stream that begins with ten events a second; the rate to be
measured begins with the job's first visible output, and with it the first minute.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.events import SCHEMA, TYPES
from bench.feed import Feed
from bench.flink_program import FlinkProgram
from bench.kafka_log import Numbers, PartitionLog, read_log
from bench.live_events import LINGER_MS, LiveEvents, before, send_steadily
from bench.outputs import DisagreementError, committed_messages, decoder, line_of
from bench.rules import write_rules
from bench.side import Side
from bench.testbed import OUTPUTS, PARTITIONS, TestBed, output_topic
from spark_cep.config import Settings

RATES = (10, 1_000, 20_000, 100_000)
STATE_PARTITIONS = (2, 16)
_RULE, _WITHIN_MS = "open", 20_000
#: Few events would not have enough matches: up to this rate all are log-ins of few users.
_QUIET_RATE = 10
_QUIET_USERS = PARTITIONS
_QUIET_TYPES = {"login_fail": 1, "login_ok": 1}
#: A user has an event each so many seconds.
_SECONDS_OF_USER = 0.5
_FIRST_SECONDS = 60.0
#: Longer than anything on its way takes.
_DRAIN_SECONDS = 5.0
_START_LIMIT, _LOOK_SECONDS = 180.0, 0.2
#: About: from a process to its first output, and from the last event to the figures.
_START_SECONDS, _END_SECONDS = 20.0, 15.0
#: What the documentation recommends for latency.
_OUR_TRIGGER = {"latency": "0 ms"}
#: By itself Flink lets time move every 200 ms, and keeps an output for up to 100.
_FLINK_OPTIONS = {
    "pipeline.auto-watermark-interval": "10ms",
    "execution.buffer-timeout.interval": "5ms",
}
_CHECKPOINTS_MS = (200, 1_000, 10_000)
#: Of ours, by rate: the median and the 99th percentile, in seconds behind the watermark.
_GOALS = {10: (0.2, 0.35), 20_000: (0.25, 0.45), 100_000: (None, 1.0)}
_SAME_FACTS = ("version", "commit", "processor", "cores")


@dataclass(frozen=True)
class Load:
    """``rates`` in events a second. Measured are ``seconds`` after ``settling``, and the first
    minute. Events come out of order by less than ``disorder_ms``. ``settling_rate``: events a
    second before those that are measured, if that is another rate."""

    rates: Sequence[int]
    seconds: float
    settling: float
    disorder_ms: int
    settling_rate: int | None = None


@dataclass(frozen=True)
class Running:
    """A job that was started, and the topic of its matches. ``disorder_ms``: its watermark trails
    by so much. ``line`` makes the line of a record (:mod:`bench.outputs`)."""

    side: Side
    output: str
    topics: Sequence[str]
    checkpoint: str
    disorder_ms: int
    line: Callable[[bytes], str]


@dataclass(frozen=True)
class LiveJob:
    """A way to run a job on a topic of events; ``start`` is given the disorder of the events.
    ``shown_every_ms``: how often output becomes visible, where that is a setting; ``goals``: by
    rate."""

    name: str
    start: Callable[[TestBed, str, int], Running] = field(repr=False)
    shown_every_ms: int = 0
    goals: Mapping[int, tuple[float | None, float]] = field(default_factory=dict)


def live_jobs(partitions: Iterable[int], program: FlinkProgram | None) -> list[LiveJob]:
    """Ours with default settings, and with those for latency and so many state partitions; Flink's,
    unless ``program`` is None."""
    jobs = [our_job("ours, default settings", None)]
    jobs += [our_job(f"ours, for latency, {n} state partitions", n) for n in partitions]
    if program is not None:
        jobs.append(_flink(program, "Flink, at least once, default settings", None, {}))
        jobs.append(_flink(program, "Flink, at least once, for latency", None, _FLINK_OPTIONS))
        jobs += [
            _flink(program, f"Flink, exactly once, {ms / 1000:g} s", ms, _FLINK_OPTIONS)
            for ms in _CHECKPOINTS_MS
        ]
    return jobs


def our_job(name: str, partitions: int | None) -> LiveJob:
    """Ours, with settings for latency and so many state partitions; without ``partitions``, with
    the default ones."""

    def start(bed: TestBed, topic: str, disorder_ms: int) -> Running:
        run = bed.next_run("latency")
        topics = {kind: output_topic(run, kind) for kind in OUTPUTS}
        bed.broker.create_topics(dict.fromkeys(topics.values(), PARTITIONS))
        rules = write_rules(bed.folder / "rules" / _RULE, _RULE, _WITHIN_MS)
        settings = bed.settings(run, topic, rules, batch=None)
        checkpoint = settings["state"]["checkpoint"]
        settings |= {
            "time": {},
            "trigger": {"mode": "continuous"},
            "state": {"checkpoint": checkpoint},
        }
        if partitions is not None:
            settings["time"]["allowed_disorder"] = f"{disorder_ms} ms"
            settings["trigger"] |= _OUR_TRIGGER
            settings["state"] |= {"state_partitions": partitions}
        side = bed.our_side()
        side.send({"do": "run", "settings": settings, "until_asked": True})
        decode = decoder("match")
        return Running(
            side,
            topics["matches"],
            [*topics.values(), f"{run}.commit-markers"],
            checkpoint,
            Settings.model_validate(settings).time.allowed_disorder,
            lambda value: line_of("m", decode(value)),
        )

    return LiveJob(name, start, goals=_GOALS)


def _flink(
    program: FlinkProgram, name: str, checkpoint_ms: int | None, options: Mapping[str, str]
) -> LiveJob:
    """Exactly once with ``checkpoint_ms``, else at least once."""
    once = checkpoint_ms is not None

    def start(bed: TestBed, topic: str, disorder_ms: int) -> Running:
        run = bed.next_run("latency-flink")
        request = bed.request(
            run,
            topic,
            _RULE,
            within_ms=_WITHIN_MS,
            delivery="exactly_once" if once else "at_least_once",
            checkpoint_ms=checkpoint_ms or _CHECKPOINTS_MS[-1],
            until_asked=True,
            disorder_ms=disorder_ms,
            options=options,
        )
        side = bed.peer(program)
        side.send(request)
        return Running(side, run, [run], request["checkpoint_folder"], disorder_ms, bytes.decode)

    return LiveJob(name, start, checkpoint_ms or 0)


def minutes(jobs: Sequence[LiveJob], load: Load) -> float:
    """About how long :func:`latency` takes."""
    each = _START_SECONDS + load.settling + load.seconds + _DRAIN_SECONDS + _END_SECONDS
    # A job whose output is shown late is seen to run late, and has to be waited for at the end.
    shown = sum(2 * job.shown_every_ms / 1000 for job in jobs)
    return len(load.rates) * (len(jobs) * each + shown) / 60


def latency(bed: TestBed, jobs: Sequence[LiveJob], load: Load) -> dict[str, Any]:
    """Latencies by rate and job."""
    bed.say(
        f"{len(load.rates) * len(jobs)} runs, about {minutes(jobs, load):.0f} minutes, from now"
        f" {time.strftime('%H:%M')}"
    )
    cells = []
    for rate in load.rates:
        for job in jobs:
            bed.say(f"{rate:,} events/s: {job.name}")
            cells.append({"rate": rate, "job": job.name, **_measured(bed, job, rate, load)})
    return {
        "load": {
            "seconds": load.seconds,
            "settling": load.settling,
            "disorder_ms": load.disorder_ms,
        }
        | ({} if load.settling_rate is None else {"settling_rate": load.settling_rate}),
        "latency": cells,
    }


def joined(kept: Mapping[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """``found`` with what was ``kept`` of the same version, machine and load, and was not measured
    again."""
    same = all(kept["facts"][name] == found["facts"][name] for name in _SAME_FACTS)
    if not same or kept.get("load") != found["load"]:
        return found
    again = {(cell["rate"], cell["job"]) for cell in found["latency"]}
    cells = [cell for cell in kept["latency"] if (cell["rate"], cell["job"]) not in again]
    # Rates in order, jobs of a rate as they were measured.
    return found | {"latency": sorted(cells + found["latency"], key=lambda cell: int(cell["rate"]))}


def _measured(bed: TestBed, job: LiveJob, rate: int, load: Load) -> dict[str, Any]:
    topic = bed.next_run(f"live-{rate}")
    schema_id = bed.topic(topic, SCHEMA)
    quiet = _events(schema_id, _QUIET_RATE, load)
    settling = _events(schema_id, load.settling_rate or rate, load)
    events = settling if load.settling_rate is None else _events(schema_id, rate, load)
    feed = Feed(bed.broker.bootstrap, topic, LINGER_MS)
    data = bed.broker.folder / "data"
    running = job.start(bed, topic, load.disorder_ms)
    with running.side as side:
        send_steadily(feed, quiet, _QUIET_RATE, _NothingShown(data, running.output))
        if not _shown(data, running.output):
            # Most often answering raises, and tells how it failed.
            raise RuntimeError(f"{job.name} wrote nothing and answered {side.answer(0)}")
        began = time.time()
        ends = began + load.settling + load.seconds
        drain = _DRAIN_SECONDS + (running.disorder_ms + job.shown_every_ms) / 1000
        settled = ends - load.seconds
        if load.settling_rate is not None:
            send_steadily(feed, settling, load.settling_rate, before(settled))
        late_by = send_steadily(feed, events, rate, before(ends + drain))
        feed.flush()
        side.send({"do": "stop"})
        answer = side.answer(_START_LIMIT)
    if answer.get("late"):
        raise RuntimeError(f"{job.name}: {answer['late']} events were late")
    sent = [
        np.concatenate([each.times(n) for each in dict.fromkeys((quiet, settling, events))])
        for n in range(PARTITIONS)
    ]
    moments = _moments_of(bed, running, topic, sent)
    shutil.rmtree(running.checkpoint, ignore_errors=True)
    bed.forget([topic, *running.topics])
    warm = settled * 1000, ends * 1000
    return {
        "goal": job.goals.get(rate),
        "late_by": round(late_by, 3),
        "kept_up": bool(moments.completed.max(initial=0) >= warm[1]),
        "warm": moments.within(*warm),
        "first_minute": moments.within(began * 1000, (began + _FIRST_SECONDS) * 1000),
        "batches": batches_between(answer, settled, ends),
    }


def _events(schema_id: int, rate: int, load: Load) -> LiveEvents:
    if rate <= _QUIET_RATE:
        return LiveEvents(schema_id, _QUIET_USERS, _QUIET_TYPES, load.disorder_ms)
    return LiveEvents(schema_id, int(rate * _SECONDS_OF_USER), TYPES, load.disorder_ms)


class _NothingShown:
    """Tells, when asked, that a topic has no visible record, unless that lasts too long."""

    def __init__(self, data: Path, topic: str) -> None:
        self._data, self._topic = data, topic
        self._until = time.monotonic() + _START_LIMIT
        self._next = 0.0

    def __call__(self) -> bool:
        now = time.monotonic()
        if now < self._next:
            return True
        self._next = now + _LOOK_SECONDS
        return now < self._until and not _shown(self._data, self._topic)


def _shown(data: Path, topic: str) -> bool:
    return any(read_log(data, topic, number).visible_end for number in range(PARTITIONS))


@dataclass(frozen=True)
class Moments:
    """Times of each match, in milliseconds since 1970: when the event that completes it was
    appended, when the watermark could pass that, and when the match was appended and visible."""

    completed: Numbers
    passed: Numbers
    written: Numbers
    visible: Numbers

    def within(self, from_ms: float, until_ms: float) -> dict[str, Any]:
        """Percentiles in seconds of the matches that were completed in that time: of all that was
        waited, of what was waited behind the watermark, and of the part up to the append."""
        chosen = (self.completed >= from_ms) & (self.completed < until_ms)
        visible, passed = self.visible[chosen], self.passed[chosen]
        return {
            "event": percentiles((visible - self.completed[chosen]) / 1000),
            "watermark": percentiles((visible - passed) / 1000),
            "written": percentiles((self.written[chosen] - passed) / 1000),
        }


def moments_of(
    matches: Numbers,
    sent: Sequence[Numbers],
    inputs: Sequence[PartitionLog],
    outputs: Sequence[PartitionLog],
    disorder_ms: int,
) -> Moments:
    """The moments of ``matches``, rows of partition and offset of the event that completes one, and
    of its own record. ``sent``: times of the events of each partition, by offset.

    The watermark trails the newest event of the slowest partition by the disorder and a
    millisecond more.
    """
    completed, time_of, written, visible = np.zeros((4, len(matches)), np.int64)
    for number in range(len(inputs)):
        here = matches[:, 0] == number
        offsets = matches[here, 1]
        time_of[here] = sent[number][offsets]
        completed[here] = inputs[number].appended_ms(offsets)
    passed = completed.copy()
    for times, log in zip(sent, inputs, strict=True):
        newest = np.maximum.accumulate(times)
        passed = np.maximum(
            passed, log.appended_ms(np.searchsorted(newest, time_of + disorder_ms + 1))
        )
    for number, log in enumerate(outputs):
        here = matches[:, 2] == number
        written[here] = log.appended_ms(matches[here, 3])
        visible[here] = log.visible_ms(matches[here, 3])
    if (early := written < passed).any():
        raise DisagreementError(
            f"{early.sum():,} of {len(matches):,} matches were written before the watermark could"
            " pass their last event"
        )
    return Moments(completed, passed, written, visible)


def _moments_of(bed: TestBed, job: Running, topic: str, sent: Sequence[Numbers]) -> Moments:
    data = bed.broker.folder / "data"
    inputs = [read_log(data, topic, number) for number in range(PARTITIONS)]
    if [log.end for log in inputs] != (counts := [len(times) for times in sent]):
        raise RuntimeError(f"{topic} should have {counts} records by partition")
    rows = []
    for message in committed_messages(bed.broker.bootstrap, job.output):
        line = job.line(message.value() or b"")
        if line.startswith("m"):
            rows.append((*completed_by(line), message.partition() or 0, message.offset() or 0))
    matches = np.array(rows, np.int64).reshape(-1, 4)
    outputs = [read_log(data, job.output, number) for number in range(PARTITIONS)]
    return moments_of(matches, sent, inputs, outputs, job.disorder_ms)


def completed_by(line: str) -> tuple[int, int]:
    """Partition and offset of the last event of the match that ``line`` tells: that of ``ok``."""
    event = line.partition("|ok=")[2].partition("|")[0]
    partition, _, offset = event.partition(":")
    return int(partition), int(offset)


def percentiles(seconds: Iterable[float]) -> dict[str, Any]:
    """The median, 90th and 99th percentile and the largest of latencies."""
    found = list(map(float, seconds))
    if len(found) < 2:
        return {"count": len(found)}
    cuts = statistics.quantiles(found, n=100, method="inclusive")
    return {
        "count": len(found),
        "median": round(cuts[49], 3),
        "90th": round(cuts[89], 3),
        "99th": round(cuts[98], 3),
        "largest": round(max(found), 3),
    }


def batches_between(answer: Mapping[str, Any], begins: float, ends: float) -> dict[str, Any] | None:
    """Medians of a job's batches with records that ended between two times, in seconds since 1970,
    and of the milliseconds of Spark's stages of them; ``None`` when there are none."""
    batches = [
        one for one in answer.get("batches", ()) if begins <= one["ended"] < ends and one["rows"]
    ]
    if not batches:
        return None
    stages = sorted({stage for batch in batches for stage in batch["milliseconds"]})
    return {
        "count": len(batches),
        "events": round(statistics.median(batch["rows"] for batch in batches)),
        "milliseconds": round(statistics.median(batch["seconds"] for batch in batches) * 1000),
        "stages": {
            stage: statistics.median(batch["milliseconds"].get(stage, 0) for batch in batches)
            for stage in stages
        },
    }
