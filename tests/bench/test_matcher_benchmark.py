"""The benchmark of the matcher: its streams are repeatable, its engines agree. Without Flink."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.matcher import row_pattern
from bench.matcher.engines import ENGINES, Counts, Engine
from bench.matcher.measurement import FLINK, DisagreementError, compare, run_once
from bench.matcher.report import json_lines, table
from bench.matcher.scenarios import SCENARIOS, Scenario
from bench.matcher.stream import Batch, Stream, generate
from spark_cep.compiler.rule_set import Partitioning
from spark_cep.model import Coordinates
from tests.reference.local import LocalJob, Record

EVENTS, KEYS, BATCH = 2_000, 40, 300

every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)


def stream(scenario: Scenario, seed: int = 7) -> Stream:
    """A small stream, the same one for the same seed."""
    return generate(scenario, EVENTS, KEYS, BATCH, seed)


def columns(made: Stream) -> tuple[np.ndarray, ...]:
    """Everything that is drawn."""
    return made.key, made.time, made.kind, made.amount


@every_scenario
def test_the_same_seed_gives_the_same_events(scenario: Scenario) -> None:
    """Events and watermarks repeat; another seed gives others."""
    one, other = stream(scenario), stream(scenario)
    assert all(map(np.array_equal, columns(one), columns(other)))
    assert (one.ends, one.watermarks) == (other.ends, other.watermarks)
    assert not np.array_equal(one.key, stream(scenario, seed=8).key)


@every_scenario
def test_each_event_passes_the_filter_and_none_is_late(scenario: Scenario) -> None:
    """The batches hold all events once, some step wants each, the watermark is behind each."""
    (rule,) = scenario.rule.rules
    wanted = sum(1 << bit for bit in rule.bits)
    offsets: list[int] = []
    before = -1
    for batch, watermark in stream(scenario).batches():
        assert (batch.bits & wanted).all()
        assert (batch.time > before).all()
        assert [len(batch.key), *map(len, batch.columns)].count(len(batch.time)) == 1 + len(
            scenario.rule.slots
        )
        offsets += batch.offset.tolist()
        before = watermark
    assert offsets == list(range(EVENTS))


def test_a_kind_that_no_step_wants_is_refused() -> None:
    """It would not have passed the filter."""
    strange = Scenario("r", "r", SCENARIOS[0].pattern, {"a": 0.5, "z": 0.5})
    with pytest.raises(ValueError, match="no step wants kind 'z'"):
        next(stream(strange).batches())


@every_scenario
@pytest.mark.parametrize("engine", ENGINES, ids=lambda one: one.name)
def test_engines_find_what_a_local_job_finds(engine: Engine, scenario: Scenario) -> None:
    """An engine's counts over batches are those of a local job that gets all events at once."""
    made = stream(scenario)
    kinds = tuple(scenario.weights)
    job = LocalJob(scenario.plan)
    job.advance(
        [
            Record(
                Coordinates("events", 0, offset),
                time,
                {"user": made.keys[key], "kind": kinds[kind], "amount": amount},
                "events",
            )
            for offset, (key, time, kind, amount) in enumerate(
                zip(*(column.tolist() for column in columns(made)), strict=True)
            )
        ],
        made.watermarks[-1],
    )
    expected = Counts(len(job.outputs.matches), len(job.outputs.timeouts))
    assert min(expected) > 0
    assert run_once(engine, made).counts == expected


def test_figures(tmp_path: Path) -> None:
    """A comparison becomes a table with one row a stream, and a line of JSON a side."""
    made = compare(
        SCENARIOS[0], ENGINES, None, tmp_path, events=EVENTS, keys=KEYS, batch=BATCH, runs=2
    )
    assert [len(side.runs) for side in made.sides] == [2] * len(ENGINES)
    head, _, row = table([made]).splitlines()
    assert FLINK not in head
    assert row.startswith("| three steps, relaxed |  2,000 |   40 | ")
    assert json_lines([made], {"python": "3"}).count('"python": "3"}\n') == len(ENGINES)


class Forgetful:
    """An engine that finds nothing."""

    name = "forgetful"

    def prepare(self, rule: Partitioning) -> Forgetful:
        return self

    def advance(self, batch: Batch, watermark: int) -> Counts:
        return Counts(0, 0)


def test_sides_that_disagree_are_an_error(tmp_path: Path) -> None:
    """Figures of an engine that finds something else would mean nothing."""
    engines = (*ENGINES, Forgetful())
    with pytest.raises(DisagreementError, match="forgetful found 0 and 0 in the same events"):
        compare(SCENARIOS[0], engines, None, tmp_path, events=500, keys=9, batch=99, runs=1)


@pytest.mark.parametrize("pair", row_pattern.PAIRS, ids=lambda pair: pair.steps.name)
def test_row_patterns(pair: row_pattern.Pair) -> None:
    """The row pattern and the rule of steps find as many matches."""
    rates = row_pattern.compare(pair, EVENTS, KEYS, BATCH, runs=1)
    assert rates.counts.matches > 100
    assert min(rates.row_pattern, rates.steps) > 0


def test_row_patterns_that_disagree_are_an_error() -> None:
    """As of the other benchmark."""
    first, second, _ = row_pattern.PAIRS
    with pytest.raises(DisagreementError, match="the rule of steps finds"):
        row_pattern.compare(replace(first, clause=second.clause), EVENTS, KEYS, BATCH, runs=1)
