"""Which errors of Kafka may pass, and how long it is asked again."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from spark_cep.kafka_errors import may_pass
from spark_cep.pipeline.deliver.kafka_retry import is_retriable, retried

UNAVAILABLE = KafkaException(KafkaError(KafkaError._TRANSPORT))
REFUSED = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))


class Answers:
    """Errors in turn, then an answer."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)

    def __call__(self) -> str:
        """The next."""
        if self._errors:
            raise self._errors.pop(0)
        return "answer"


def test_what_may_pass() -> None:
    """Brokers that are unavailable, or not ready; not what they refuse, nor errors of others."""
    assert is_retriable(UNAVAILABLE)
    assert is_retriable(KafkaException(KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE)))
    assert not is_retriable(REFUSED)
    assert not is_retriable(ValueError())


def test_a_transaction_that_must_be_undone() -> None:
    """The same call does not help, although the batch may be repeated."""
    undone = KafkaError(KafkaError._TIMED_OUT, "undone", False, False, True)
    for error in (undone, KafkaError(KafkaError.TRANSACTION_ABORTABLE)):
        assert not is_retriable(KafkaException(error))
        assert may_pass(error)


def test_asking_again() -> None:
    """Until there is an answer, a refusal, or no time left."""
    assert retried(Answers(UNAVAILABLE, UNAVAILABLE), 10) == "answer"
    with pytest.raises(KafkaException) as refused:
        retried(Answers(UNAVAILABLE, REFUSED, UNAVAILABLE), 10)
    assert refused.value is REFUSED
    with pytest.raises(KafkaException) as away:
        retried(Answers(UNAVAILABLE, UNAVAILABLE), 0)
    assert away.value is UNAVAILABLE
