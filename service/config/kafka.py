"""How Kafka is reached: one description of the connection, translated for both of its clients.

Spark's source is the Java client, the producer and the administration are librdkafka. The typed
``security`` block says things once; ``source_properties`` (Java names) and ``sink_properties``
(librdkafka names) take whatever else a client knows, and win over everything said here.

Keys and certificates are PEM. Clients that run in executors are given their text, so that executors
need no copy of the files; the Java client therefore wants private keys in PKCS#8.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, FilePath, SecretStr, model_validator

from service.config.quantities import Properties, Section, Shown, reveal, setting
from service.documents.values import contradiction, refused
from service.errors import ConfigurationError

CLIENT_ID: Final = "spark-cep"

SOURCE_DEFAULTS: Final = {
    "max.poll.records": "10000",
    "max.partition.fetch.bytes": str(16 * 2**20),
    "fetch.max.bytes": str(64 * 2**20),
    "receive.buffer.bytes": str(4 * 2**20),
    "fetch.max.wait.ms": "1",
    "isolation.level": "read_committed",
    "request.timeout.ms": "15000",
    "default.api.timeout.ms": "20000",
}
"""Records of a transaction are read once it is committed; Kafka's own default reads aborted ones as
well. Larger fetches than the Java client's own: half as much again in events per second. And short
waits: after each poll Spark asks for the partition's newest offset, on the connection on which the
client has already asked for the next records, and the broker answers in order; at the end of a
partition that took half a second. Shorter time-outs than the client's own, for brokers that only
some clients cannot reach: a task waits for a record and then asks where the partition ends, and
four attempts at that are less than three minutes."""

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

_SPARKS_OWN: Final = (
    "auto.offset.reset",
    "enable.auto.commit",
    "interceptor.classes",
    "key.deserializer",
    "value.deserializer",
)
_DELIVERYS_OWN: Final = ("enable.idempotence", "transactional.id", "transaction.timeout.ms")
_JAVA_ONLY: Final = ("sasl.jaas.config", "ssl.truststore.", "ssl.keystore.type", "ssl.protocol")
_LIBRDKAFKA_ONLY: Final = (
    "sasl.username",
    "sasl.password",
    "ssl.ca.",
    "ssl.certificate.",
    "ssl.key.location",
    "ssl.key.pem",
    "debug",
)
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
_PBES2: Final = bytes.fromhex("2a864886f70d01050d")
"""Object identifier of an encryption of keys that Java 17 does not find by the name Kafka uses."""

_LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_JAAS_ESCAPES: Final = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
)


def _servers(value: str) -> str:
    servers = [part.strip() for part in value.split(",")]
    for server in servers:
        host, _, port = server.rpartition(":")
        if not host or not port.isdigit() or int(port) not in _PORTS or "/" in server:
            raise refused("host:port, or several with commas between")
    return ",".join(servers)


class Security(Section):
    """TLS and SASL of the Kafka connection; the same for source, sink and administration."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = setting(
        "PLAINTEXT", description="How brokers are spoken to."
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = setting(
        None,
        description="How the client logs in; others (Kerberos, OAuth) go into the property maps.",
    )
    username: str | None = setting(None, description="Name to log in with.")
    password: SecretStr | None = setting(None, description="Password to log in with.")
    ssl_ca_file: FilePath | None = setting(
        None,
        description="PEM file of the authorities to trust; absent: those of the system or JVM.",
    )
    ssl_certificate_file: FilePath | None = setting(
        None, description="PEM file of the client's certificate and its chain."
    )
    ssl_key_file: FilePath | None = setting(
        None, description="PEM file (PKCS#8) of the client's private key."
    )
    ssl_key_password: SecretStr | None = setting(
        None,
        description=(
            "Password of an encrypted private key (`openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES`; the "
            "Java client does not read OpenSSL's newer PBES2)."
        ),
    )
    ssl_check_hostname: bool = setting(
        True, description="Whether a broker's certificate must name the host that was called."
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
        if (self.ssl_certificate_file is None) != (self.ssl_key_file is None):
            raise contradiction(
                "ssl_certificate_file and ssl_key_file go together", "ssl_certificate_file"
            )
        return self

    @property
    def encrypted(self) -> bool:
        """Whether the connection is under TLS."""
        return self.protocol in ("SSL", "SASL_SSL")

    def java_properties(self) -> dict[str, str]:
        """The connection for the Java client; holds secrets."""
        made: dict[str, str] = {"security.protocol": self.protocol}
        if self.sasl_mechanism and self.username is not None and self.password is not None:
            made["sasl.mechanism"] = self.sasl_mechanism
            made["sasl.jaas.config"] = jaas_config(
                self.sasl_mechanism, self.username, self.password.get_secret_value()
            )
        if not self.encrypted:
            return made
        if self.ssl_ca_file:
            made["ssl.truststore.type"] = "PEM"
            made["ssl.truststore.certificates"] = _pem(self.ssl_ca_file)
        if self.ssl_certificate_file and self.ssl_key_file:
            made["ssl.keystore.type"] = "PEM"
            made["ssl.keystore.certificate.chain"] = _pem(self.ssl_certificate_file)
            made["ssl.keystore.key"] = _private_key(self.ssl_key_file)
        if self.ssl_key_password:
            made["ssl.key.password"] = self.ssl_key_password.get_secret_value()
        if not self.ssl_check_hostname:
            made["ssl.endpoint.identification.algorithm"] = ""
        return made

    def librdkafka_properties(self) -> dict[str, Any]:
        """The connection for librdkafka; holds secrets."""
        made: dict[str, Any] = {"security.protocol": self.protocol}
        if self.sasl_mechanism and self.username is not None and self.password is not None:
            made["sasl.mechanism"] = self.sasl_mechanism
            made["sasl.username"] = self.username
            made["sasl.password"] = self.password.get_secret_value()
        if not self.encrypted:
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


class Kafka(Section):
    """The Kafka cluster that events come from and results go to."""

    bootstrap_servers: Annotated[str, AfterValidator(_servers), Shown("host:port, with commas")] = (
        setting(description="Brokers to call first, as `host:port` with commas between.")
    )
    security: Security = setting(Security(), description="TLS and SASL.")
    source_properties: Properties = setting(
        {},
        description=(
            "Further properties of the Java consumer that reads the input; they win. Preset: "
            + ", ".join(f"`{name}={value}`" for name, value in SOURCE_DEFAULTS.items())
            + "; `max.poll.records` and `max.partition.fetch.bytes` less with large records and "
            "with more than 4 partitions."
        ),
    )
    sink_properties: Properties = setting(
        {},
        description=(
            "Further properties of the librdkafka clients that write the output and administer "
            "topics; they win. Preset: "
            + ", ".join(f"`{name}={str(value).lower()}`" for name, value in SINK_DEFAULTS.items())
            + "."
        ),
    )

    @model_validator(mode="after")
    def _right_client(self) -> Kafka:
        for name in self.source_properties:
            if name in _SPARKS_OWN:
                raise contradiction(f"{name} is set by Spark alone", "source_properties")
            if name.startswith("kafka."):
                raise contradiction(
                    f"{name} is written without the prefix kafka.", "source_properties"
                )
            if name.startswith(_LIBRDKAFKA_ONLY):
                raise contradiction(
                    f"{name} is a librdkafka property; the source is the Java client: use "
                    "kafka.security, or the Java name",
                    "source_properties",
                )
        for name in self.sink_properties:
            if name in _DELIVERYS_OWN:
                raise contradiction(
                    f"{name} follows from outputs.delivery and outputs.transaction_timeout",
                    "sink_properties",
                )
            if name.startswith(_JAVA_ONLY):
                raise contradiction(
                    f"{name} is a Java property; the sink is librdkafka: use kafka.security, or "
                    "librdkafka's name",
                    "sink_properties",
                )
        if self.security.protocol.startswith("SASL_") and self.security.sasl_mechanism is None:
            for side, properties in (
                ("source_properties", self.source_properties),
                ("sink_properties", self.sink_properties),
            ):
                if not {"sasl.mechanism", "sasl.mechanisms"} & properties.keys():
                    raise contradiction(
                        f"{self.security.protocol} needs security.sasl_mechanism, or "
                        f"sasl.mechanism in {side}",
                        "security",
                    )
        return self

    def source_options(self) -> dict[str, str]:
        """Options of Spark's Kafka source: Java names with the prefix ``kafka.``; holds secrets."""
        merged = {
            "bootstrap.servers": self.bootstrap_servers,
            "client.id": CLIENT_ID,
            **SOURCE_DEFAULTS,
            **self.security.java_properties(),
            **{name: reveal(value) for name, value in self.source_properties.items()},
        }
        options = {f"kafka.{name}": value for name, value in merged.items()}
        # How long a task waits for a record; by itself Spark takes spark.network.timeout.
        return options | {"kafkaConsumer.pollTimeoutMs": merged["default.api.timeout.ms"]}

    def producer_config(self) -> dict[str, Any]:
        """Configuration of the librdkafka producer, for any machine; holds secrets."""
        sink = self._sink()
        # librdkafka waits for ever with a record that is larger than its queue.
        queue = int(sink.get("message.max.bytes", 0)) >> 9
        config = {**self._portable_connection(), **SINK_DEFAULTS}
        config["queue.buffering.max.kbytes"] = max(
            queue, SINK_DEFAULTS["queue.buffering.max.kbytes"]
        )
        return {**config, **sink}

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
            **self._portable_connection(),
            **self._sink_connection(),
            "group.id": group_id,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }

    def _connection(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "client.id": CLIENT_ID,
            **self.security.librdkafka_properties(),
        }

    def _portable_connection(self) -> dict[str, Any]:
        """The connection without names of files, but for those that ``sink_properties`` name, which
        must be on every machine."""
        sink = self._sink()
        return {
            _TEXT_OF.get(name, name): _pem(Path(value)) if name in _TEXT_OF else value
            for name, value in self._connection().items()
            if name not in sink
        }

    def _sink_connection(self) -> dict[str, str]:
        return {k: v for k, v in self._sink().items() if k.startswith(_CONNECTION)}

    def _sink(self) -> dict[str, str]:
        return {name: reveal(value) for name, value in self.sink_properties.items()}


