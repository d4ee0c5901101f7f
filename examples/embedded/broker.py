"""A one-node Kafka broker (KRaft) as a child process.

Guarantees: records outlive :meth:`EmbeddedBroker.kill` and a restart, which keeps ports and data;
records of any time are kept (no retention by age, no bound on a timestamp in the future);
transactions work; topics exist only when they were created.
"""

from __future__ import annotations

import os
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from examples.embedded.process import HOST, ChildProcess, free_ports, listening
from examples.embedded.server import EmbeddedServer
from examples.embedded.topics import create_topics
from spark_cep.errors import StartError
from supply_chain.jars import resolve
from supply_chain.java import find_java

_FOREVER = 2**63 - 1
_SASL = "secure"
_JVM = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Dlog4j2.disableJmx=true",
)
_LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %-5p %c{1} %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""


@dataclass(frozen=True)
class Listener:
    """One more address of a broker: what is spoken there, and the broker's settings for it alone
    (``ssl.keystore.location``, ``ssl.client.auth``, …)."""

    protocol: str
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Member:
    """The place of a broker among the ``voters`` of a cluster: ports of controllers by the
    broker's number."""

    number: int
    voters: Mapping[int, int]
    cluster: str


class EmbeddedBroker(EmbeddedServer):
    """One broker: ``with EmbeddedBroker(folder, jars) as broker: … broker.bootstrap …``.

    ``sasl=(user, password)`` adds a second listener, at :attr:`sasl_bootstrap`, that demands
    SASL_PLAINTEXT with SCRAM-SHA-256; :meth:`sasl_client` holds a client's settings for it.
    ``listeners`` adds more by name, each at :meth:`address`; those that speak SASL know the same
    user. ``settings`` are added to ``server.properties`` or replace what stands there; ``member``:
    its place in a cluster of several.
    """

    def __init__(
        self,
        folder: Path,
        jars_folder: Path,
        *,
        port: int | None = None,
        sasl: tuple[str, str] | None = None,
        listeners: Mapping[str, Listener] | None = None,
        settings: Mapping[str, str] | None = None,
        heap: str = "512m",
        member: Member | None = None,
    ) -> None:
        super().__init__(folder, "broker")
        self._listeners = dict(listeners or {})
        if sasl is not None:
            self._listeners[_SASL] = Listener("SASL_PLAINTEXT")
        chosen, controller, *more = free_ports(2 + len(self._listeners))
        self._member = member or Member(1, {1: controller}, new_cluster_id())
        self._ports = dict(zip(self._listeners, more, strict=True))
        self.port = port or chosen
        self.bootstrap = f"{HOST}:{self.port}"
        self.sasl_bootstrap = self.address(_SASL) if sasl else None
        self._jars_folder = jars_folder
        self._sasl = sasl
        self._settings = dict(settings or {})
        self._heap = heap

    def create_topics(
        self, topics: Mapping[str, int], config: Mapping[str, str] | None = None
    ) -> None:
        """Create topics (name to number of partitions); raise when one cannot be created."""
        create_topics(self.bootstrap, topics, config)

    def address(self, listener: str) -> str:
        """The bootstrap server of one of the ``listeners``."""
        return f"{HOST}:{self._ports[listener]}"

    def admin(self) -> AdminClient:
        """A new administration client of the listener without security."""
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def sasl_client(self) -> dict[str, str]:
        """Kafka client settings (librdkafka's names) for the listener with security."""
        if self._sasl is None or self.sasl_bootstrap is None:
            raise StartError("the broker was made without sasl=(user, password)")
        user, password = self._sasl
        return {
            "bootstrap.servers": self.sasl_bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": password,
        }

    def _ready(self) -> bool:
        if not listening(self.port):
            return False
        try:
            return bool(self.admin().list_topics(timeout=2).brokers)
        except KafkaException:
            return False

    def _prepare(self) -> ChildProcess:
        temporary = self.folder / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        (self.folder / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")
        properties = self.folder / "server.properties"
        properties.write_text(
            "".join(f"{name}={value}\n" for name, value in self._properties().items()),
            encoding="utf-8",
        )
        java = [
            str(find_java()),
            f"-Xmx{self._heap}",
            *_JVM,
            f"-Djava.io.tmpdir={temporary}",
            f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}",
            "-cp",
            os.pathsep.join(str(jar.resolve()) for jar in resolve("broker", self._jars_folder)),
        ]
        if not (self.folder / "data" / "meta.properties").exists():
            self._format(java, properties)
        return ChildProcess(
            "the Kafka broker",
            [*java, "kafka.Kafka", str(properties)],
            self.log,
            folder=self.folder,
        )

    def _format(self, java: list[str], properties: Path) -> None:
        cluster = f"--cluster-id={self._member.cluster}"
        command = [*java, "kafka.tools.StorageTool", "format", cluster]
        command += ["--config", str(properties)]
        if self._sasl is not None:
            user, password = self._sasl
            command += ["--add-scram", f"SCRAM-SHA-256=[name={user},password={password}]"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise StartError(
                f"the broker's storage could not be formatted:\n{done.stdout}{done.stderr}"
            )

    def _properties(self) -> dict[str, str]:
        number, voters = self._member.number, self._member.voters
        listeners = {"PLAINTEXT": self.port, "CONTROLLER": voters[number]}
        protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
        properties: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": number,
            "controller.quorum.voters": ",".join(f"{n}@{HOST}:{at}" for n, at in voters.items()),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "broker.heartbeat.interval.ms": 500,
            "broker.session.timeout.ms": 3000,  # a restart after a kill waits for its end
            "log.dirs": self.folder / "data",
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": 0,
            "log.retention.ms": -1,
            "log.roll.ms": _FOREVER,
            "log.message.timestamp.after.max.ms": _FOREVER,
            "num.network.threads": 2,
            "num.io.threads": 4,
            "offsets.topic.num.partitions": 4,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.num.partitions": 4,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.num.partitions": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
        }
        for name, listener in self._listeners.items():
            listeners[name.upper()] = self._ports[name]
            protocols[name.upper()] = listener.protocol
            own = f"listener.name.{name.lower()}."
            if listener.protocol.startswith("SASL_"):
                properties["sasl.enabled.mechanisms"] = "SCRAM-SHA-256"
                properties[f"{own}scram-sha-256.sasl.jaas.config"] = (
                    "org.apache.kafka.common.security.scram.ScramLoginModule required;"
                )
            properties |= {f"{own}{key}": value for key, value in listener.settings.items()}
        properties["listeners"] = ",".join(f"{k}://{HOST}:{v}" for k, v in listeners.items())
        properties["listener.security.protocol.map"] = ",".join(
            f"{name}:{protocol}" for name, protocol in protocols.items()
        )
        return {name: str(value) for name, value in properties.items()} | self._settings


def new_cluster_id() -> str:
    """An id that no other cluster has."""
    return urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
