"""What becomes of each error of Kafka when records are delivered without transactions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError
from spark_cep.errors import KafkaAwayError, OutputError, SparkCepError
from spark_cep.kafka_errors import KINDS, ErrorKind
from spark_cep.pipeline.deliver import at_least_once
from spark_cep.pipeline.deliver.at_least_once import AtLeastOnce
from spark_cep.pipeline.deliver.output import Batch, Written
from spark_cep.pipeline.librdkafka.messages import Messages

CONFIG = {"bootstrap.servers": "localhost:9"}
REFUSED = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
WAITED = (ErrorKind.RETRIABLE, ErrorKind.UNREACHABLE, ErrorKind.ABORTED)


def deliver(monkeypatch: pytest.MonkeyPatch, *errors: KafkaError, left: int = 0) -> Written:
    """A task of which records fail so, and are ``left``."""
    kept = at_least_once._kept(CONFIG)

    def flush(_seconds: float) -> int:
        for error in errors:
            kept._failed("out", error)
        return left

    fake: Any = SimpleNamespace(produce=lambda _: None, flush=flush)
    monkeypatch.setattr(kept, "producer", fake)
    output = AtLeastOnce(CONFIG).output(0, Batch("q", 0, "", ""), False)
    output.write(Messages.of_records([]))
    return output.finish()


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind != ErrorKind.NOTICE])
def test_a_record_that_is_not_delivered(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch is repeated where that may help: not where the topic is missing, for which the
    client has waited already, and which the start of the job makes."""
    error = KafkaError(getattr(KafkaError, name))
    kind: type[SparkCepError] = KafkaAwayError if KINDS[name] in WAITED else OutputError
    with pytest.raises(SparkCepError, match=r"^1 output records .*the first: out: ") as told:
        deliver(monkeypatch, error)
    assert type(told.value) is kind


def test_a_refusal_is_told_before_what_may_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """A repeated batch would be refused as well. The next task begins anew."""
    away = KafkaError(KafkaError._MSG_TIMED_OUT)
    with pytest.raises(OutputError, match=r"^3 output records .*: out: .*authorization failed"):
        deliver(monkeypatch, away, REFUSED, left=7)
    with pytest.raises(KafkaAwayError, match="the first: 7 records not acknowledged after 60 s"):
        deliver(monkeypatch, left=7)
    assert deliver(monkeypatch) is Written.COMMITTED