def jaas_config(mechanism: str, username: str, password: str) -> str:
    """The login entry of the Java client; whatever stands in name and password is escaped."""
    name, secret = username.translate(_JAAS_ESCAPES), password.translate(_JAAS_ESCAPES)
    return f'{_LOGIN_MODULES[mechanism]} required username="{name}" password="{secret}";'


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


def _der(text: str) -> bytes:
    """The bytes of a PEM file's first block; nothing when it is not base64."""
    body = text.partition("-----BEGIN ")[2].partition("\n")[2].partition("-----END ")[0]
    try:
        return base64.b64decode(body)
    except binascii.Error:
        return b""


def _private_key(file: Path) -> str:
    text = _pem(file)
    if "BEGIN PRIVATE KEY" not in text and "BEGIN ENCRYPTED PRIVATE KEY" not in text:
        raise ConfigurationError(
            f"{file} does not hold a private key in PKCS#8, which the Java client needs; "
            "convert it: openssl pkcs8 -topk8 -in KEY -out NEWKEY"
        )
    if "BEGIN ENCRYPTED" in text and _PBES2 in _der(text):
        raise ConfigurationError(
            f"{file} holds a private key encrypted by PBES2, which the Java client cannot read; "
            "convert it: openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES -in KEY -out NEWKEY"
        )
    return text
