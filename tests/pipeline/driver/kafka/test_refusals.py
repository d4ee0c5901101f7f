"""What librdkafka and Spark say of a connection, in terms of the settings."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from spark_cep.pipeline.driver.kafka.refusals import refusal


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
    assert refusal([KafkaError(code, text)], {"bootstrap.servers": "a:1"}) is None


def test_an_untrusted_certificate_without_its_reason() -> None:
    """When nothing answers any more at the second look, the settings are named all the same."""
    text = "ssl://a:1/bootstrap: SSL handshake failed: certificate verify failed: …"
    config = {"bootstrap.servers": "127.0.0.1:1,[::1]:1"}
    said = refusal([KafkaError(KafkaError._SSL, text)], config)
    assert said is not None
    assert said.startswith("kafka.security.ssl_ca_file: ")
    assert "no ssl_ca_file" in said
