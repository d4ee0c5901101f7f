"""What librdkafka and Spark say of a connection, in terms of the settings."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from spark_cep.pipeline.driver.kafka.refusals import Refusals


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (KafkaError._TRANSPORT, "127.0.0.1:9/bootstrap: Connect to ipv4#127.0.0.1:9 failed"),
        (KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"),
        (KafkaError._TRANSPORT, "ssl://a:1/1: Disconnected (after 300000ms in state UP)"),
        (KafkaError._RESOLVE, "Failed to resolve 'kafka:9092'"),
    ],
)
def test_a_broker_that_is_away_is_no_refusal(code: int, text: str) -> None:
    """What may pass is waited for."""
    refusals = Refusals({"bootstrap.servers": "a:1"})
    refusals.heard(KafkaError(code, text))
    assert refusals.reason() is None


def test_an_untrusted_certificate_without_its_reason() -> None:
    """When nothing answers any more at the second look, the settings are named all the same."""
    refusals = Refusals({"bootstrap.servers": "127.0.0.1:1,[::1]:1"})
    text = "ssl://a:1/bootstrap: SSL handshake failed: certificate verify failed: …"
    refusals.heard(KafkaError(KafkaError._SSL, text))
    said = refusals.reason()
    assert said is not None
    assert said.startswith("kafka.security.ssl_ca_file: ")
    assert "no ssl_ca_file" in said
