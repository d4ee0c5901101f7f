"""What tests share: one broker, one registry and one Spark session for the whole run.

A broker or registry that already runs is used when ``SPARK_CEP_TEST_KAFKA`` (bootstrap servers) or
``SPARK_CEP_TEST_REGISTRY`` (URL) names it; otherwise one is started from the pinned jars. Each is
started when the first test asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.kafka_access import KafkaAccess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How long an example takes depends on what else the machine does.
settings.register_profile("no deadline", parent=settings(), deadline=None)
settings.load_profile("no deadline")
# Short-lived JVMs: the second compiler would work for nothing.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

ROOT = Path(__file__).parents[1]
JARS = ROOT / ".work" / "jars"


#: What a test may need that a unit test does without.
NEEDS = ("kafka", "spark", "docker", "java", "browser", "wheel")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark as a unit test what needs nothing and is not slow. Raises UsageError for a slow test
    that needs something: no lane would run it."""
    needs = [name for name in NEEDS if item.get_closest_marker(name)]
    slow = item.get_closest_marker("slow")
    if slow and needs:
        raise pytest.UsageError(f"{item.nodeid}: is marked slow, and needs {', '.join(needs)}")
    if not slow and not needs:
        item.add_marker("unit")


@pytest.fixture(scope="session")
def embedded_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaAccess]:
    """A broker from the pinned jars."""
    from examples.embedded import EmbeddedBroker

    with EmbeddedBroker(tmp_path_factory.mktemp("kafka"), JARS) as broker:
        yield KafkaAccess(broker.bootstrap)


@pytest.fixture(scope="session")
def embedded_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a registry from the pinned archive."""
    from examples.embedded import EmbeddedRegistry

    with EmbeddedRegistry(tmp_path_factory.mktemp("registry"), JARS) as registry:
        yield registry.url


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> KafkaAccess:
    """The broker that tests use."""
    given = os.environ.get("SPARK_CEP_TEST_KAFKA")
    if given:
        return KafkaAccess(given)
    embedded: KafkaAccess = request.getfixturevalue("embedded_kafka")
    return embedded


@pytest.fixture(scope="session")
def registry(request: pytest.FixtureRequest) -> str:
    """The URL of the registry that tests use."""
    given = os.environ.get("SPARK_CEP_TEST_REGISTRY")
    return given or str(request.getfixturevalue("embedded_registry"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The Spark session that tests share, as the service itself makes it."""
    from tests.local_spark import local_spark

    session = local_spark(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()
