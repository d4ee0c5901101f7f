"""One description of the connection, three clients: Java, librdkafka, the registry's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from pydantic import ValidationError

from service.config import Kafka, Registry
from service.config.kafka import jaas_config
from service.errors import ConfigurationError

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nBBBB\n-----END PRIVATE KEY-----\n"


def kafka(**more: Any) -> Kafka:
    """A Kafka section."""
    return Kafka.model_validate({"bootstrap_servers": "a:1, b:2", **more})


def tls(folder: Path, key: str = KEY) -> dict[str, Any]:
    """A security block with mutual TLS."""
    for name, text in (("ca.pem", CERTIFICATE), ("cert.pem", CERTIFICATE), ("key.pem", key)):
        (folder / name).write_text(text)
    return {
        "protocol": "SSL",
        "ssl_ca_file": folder / "ca.pem",
        "ssl_certificate_file": folder / "cert.pem",
        "ssl_key_file": folder / "key.pem",
        "ssl_key_password": "pw",
        "ssl_check_hostname": False,
    }


def test_plain_connection() -> None:
    """Without security the source has larger fetches and the producer is idempotent."""
    source = kafka().source_options()
    assert source["kafka.bootstrap.servers"] == "a:1,b:2"
    assert source["kafka.max.poll.records"] == "10000"
    assert source["kafka.receive.buffer.bytes"] == "4194304"
    producer = kafka().producer_config()
    assert (producer["acks"], producer["enable.idempotence"]) == ("all", True)
    assert "acks" not in kafka().admin_config()


def test_raw_properties_win() -> None:
    """Raw properties override presets and the typed block; numbers and booleans become text."""
    section = kafka(
        source_properties={"max.poll.records": 5, "bootstrap.servers": "c:3", "x": True},
        sink_properties={"acks": 1, "socket.keepalive.enable": True, "client.id": "me"},
    )
    source = section.source_options()
    assert source["kafka.max.poll.records"] == "5"
    assert source["kafka.bootstrap.servers"] == "c:3"
    assert source["kafka.x"] == "true"
    assert section.producer_config()["acks"] == "1"
    consumer = section.consumer_config("group")
    assert consumer["client.id"] == "me"
    assert (consumer["group.id"], consumer["isolation.level"]) == ("group", "read_committed")
    assert "acks" not in consumer


def test_scram_for_both_clients() -> None:
    """Name and password become a JAAS entry for Java and two properties for librdkafka."""
    section = kafka(
        security={
            "protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-512",
            "username": "cep",
            "password": 'p"w\\',
        }
    )
    source = section.source_options()
    assert source["kafka.security.protocol"] == "SASL_PLAINTEXT"
    assert source["kafka.sasl.mechanism"] == "SCRAM-SHA-512"
    assert source["kafka.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="cep" password="p\\"w\\\\";'
    )
    producer = section.producer_config()
    assert (producer["sasl.username"], producer["sasl.password"]) == ("cep", 'p"w\\')


def test_jaas_entry_cannot_be_left() -> None:
    """Quotes, backslashes and line ends stay inside the quoted value."""
    entry = jaas_config("PLAIN", 'u" evil="1', "a\nb\tc\rd;")
    assert entry.endswith('username="u\\" evil=\\"1" password="a\\nb\\tc\\rd;";')


def test_mutual_tls_for_both_clients(tmp_path: Path) -> None:
    """Clients of executors are given the PEM texts, those of the driver alone the files."""
    section = kafka(security=tls(tmp_path))
    source = section.source_options()
    assert source["kafka.ssl.truststore.type"] == "PEM"
    assert source["kafka.ssl.truststore.certificates"] == CERTIFICATE
    assert source["kafka.ssl.keystore.certificate.chain"] == CERTIFICATE
    assert source["kafka.ssl.keystore.key"] == KEY
    assert source["kafka.ssl.key.password"] == "pw"
    assert source["kafka.ssl.endpoint.identification.algorithm"] == ""
    producer = section.producer_config()
    assert producer["ssl.endpoint.identification.algorithm"] == "none"
    for config in (producer, section.consumer_config("group")):
        assert (config["ssl.ca.pem"], config["ssl.certificate.pem"]) == (CERTIFICATE, CERTIFICATE)
        assert config["ssl.key.pem"] == KEY
        assert str(tmp_path) not in str(config)
    admin = section.admin_config()
    assert admin["ssl.ca.location"] == str(tmp_path / "ca.pem")
    assert admin["ssl.key.location"] == str(tmp_path / "key.pem")


def test_files_of_the_sink_stay_files(tmp_path: Path) -> None:
    """A file that the sink's own properties name stands in for that of the typed block."""
    section = kafka(security=tls(tmp_path), sink_properties={"ssl.ca.location": "/etc/ca.pem"})
    producer = section.producer_config()
    assert producer["ssl.ca.location"] == "/etc/ca.pem"
    assert "ssl.ca.pem" not in producer
    assert producer["ssl.certificate.pem"] == CERTIFICATE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("-----BEGIN RSA PRIVATE KEY-----\n", "openssl pkcs8 -topk8"),
        (
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAAqhkiG9w0BBQ0=\n-----END X-----\n",
            "PBE-SHA1-3DES",
        ),
        ("garbage", "no BEGIN line"),
        ("ä", "cannot be read as a PEM file"),
    ],
)
def test_unusable_keys_are_refused(tmp_path: Path, text: str, said: str) -> None:
    """A key that the Java client cannot use is refused with the remedy."""
    section = kafka(security=tls(tmp_path, key=text))
    with pytest.raises(ConfigurationError, match=said):
        section.source_options()


