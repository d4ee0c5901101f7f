"""Which failures of a query are Kafka's silence, by reports as Spark and the clients write them."""

from __future__ import annotations

import pytest

from spark_cep.pipeline.driver.checkpoint.failures import kafka_unavailable_in

_FAILED = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: "


@pytest.mark.parametrize(
    "text",
    [
        (
            "spark_cep.errors.KafkaUnavailableError: events, partition 0: the records from offset 5"
            " to 9 did not come within 20 s"
        ),
        "spark_cep.errors.KafkaUnavailableError: the transaction could not be committed",
        (
            "spark_cep.errors.KafkaUnavailableError: 3 output records could not be written; the"
            " first: 3 records not acknowledged after 120 s"
        ),
        (
            "spark_cep.errors.KafkaUnavailableError: 3 output records could not be written; the"
            " first: out: Local: Message timed out"
        ),
    ],
)
def test_kafka_does_not_answer(text: str) -> None:
    """The client's own words go into the message, on one line."""
    away = kafka_unavailable_in(f"{_FAILED}failed\n\tat org.apache.Spark\n{text}\n\tat more")
    assert away is not None
    assert str(away) == f"Kafka does not answer: {text}"


@pytest.mark.parametrize(
    "text",
    [
        "spark_cep.errors.StartError: events, partition 0: cannot be read: Authorization failed",
        "spark_cep.errors.StateError: the state was written with 3 key groups",
        (
            "spark_cep.errors.OutputError: 1 output records could not be written; the first:"
            " Broker: Message size too large"
        ),
        "java.util.concurrent.TimeoutException: Futures timed out after [5 seconds]",
    ],
)
def test_anything_else_is_not_waited_for(text: str) -> None:
    """It would go wrong again."""
    assert kafka_unavailable_in(f"{_FAILED}failed\n{text}\n\tat more") is None
