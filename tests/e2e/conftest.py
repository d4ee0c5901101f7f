"""Makes scenarios: one for a test, or one for all tests of a module that read the same run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.e2e.halfway import Halfway
from tests.e2e.scenario import Scenario
from tests.kafka_access import KafkaAccess


@pytest.fixture(scope="session")
def new_scenario(
    kafka: KafkaAccess,
    registry: str,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[], Scenario]:
    """Makes a scenario in a folder of its own."""
    return lambda: Scenario(kafka, registry, spark, tmp_path_factory.mktemp("scenario"))


@pytest.fixture
def scenario(kafka: KafkaAccess, registry: str, spark: SparkSession, tmp_path: Path) -> Scenario:
    """A scenario of one test."""
    return Scenario(kafka, registry, spark, tmp_path)


@pytest.fixture(scope="session")
def halfway(new_scenario: Callable[[], Scenario]) -> Halfway:
    """A job stopped half-way, shared by the tests that copy its checkpoint."""
    return Halfway(new_scenario())
