"""Asking Kafka again while an error may pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_exponential

_T = TypeVar("_T")

#: The brokers do not answer, or are not ready yet.
RETRIABLE: Final = (
    KafkaError._TRANSPORT,  # noqa: SLF001  librdkafka's local errors are named so
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._TIMED_OUT_QUEUE,  # noqa: SLF001
    KafkaError._MSG_TIMED_OUT,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
    # Of a topic that was just made.
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_CONTROLLER,
)


def is_retriable(error: BaseException) -> bool:
    """Whether asking again may help: brokers that are away, or not ready yet."""
    if not isinstance(error, KafkaException):
        return False
    reason = error.args[0]
    return bool(reason.retriable()) or reason.code() in RETRIABLE


def retried(call: Callable[[], _T], seconds: float) -> _T:
    """The answer of ``call``, asked again for so long; then the last KafkaException."""
    return Retrying(
        retry=retry_if_exception(is_retriable),
        wait=wait_exponential(multiplier=0.05, max=1),
        stop=stop_after_delay(seconds),
        reraise=True,
    )(call)
