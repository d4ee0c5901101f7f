"""The connection to Kafka, by librdkafka everywhere: in tasks that read or write, and in the
driver.

The typed ``security`` block says things once; ``source_properties`` and ``sink_properties`` take
whatever else librdkafka knows, and win over everything said here.

Keys and certificates are PEM. Clients that run in executors are given their text, so that executors
need no copy of the files.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, FilePath, SecretStr, model_validator

from spark_cep.config.quantities import (
    Properties,
    SettingsSection,
    Shown,
    check_pair,
    revealed,
    setting,
)
from spark_cep.documents.values import contradiction, refused
from spark_cep.errors import ConfigurationError

CLIENT_ID: Final = "spark-cep"

SOURCE_DEFAULTS: Final[dict[str, Any]] = {
    "isolation.level": "read_committed",
    "check.crcs": True,
    "fetch.message.max.bytes": 4 << 20,
    "fetch.max.bytes": 16 << 20,
    "queued.max.messages.kbytes": 16 << 10,
    "queued.min.messages": 1_000_000,
    "fetch.queue.backoff.ms": 2,
    "fetch.wait.max.ms": 10,
    "fetch.error.backoff.ms": 100,
    "reconnect.backoff.ms": 20,
}
"""Records of a transaction are read once it is committed. Each task has a client, which fetches
ahead as long as fewer than 16 MiB wait, and looks again soon when they do not: by itself it would
be idle for a second. A task knows where its range ends and lets go of the partition there. The
broker answers in order, so what it was asked for beyond that may not be waited for long."""

_QUEUE: Final = "queue.buffering.max.kbytes"
SINK_DEFAULTS: Final[dict[str, Any]] = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 5,
    "compression.type": "lz4",
    # A client looks for a first connection only every half of this, and each task may need one.
    "reconnect.backoff.ms": 20,
    # That of the Java clients, so that a key's output stands in the partition of its input.
    "partitioner": "murmur2_random",
    # Of a producer, which each task that writes has; librdkafka's own bound is 1 GiB.
    _QUEUE: 64 << 10,
}

_READERS_OWN: Final = (
    "auto.offset.reset",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.partition.eof",
    "group.id",
)
_DELIVERYS_OWN: Final = ("enable.idempotence", "transactional.id", "transaction.timeout.ms")
_JAVA_ONLY: Final = ("sasl.jaas.config", "ssl.truststore.", "ssl.keystore.type", "ssl.protocol")
_CONNECTION: Final = (
    "bootstrap.servers",
    "client.id",
    "security.",
    "sasl.",
    "ssl.",
    "enable.ssl.",
    "https.",
    "socket.",
    "broker.",
    "reconnect.",
    "api.version.",
    "metadata.",
    "plugin.",
    "debug",
)
_PORTS: Final = range(1, 65_536)
_TEXT_OF: Final = {
    "ssl.ca.location": "ssl.ca.pem",
    "ssl.certificate.location": "ssl.certificate.pem",
    "ssl.key.location": "ssl.key.pem",
}
"""What librdkafka calls the content of a file."""


_SERVERS: Final = "host:port, or several with commas between: kafka-1:9092,kafka-2:9092"


def _servers(value: Any) -> str:
    if not isinstance(value, str):
        raise refused(_SERVERS)
    servers = [part.strip() for part in value.split(",")]
    for server in servers:
        host, _, port = server.rpartition(":")
        if not host or not port.isdigit() or int(port) not in _PORTS or "/" in server:
            raise refused(_SERVERS)
    return ",".join(servers)


Servers = Annotated[str, BeforeValidator(_servers), Shown("host:port, with commas")]


class Security(SettingsSection):
    """TLS and SASL of the Kafka connection; the same for source, sink and administration."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = setting(
        "PLAINTEXT", "Protocol of the connection."
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = setting(
        None,
        "How the client logs in; others (Kerberos, OAuth) go into the property maps.",
    )
    username: str | None = setting(None, "Name to log in with.")
    password: SecretStr | None = setting(None, "Password to log in with.")
    ssl_ca_file: FilePath | None = setting(
        None,
        "PEM file of the authorities to trust; absent: those of the system.",
    )
    ssl_certificate_file: FilePath | None = setting(
        None, "PEM file of the client's certificate and its chain."
    )
    ssl_key_file: FilePath | None = setting(None, "PEM file of the client's private key.")
    ssl_key_password: SecretStr | None = setting(None, "Password of an encrypted private key.")
    ssl_check_hostname: bool = setting(
        True, "Whether a broker's certificate must name the host that was called."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Security:
        if self.sasl_mechanism is not None:
            if not self.protocol.startswith("SASL_"):
                raise contradiction(
                    f"a mechanism needs protocol SASL_SSL or SASL_PLAINTEXT, not {self.protocol}",
                    "sasl_mechanism",
                )
            if self.username is None or self.password is None:
                raise contradiction(
                    f"{self.sasl_mechanism} needs both username and password", "sasl_mechanism"
                )
        check_pair(self, "ssl_certificate_file", "ssl_key_file")
        return self

    def properties(self) -> dict[str, Any]:
        """The connection, in librdkafka's names; holds secrets."""
        made: dict[str, Any] = {"security.protocol": self.protocol}
        if self.sasl_mechanism and self.username is not None and self.password is not None:
            made["sasl.mechanism"] = self.sasl_mechanism
            made["sasl.username"] = self.username
            made["sasl.password"] = self.password.get_secret_value()
        if not self.protocol.endswith("SSL"):
            return made
        for name, file in (
            ("ssl.ca.location", self.ssl_ca_file),
            ("ssl.certificate.location", self.ssl_certificate_file),
            ("ssl.key.location", self.ssl_key_file),
        ):
            if file:
                made[name] = str(file)
        if self.ssl_key_password:
            made["ssl.key.password"] = self.ssl_key_password.get_secret_value()
        if not self.ssl_check_hostname:
            made["ssl.endpoint.identification.algorithm"] = "none"
        return made


class Kafka(SettingsSection):
    """The Kafka cluster that events come from and results go to."""

    bootstrap_servers: Servers = setting(
        ..., "Brokers to call first, as `host:port` with commas between."
    )
    security: Security = setting(Security(), "TLS and SASL.")
    source_properties: Properties = setting(
        {},
        "Further properties of the librdkafka consumers that read the input; they win. Preset: "
        + ", ".join(f"`{name}={str(value).lower()}`" for name, value in SOURCE_DEFAULTS.items())
        + ".",
    )
    sink_properties: Properties = setting(
        {},
        "Further properties of the librdkafka clients that write the output and administer "
        "topics; they win. Preset: "
        + ", ".join(f"`{name}={str(value).lower()}`" for name, value in SINK_DEFAULTS.items())
        + ".",
    )

    @model_validator(mode="after")
    def _right_client(self) -> Kafka:
        security = self.security
        logs_in = security.protocol.startswith("SASL_") and security.sasl_mechanism is None
        for side, properties, own, why in (
            ("source_properties", self.source_properties, _READERS_OWN, "how a batch is read"),
            (
                "sink_properties",
                self.sink_properties,
                _DELIVERYS_OWN,
                "outputs.transaction_timeout and how output is written",
            ),
        ):
            for name in properties:
                if name in own:
                    raise contradiction(f"{name} follows from {why}", side)
                if name.startswith(_JAVA_ONLY):
                    raise contradiction(
                        f"{name} is a property of Java's clients; this is librdkafka: use"
                        " kafka.security, or librdkafka's name",
                        side,
                    )
            if logs_in and not {"sasl.mechanism", "sasl.mechanisms"} & properties.keys():
                raise contradiction(
                    f"{security.protocol} needs security.sasl_mechanism, or "
                    f"sasl.mechanism in {side}",
                    "security",
                )
        return self

    def reader_config(self) -> dict[str, Any]:
        """Configuration of the librdkafka consumer that reads the input, for any machine; holds
        secrets."""
        source = revealed(self.source_properties)
        return {**self._portable_connection(source), **SOURCE_DEFAULTS, **source}

    @property
    def reads_committed(self) -> bool:
        """Tell whether the input ends where a transaction is open."""
        level = "isolation.level"
        return bool((SOURCE_DEFAULTS | self.source_properties)[level] == "read_committed")

    def producer_config(self) -> dict[str, Any]:
        """Configuration of the librdkafka producer, for any machine; holds secrets."""
        sink = revealed(self.sink_properties)
        # librdkafka waits for ever with a record that is larger than its queue.
        queue = max(SINK_DEFAULTS[_QUEUE], int(sink.get("message.max.bytes", 0)) >> 9)
        return {**self._portable_connection(sink), **SINK_DEFAULTS, _QUEUE: queue, **sink}

    def admin_config(self) -> dict[str, Any]:
        """Configuration of a librdkafka administration client of this machine; holds secrets.

        Of ``sink_properties`` it has those about the connection: it goes where the output goes.
        """
        return {**self._connection(), **self._sink_connection()}

    def consumer_config(self, group_id: str) -> dict[str, Any]:
        """Configuration of a librdkafka consumer of our own topics, for any machine; holds secrets.

        It commits nothing by itself and reads committed records only.
        """
        return {
            **self._portable_connection(self.sink_properties),
            **self._sink_connection(),
            "group.id": group_id,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }

    def _connection(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "client.id": CLIENT_ID,
            **self.security.properties(),
        }

    def _portable_connection(self, own: Collection[str]) -> dict[str, Any]:
        """The connection without names of files, but for those that the user's ``own`` properties
        name, which must be on every machine."""
        return {
            _TEXT_OF.get(name, name): _pem(Path(value)) if name in _TEXT_OF else value
            for name, value in self._connection().items()
            if name not in own
        }

    def _sink_connection(self) -> dict[str, str]:
        sink = revealed(self.sink_properties)
        return {name: value for name, value in sink.items() if name.startswith(_CONNECTION)}


def _pem(file: Path) -> str:
    try:
        text = file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{file} cannot be read as a PEM file: {type(error).__name__}"
        ) from None
    if "-----BEGIN " not in text:
        raise ConfigurationError(f"{file} is not a PEM file: it has no BEGIN line")
    return text
