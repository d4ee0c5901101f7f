"""A Kafka cluster of several brokers (KRaft) as child processes: each is a controller, too, so a
majority goes on without the others.

Guarantees: those of each :class:`~examples.embedded.broker.EmbeddedBroker`; Kafka's own topics have
a copy on every broker, so that any one may go.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from confluent_kafka import ElectionType, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, TopicMetadata  # type: ignore[attr-defined]  # in no list

from examples.embedded.broker import EmbeddedBroker, Member, new_cluster_id
from examples.embedded.process import free_ports
from examples.embedded.topics import create_topics


class EmbeddedCluster:
    """Some brokers: ``with EmbeddedCluster(folder, jars) as cluster: … cluster.bootstrap …``.
    ``settings``: more of each broker's."""

    def __init__(
        self,
        folder: Path,
        jars_folder: Path,
        *,
        size: int = 3,
        heap: str = "256m",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        ports = dict(enumerate(free_ports(size), start=1))
        copies = str(size)
        all_settings = {
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": str(size // 2 + 1),
            # Only when a broker is long away, and never against the wish of a test.
            "auto.leader.rebalance.enable": "false",
            **(settings or {}),
        }
        cluster = new_cluster_id()
        self.brokers = [
            EmbeddedBroker(
                folder / f"broker-{number}",
                jars_folder,
                settings=all_settings,
                heap=heap,
                member=Member(number, ports, cluster),
            )
            for number in ports
        ]
        self.bootstrap = ",".join(broker.bootstrap for broker in self.brokers)

    def create_topics(
        self, topics: Mapping[str, int], config: Mapping[str, str] | None = None
    ) -> None:
        """Create topics (name to number of partitions) with a copy on every broker."""
        create_topics(self.bootstrap, topics, config, copies=len(self.brokers))

    def leads(
        self, topic: str, partition: int = 0, *, without: EmbeddedBroker | None = None
    ) -> EmbeddedBroker | None:
        """The broker that leads a partition; None while there is none. ``without``: one that is not
        asked, as it would not answer."""
        admin = self.admin(without=without)
        # A broker may not have learnt of the partitions of a new topic yet.
        known = admin.list_topics(topic, 10).topics[topic].partitions.get(partition)
        return self.brokers[known.leader - 1] if known is not None and known.leader > 0 else None

    def topics(self) -> Mapping[str, TopicMetadata]:
        """All topics, Kafka's own included, by name."""
        found: Mapping[str, TopicMetadata] = self.admin().list_topics(timeout=10).topics
        return found

    def elect_preferred(self) -> None:
        """Have each partition led by the first broker of its list, where that is in sync."""
        admin = self.admin()  # must outlive the future
        try:
            admin.elect_leaders(ElectionType.PREFERRED).result(30)
        except KafkaException as error:
            # Of all of them.
            if error.args[0].code() != KafkaError.ELECTION_NOT_NEEDED:
                raise

    def admin(self, *, without: EmbeddedBroker | None = None) -> AdminClient:
        """A new administration client; ``without``: one that does not begin with this broker."""
        addresses = ",".join(b.bootstrap for b in self.brokers if b is not without)
        return AdminClient({"bootstrap.servers": addresses, "log_level": 0})

    def __enter__(self) -> Self:
        # None of them serves before a majority is there.
        try:
            with ThreadPoolExecutor(len(self.brokers)) as pool:
                list(pool.map(EmbeddedBroker.start, self.brokers))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for broker in self.brokers:
            broker.kill()