def test_other_encrypted_keys_pass(tmp_path: Path) -> None:
    """A key that we cannot look into is left to the client."""
    text = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nA\n-----END ENCRYPTED PRIVATE KEY-----\n"
    source = kafka(security=tls(tmp_path, key=text)).source_options()
    assert source["kafka.ssl.keystore.key"] == text


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"security": {"sasl_mechanism": "PLAIN"}}, "a mechanism needs protocol"),
        (
            {"security": {"protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "username": "u"}},
            "PLAIN needs both username and password",
        ),
        ({"security": {"protocol": "SASL_SSL"}}, "needs security.sasl_mechanism"),
        ({"source_properties": {"auto.offset.reset": "latest"}}, "set by Spark alone"),
        ({"source_properties": {"kafka.x": "1"}}, "without the prefix"),
        ({"source_properties": {"sasl.username": "u"}}, "is a librdkafka property"),
        ({"sink_properties": {"sasl.jaas.config": "x"}}, "is a Java property"),
        ({"bootstrap_servers": "a:1,b"}, "host:port"),
    ],
)
def test_wrong_combinations_are_refused(more: dict[str, Any], said: str) -> None:
    """A client's properties in the other client's map, and half a login, are refused."""
    with pytest.raises(ValidationError, match=said):
        kafka(**more)


def test_other_mechanisms_through_the_maps() -> None:
    """Kerberos and OAuth need no typed block."""
    section = kafka(
        security={"protocol": "SASL_SSL"},
        source_properties={"sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "kafka"},
        sink_properties={"sasl.mechanisms": "OAUTHBEARER"},
    )
    assert section.source_options()["kafka.sasl.mechanism"] == "GSSAPI"
    assert section.producer_config()["sasl.mechanisms"] == "OAUTHBEARER"


def test_librdkafka_takes_the_properties() -> None:
    """The real clients accept every property that is made for them."""
    section = kafka(
        security={
            "protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-256",
            "username": "u",
            "password": "p",
            "ssl_check_hostname": False,
        }
    )
    quiet = {"log_level": 0}
    Producer({**section.producer_config(), **quiet}).purge()
    AdminClient({**section.admin_config(), **quiet})


def test_registry_takes_one_identity() -> None:
    """A name with password and a token exclude each other."""
    with pytest.raises(ValidationError, match="either username and password or a token"):
        Registry.model_validate(
            {"url": "http://r", "username": "u", "password": "p", "bearer_token": "t"}
        )
