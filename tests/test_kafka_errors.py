"""The table of Kafka's errors, held against the lists of the clients."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest
from confluent_kafka import KafkaError
from py4j.java_gateway import JavaGateway, is_instance_of

from spark_cep.errors import KafkaUnavailableError, OutputError
from spark_cep.kafka_errors import KINDS, ErrorKind, kind_of, may_pass, unavailable_or
from tests.conftest import JARS

#: Every code that librdkafka knows, by its name.
CODES: dict[str, int] = {
    name: code for name, code in vars(KafkaError).items() if isinstance(code, int)
}
#: Waited for, although Kafka does not call them retriable; why stands in the table.
MORE = {"UNKNOWN", "BROKER_NOT_AVAILABLE", "REBOOTSTRAP_REQUIRED", "TRANSACTION_ABORTABLE"}
#: Neither librdkafka nor Kafka has it.
NEW = 999


def test_every_code_of_the_client_is_in_the_table() -> None:
    """A new one is to be put where it belongs; none is there twice."""
    assert len(CODES) > 180
    assert sorted(CODES.keys() - KINDS.keys()) == []
    assert sorted(KINDS.keys() - CODES.keys()) == []
    assert {kind_of(KafkaError(CODES[name])) for name in KINDS} == set(ErrorKind)


@pytest.mark.kafka
def test_what_kafka_calls_retriable_is_waited_for() -> None:
    """By the list of Kafka's own client, that of the embedded broker; and little else."""
    (client,) = JARS.glob("kafka-clients-4.*.jar")
    (logging,) = JARS.glob("slf4j-api-1.*.jar")
    (bridge,) = (Path(pyspark.__path__[0]) / "jars").glob("py4j-*.jar")
    java = JavaGateway.launch_gateway(
        jarpath=str(bridge), classpath=f"{client}:{logging}", die_on_exit=True
    )
    try:
        kafka = java.jvm.org.apache.kafka.common.protocol.Errors
        retriable = {
            each.code()
            for each in kafka.values()
            if is_instance_of(
                java, each.exception(), "org.apache.kafka.common.errors.RetriableException"
            )
        }
    finally:
        java.shutdown()
    assert {74, 75, 78, 56, 72} < retriable
    waited = {code for code in CODES.values() if code >= -1 and may_pass(KafkaError(code))}
    assert retriable & {*CODES.values()} - waited == set()
    assert waited - retriable == {CODES[name] for name in MORE}
    # Those that librdkafka has no name for yet.
    assert all(may_pass(KafkaError(code)) for code in retriable)


def test_an_error_that_nobody_knows_yet() -> None:
    """It is waited for, unless the client says that it cannot go on."""
    assert may_pass(KafkaError(NEW))
    assert may_pass(KafkaError(NEW, "new", False, True))
    assert not may_pass(KafkaError(NEW, "new", True))
    assert kind_of(KafkaError(NEW)) is ErrorKind.RETRIABLE


def test_the_client_may_know_better() -> None:
    """What it calls retriable is so, whatever its kind."""
    refused = KafkaError.INVALID_TXN_STATE
    assert not may_pass(KafkaError(refused))
    assert may_pass(KafkaError(refused, "again", False, True))


@pytest.mark.parametrize("name", KINDS)
def test_each_error_is_either_waited_for_or_told(name: str) -> None:
    """None is both, by its kind."""
    error = KafkaError(CODES[name])
    waited = kind_of(error) in (
        ErrorKind.RETRIABLE,
        ErrorKind.UNKNOWN_TOPIC,
        ErrorKind.UNREACHABLE,
        ErrorKind.ABORTED,
    )
    found = unavailable_or(OutputError, error, "why")
    assert type(found) is (KafkaUnavailableError if waited else OutputError)
    assert str(found) == "why"
