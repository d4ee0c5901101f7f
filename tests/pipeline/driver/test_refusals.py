"""What librdkafka and Spark say of a connection, in terms of the settings."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from service.pipeline.driver.refusals import Refusals, refusal_of_source


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


def test_errors_of_the_source() -> None:
    """Spark's long report is searched for the client's own words."""
    report = (
        "[STREAM_FAILED] Query [id = x] terminated with exception:"
        " org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed"
        " SQLSTATE: XXKST\n=== Streaming Query ===\nmore"
    )
    said = refusal_of_source(report)
    assert said is not None
    assert "kafka.source_properties" in said
    assert ": Authentication failed (" in said
    assert refusal_of_source("x: Failed to create new KafkaAdminClient SQLSTATE: XXKST") is not None
    assert refusal_of_source("java.lang.ArithmeticException: / by zero") is None
