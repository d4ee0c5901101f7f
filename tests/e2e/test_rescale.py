"""Another number of state partitions, between two halves of a stream."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from service.config import Settings
from service.errors import ConfigurationError, StateError
from service.pipeline import rescale as rescaling
from service.pipeline.checkpoint_files import CheckpointFiles
from service.pipeline.rescale import Rescaled, rescale
from tests.e2e.outputs import Outputs
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, sequence

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

KEYS = [f"k{number}" for number in range(40)]
RULES = (
    sequence("abc", "a", "followed_by b", "followed_by_any c", within="400 seconds"),
    sequence("strict", "a", "next b", within="300 seconds"),
    sequence("all-keys", "a", "followed_by c", key=None, within="20 seconds"),
)


def events(count: int) -> list[tuple[str, str, float]]:
    """Events in the order of time, of all keys in turns."""
    chance = random.Random(7)
    return [(chance.choice(KEYS), chance.choice("abcx"), second) for second in range(count)]


def state(partitions: int) -> dict[str, Any]:
    return {"key_groups": 8, "state_partitions": partitions}


def change(scenario: Scenario, spark: SparkSession, settled: int, partitions: int) -> Rescaled:
    """Rescale, with settings that still have the old number."""
    settings = Settings.model_validate(scenario.document(state=state(settled)))
    return rescale(settings, partitions, spark)


def test_results_are_those_of_an_undisturbed_run(
    new_scenario: Callable[[], Scenario], spark: SparkSession
) -> None:
    """Three thirds of a stream with 4, 2 and 5 partitions, with partial matches and events that
    wait across both changes, against one run with 3."""
    stream = events(600)
    cuts = (slice(0, 200), slice(200, 400), slice(400, 600))
    disturbed, undisturbed = new_scenario(), new_scenario()
    time = {"allowed_disorder": "15 seconds"}
    results: list[Outputs] = []
    for scenario, numbers in ((disturbed, (4, 2, 5)), (undisturbed, (3, 3, 3))):
        for rule in RULES:
            scenario.rule(rule)
        source = Stream(scenario)
        before = numbers[0]
        for cut, partitions in zip(cuts, numbers, strict=True):
            if partitions != before:
                open_before = live(scenario)
                assert open_before["abc"]
                batch = CheckpointFiles(spark, str(scenario.folder / "checkpoint")).position().batch  # type: ignore[union-attr]
                done = change(scenario, spark, before, partitions)
                assert done == Rescaled(before, partitions, batch + 1)
            source.send(*stream[cut])
            scenario.run(state=state(partitions), time=time)
            before = partitions
        results.append(scenario.decide(state=state(before), time=time))
    changed, kept = results
    for rule in RULES:
        assert changed.of(rule["id"]) == kept.of(rule["id"])
    assert changed.of("abc")[0]
    assert changed.of("abc")[1]
    assert (changed.late, kept.late) == ([], [])


def live(scenario: Scenario) -> dict[str, float | None]:
    return {r["id"]: scenario.metric("spark_cep_partial_matches", rule=r["id"]) for r in RULES}
