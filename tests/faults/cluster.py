"""Faults of a cluster of three brokers, two of which must have a record before it is acknowledged:
leaders go, come back and are elected again; sometimes too few are there to write.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from random import Random

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # in no list
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from examples.embedded import EmbeddedBroker, EmbeddedCluster
from tests.e2e.command import Command
from tests.faults.trial import Fault

NAME = "three brokers: "
#: Brokers' settings: of topics that are made without it, those of the job's output among them.
SETTINGS = {"min.insync.replicas": "2"}
_SECONDS = 60.0
_LONGEST_PAUSE = 15.0


def faults(cluster: EmbeddedCluster) -> dict[str, Fault]:
    """All, by name."""
    return {
        f"{NAME}leader killed": _leader_goes(cluster, EmbeddedBroker.kill),
        f"{NAME}leader stopped": _leader_goes(cluster, EmbeddedBroker.stop),
        f"{NAME}leader frozen": _leader_frozen(cluster),
        f"{NAME}below min.insync.replicas": _too_few_in_sync(cluster),
        f"{NAME}two away": _two_away(cluster),
    }


def _leader_goes(cluster: EmbeddedCluster, harm: Callable[[EmbeddedBroker], None]) -> Fault:
    """A broker that leads goes, another one leads instead; it comes back, and leads again."""

    def fault(_command: Command, random: Random) -> bool:
        topic, partition = _some_partition(cluster, random)
        broker = cluster.leads(topic, partition)
        assert broker is not None, f"nobody leads {topic}-{partition}"
        harm(broker)
        _wait(lambda: cluster.leads(topic, partition) not in (None, broker))
        time.sleep(random.uniform(0, 4))
        broker.start()
        _whole(cluster)
        return True

    return fault


def _leader_frozen(cluster: EmbeddedCluster) -> Fault:
    """The same with SIGSTOP: its connections stay, and when it goes on it takes itself for the
    leader for a moment."""

    def fault(_command: Command, random: Random) -> bool:
        topic, partition = _some_partition(cluster, random)
        broker = cluster.leads(topic, partition)
        assert broker is not None, f"nobody leads {topic}-{partition}"
        broker.pause()
        try:
            _wait(lambda: cluster.leads(topic, partition, without=broker) not in (None, broker))
            time.sleep(random.uniform(0, _LONGEST_PAUSE))
        finally:
            broker.resume()
        _whole(cluster)
        return True

    return fault


def _too_few_in_sync(cluster: EmbeddedCluster) -> Fault:
    """Topics want all three for a while, and one is away: whoever writes is refused, and who reads
    is not."""

    def fault(command: Command, random: Random) -> bool:
        topics = [name for name in cluster.topics() if not name.startswith("__")]
        broker = random.choice(cluster.brokers)
        with _wanting(cluster, topics, 3):
            broker.kill()
            _wait(lambda: 3 not in _copies_in_sync(cluster))
            time.sleep(random.uniform(1, 6))
            assert command.ended(0) in (None, 0), command.end_of_log()
            broker.start()
            _whole(cluster)
        return True

    return fault


def _two_away(cluster: EmbeddedCluster) -> Fault:
    """No majority is left, so nobody can be elected and nothing be written."""

    def fault(command: Command, random: Random) -> bool:
        gone = random.sample(cluster.brokers, 2)
        for broker in gone:
            broker.kill()
        time.sleep(random.uniform(1, 6))
        assert command.ended(0) in (None, 0), command.end_of_log()
        with ThreadPoolExecutor(len(gone)) as pool:
            list(pool.map(EmbeddedBroker.start, gone))
        _whole(cluster)
        return True

    return fault


@contextmanager
def _wanting(cluster: EmbeddedCluster, topics: list[str], copies: int) -> Iterator[None]:
    """Set ``min.insync.replicas`` of topics for the time of the block."""
    _want(cluster, topics, str(copies))
    try:
        yield
    finally:
        _want(cluster, topics, SETTINGS["min.insync.replicas"])


def _want(cluster: EmbeddedCluster, topics: list[str], copies: str) -> None:
    change = AlterConfigOpType.SET
    entry = ConfigEntry("min.insync.replicas", copies, incremental_operation=change)
    resources = [
        ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry]) for topic in topics
    ]
    admin = cluster.admin()  # must outlive the futures
    for changed in admin.incremental_alter_configs(resources).values():
        changed.result(_SECONDS)


def _some_partition(cluster: EmbeddedCluster, random: Random) -> tuple[str, int]:
    """Of any topic with three copies: input, output, commit markers, transactions."""
    found = [
        (topic, number, len(partition.replicas))
        for topic, each in sorted(cluster.topics().items())
        for number, partition in sorted(each.partitions.items())
    ]
    assert {copies for topic, _, copies in found if not topic.startswith("__")} == {3}, found
    topic, number, _ = random.choice([each for each in found if each[2] == 3])
    return topic, number


def _whole(cluster: EmbeddedCluster) -> None:
    """Wait until all have all records, and have those lead that should."""
    _wait(lambda: set(_copies_in_sync(cluster)) == {3})
    cluster.elect_preferred()


def _copies_in_sync(cluster: EmbeddedCluster) -> list[int]:
    """How many copies of each partition have all its records, of those that have three."""
    partitions = [p for topic in cluster.topics().values() for p in topic.partitions.values()]
    return [len(partition.isrs) for partition in partitions if len(partition.replicas) == 3]


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _SECONDS
    while True:
        # Brokers that have just come may not answer.
        with suppress(KafkaException):
            if condition():
                return
        assert time.monotonic() < deadline, "timed out waiting for the brokers"
        time.sleep(0.1)
