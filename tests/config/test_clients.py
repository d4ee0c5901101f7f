"""One description of the connection, for each of librdkafka's clients, and the registry's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from pydantic import ValidationError

from spark_cep.config import Kafka, SchemaRegistry
from spark_cep.errors import ConfigurationError
from spark_cep.pipeline.librdkafka.consumer import check

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
    source = kafka().reader_config()
    assert source["bootstrap.servers"] == "a:1,b:2"
    assert source["fetch.message.max.bytes"] == 4 * 2**20
    assert kafka().reads_committed
    producer = kafka().producer_config()
    assert (producer["acks"], producer["enable.idempotence"]) == ("all", True)
    assert "acks" not in kafka().admin_config()


def test_raw_properties_win() -> None:
    """Raw properties override presets and the typed block; numbers and booleans become text."""
    section = kafka(
        source_properties={
            "fetch.max.bytes": 5,
            "bootstrap.servers": "c:3",
            "x": True,
            "isolation.level": "read_uncommitted",
        },
        sink_properties={"acks": 1, "socket.keepalive.enable": True, "client.id": "me"},
    )
    source = section.reader_config()
    assert source["fetch.max.bytes"] == "5"
    assert source["bootstrap.servers"] == "c:3"
    assert source["x"] == "true"
    assert not section.reads_committed
    assert section.producer_config()["acks"] == "1"
    consumer = section.consumer_config("group")
    assert consumer["client.id"] == "me"
    assert (consumer["group.id"], consumer["isolation.level"]) == ("group", "read_committed")
    assert "acks" not in consumer


def test_scram_for_both_sides() -> None:
    """Whatever stands in name and password is taken as it is."""
    section = kafka(
        security={
            "protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-512",
            "username": "cep",
            "password": 'p"w\\',
        }
    )
    for config in (section.reader_config(), section.producer_config()):
        assert config["security.protocol"] == "SASL_PLAINTEXT"
        assert config["sasl.mechanism"] == "SCRAM-SHA-512"
        assert (config["sasl.username"], config["sasl.password"]) == ("cep", 'p"w\\')


def test_mutual_tls_for_both_sides(tmp_path: Path) -> None:
    """Clients of executors are given the PEM texts, those of the driver alone the files."""
    section = kafka(security=tls(tmp_path))
    producer = section.producer_config()
    assert producer["ssl.endpoint.identification.algorithm"] == "none"
    for config in (producer, section.consumer_config("group"), section.reader_config()):
        assert config["ssl.key.password"] == "pw"
        assert (config["ssl.ca.pem"], config["ssl.certificate.pem"]) == (CERTIFICATE, CERTIFICATE)
        assert config["ssl.key.pem"] == KEY
        assert str(tmp_path) not in str(config)
    admin = section.admin_config()
    assert admin["ssl.ca.location"] == str(tmp_path / "ca.pem")
    assert admin["ssl.key.location"] == str(tmp_path / "key.pem")


def test_files_of_the_maps_stay_files(tmp_path: Path) -> None:
    """A file that the user's own properties name stands in for that of the typed block."""
    own = {"ssl.ca.location": "/etc/ca.pem"}
    section = kafka(security=tls(tmp_path), sink_properties=own, source_properties=own)
    for config in (section.producer_config(), section.reader_config()):
        assert config["ssl.ca.location"] == "/etc/ca.pem"
        assert "ssl.ca.pem" not in config
        assert config["ssl.certificate.pem"] == CERTIFICATE
    assert kafka(security=tls(tmp_path)).reader_config()["ssl.ca.pem"] == CERTIFICATE


@pytest.mark.parametrize(
    ("text", "said"),
    [("garbage", "no BEGIN line"), ("ä", "cannot be read as a PEM file")],
)
def test_unusable_keys_are_refused(tmp_path: Path, text: str, said: str) -> None:
    """What is no PEM file is refused."""
    section = kafka(security=tls(tmp_path, key=text))
    with pytest.raises(ConfigurationError, match=said):
        section.reader_config()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"security": {"sasl_mechanism": "PLAIN"}}, "a mechanism needs protocol"),
        (
            {"security": {"protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "username": "u"}},
            "PLAIN needs both username and password",
        ),
        ({"security": {"protocol": "SASL_SSL"}}, "needs security.sasl_mechanism"),
        (
            {"source_properties": {"auto.offset.reset": "latest"}},
            "follows from how a batch is read",
        ),
        (
            {"sink_properties": {"transactional.id": "x"}},
            "outputs.transaction_timeout",
        ),
        ({"source_properties": {"ssl.truststore.location": "x"}}, "a property of Java's clients"),
        ({"sink_properties": {"sasl.jaas.config": "x"}}, "a property of Java's clients"),
        ({"bootstrap_servers": "a:1,b"}, "host:port"),
    ],
)
def test_wrong_combinations_are_refused(more: dict[str, Any], said: str) -> None:
    """Properties of another client, and half a login."""
    with pytest.raises(ValidationError, match=said):
        kafka(**more)


def test_other_mechanisms_through_the_maps() -> None:
    """Kerberos and OAuth need no typed block."""
    section = kafka(
        security={"protocol": "SASL_SSL"},
        source_properties={"sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "kafka"},
        sink_properties={"sasl.mechanisms": "OAUTHBEARER"},
    )
    assert section.reader_config()["sasl.mechanism"] == "GSSAPI"
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
    check(section.reader_config())


def test_registry_takes_one_identity() -> None:
    """A name with password and a token exclude each other."""
    with pytest.raises(ValidationError, match="either username and password or a token"):
        SchemaRegistry.model_validate(
            {"url": "http://r", "username": "u", "password": "p", "bearer_token": "t"}
        )
