"""Asking Kafka again while an error may pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_exponential

from spark_cep.kafka_errors import ErrorKind, kind_of, may_pass

_T = TypeVar("_T")


def is_retriable(error: BaseException) -> bool:
    """Tell whether the same call may succeed. After an error that ends the transaction it
    cannot."""
    if not isinstance(error, KafkaException):
        return False
    reason = error.args[0]
    ended = reason.txn_requires_abort() or kind_of(reason) is ErrorKind.ABORTED
    return may_pass(reason) and not ended


def retried(call: Callable[[], _T], seconds: float) -> _T:
    """The answer of ``call``, asked again for so long; then the last KafkaException."""
    return Retrying(
        retry=retry_if_exception(is_retriable),
        wait=wait_exponential(multiplier=0.05, max=1),
        stop=stop_after_delay(seconds),
        reraise=True,
    )(call)


def record_may_pass(error: KafkaError) -> bool:
    """Tell whether a record that was not delivered may be when its batch is repeated. The client
    has waited for its topic already, and only a start of the job makes one."""
    return may_pass(error) and kind_of(error) is not ErrorKind.UNKNOWN_TOPIC
