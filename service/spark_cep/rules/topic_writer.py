"""Writes records about rules, and waits until they are acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from spark_cep.errors import KafkaUnavailableError, SparkCepError
from spark_cep.kafka_errors import unavailable_or

_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.5


def write_records(
    producer: Producer,
    topic: str,
    records: Iterable[tuple[bytes, bytes | None]],
    refused: Callable[[str], SparkCepError],
) -> list[Message]:
    """Write keys and values; the messages as they were delivered. Raises KafkaUnavailableError when
    nobody answers in time, and what ``refused`` makes when a record is refused."""
    delivered: list[Message] = []
    failed: list[KafkaError] = []

    def noted(error: KafkaError | None, message: Message) -> None:
        if error is None:
            delivered.append(message)
        else:
            failed.append(error)

    try:
        for key, value in records:
            while True:
                try:
                    producer.produce(topic, value, key, on_delivery=noted)
                    break
                except BufferError:
                    producer.poll(_POLL_SECONDS)
        left = producer.flush(_SECONDS)
    except KafkaException as error:
        failed.append(error.args[0])
        left = 0
    if failed:
        why = f"topic {topic}: records of rules are refused: {failed[0].str()}"
        raise unavailable_or(refused, failed[0], why)
    if left:
        raise KafkaUnavailableError(
            f"topic {topic}: records of rules are not written: no answer within {_SECONDS:g} s"
        )
    return delivered
