"""Times every side over the same stream, in turn, and makes sure that all find the same.

The time is the process's processor time: on a quiet machine that is the time that passed, since
each side is one thread on one core; on a busy one it leaves out most of what others take. A JVM's
includes its compiler and its collector.
"""

from __future__ import annotations

import gc
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

from bench.matcher.engines import Counts, Engine
from bench.matcher.flink_operator import FlinkOperator, write_stream
from bench.matcher.scenarios import Scenario
from bench.matcher.stream import Stream, generate

FLINK = "Flink"


class DisagreementError(Exception):
    """Two sides found different numbers of matches or timeouts in the same events."""


class Seconds(NamedTuple):
    """What one run took: processor time, and time that passed."""

    processor: float
    passed: float


@dataclass
class Measured:
    """One side's runs over one stream."""

    side: str
    counts: Counts
    runs: list[Seconds] = field(default_factory=list)
    #: What it emitted more than once.
    repeated: Counts = field(default_factory=lambda: Counts(0, 0))

    @property
    def median_seconds(self) -> float:
        """Processor time of the middle one of the runs."""
        return statistics.median(run.processor for run in self.runs)


@dataclass(frozen=True)
class Comparison:
    """All sides over one stream."""

    scenario: Scenario
    events: int
    keys: int
    sides: tuple[Measured, ...]

    @property
    def counts(self) -> Counts:
        """What all of them found."""
        return self.sides[0].counts


def stay_on_one_core() -> None:
    """Keep this process, and the JVMs that it starts, on one core where the system can do so."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def compare(
    scenario: Scenario,
    engines: Sequence[Engine],
    flink: FlinkOperator | None,
    folder: Path,
    *,
    events: int,
    keys: int,
    batch: int,
    runs: int,
) -> Comparison:
    """Run each of the engines, and Flink if it is there, ``runs`` times in turn."""
    stream = generate(scenario, events, keys, batch)
    file = folder / f"{scenario.name}-{keys}.events"
    turns: list[Callable[[], Measured]] = []
    for engine in engines:
        _warm_up(engine, stream)
        turns.append(partial(run_once, engine, stream))
    if flink is not None:
        write_stream(stream, file)
        turns.append(partial(_flink_once, flink, scenario, file))
    sides = [turn() for turn in turns]
    for _ in range(runs - 1):
        for side, turn in zip(sides, turns, strict=True):
            again = turn()
            _agree(scenario, side, again)
            side.runs += again.runs
    for side in sides[1:]:
        _agree(scenario, sides[0], side)
    if flink is not None:
        file.unlink()
    return Comparison(scenario, len(stream), keys, tuple(sides))


def run_once(engine: Engine, stream: Stream) -> Measured:
    """Time ``engine`` over the whole stream; making the batches is not part of it."""
    batches = list(stream.batches())
    runner = engine.prepare(stream.scenario.rule)
    gc.collect()
    matches = timeouts = 0
    passed, processor = perf_counter(), process_time()
    for batch, watermark in batches:
        found = runner.advance(batch, watermark)
        matches += found.matches
        timeouts += found.timeouts
    seconds = Seconds(process_time() - processor, perf_counter() - passed)
    return Measured(engine.name, Counts(matches, timeouts), [seconds])


def _warm_up(engine: Engine, stream: Stream) -> None:
    """Let an engine compile and fill its tables."""
    runner = engine.prepare(stream.scenario.rule)
    for batch, watermark in islice(stream.batches(), 2):
        runner.advance(batch, watermark)


def _flink_once(flink: FlinkOperator, scenario: Scenario, file: Path) -> Measured:
    answer = flink.run(scenario.name, file)
    return Measured(
        FLINK,
        Counts(answer.distinct_matches, answer.distinct_timeouts),
        [Seconds(answer.processor_seconds, answer.passed_seconds)],
        Counts(
            answer.matches - answer.distinct_matches, answer.timeouts - answer.distinct_timeouts
        ),
    )


def _agree(scenario: Scenario, one: Measured, other: Measured) -> None:
    if one.counts != other.counts:
        raise DisagreementError(
            f"rule {scenario.name}: {one.side} found {one.counts.matches:,} matches and"
            f" {one.counts.timeouts:,} timeouts, {other.side} found {other.counts.matches:,} and"
            f" {other.counts.timeouts:,} in the same events"
        )
