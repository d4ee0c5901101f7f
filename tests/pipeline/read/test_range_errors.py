"""What becomes of each error of Kafka when a range is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from confluent_kafka import KafkaError

from spark_cep.errors import SparkCepError, StartError, StateError
from spark_cep.kafka_errors import KINDS, ErrorKind
from spark_cep.pipeline.read import ranges
from spark_cep.pipeline.read.loops import message_loops
from spark_cep.pipeline.read.record_range import Range


@pytest.mark.parametrize("name", KINDS)
def test_an_error_ends_the_task_or_is_waited_for(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client goes on asking by itself: what may pass is waited for as long as records may take.
    Records that are gone, and what is refused, are told."""
    client: Any = None
    reading = ranges._Reading(Range("t", 0, 5, 9), client)
    message = np.full(message_loops.OFFSET + 8, 7, np.int8)
    monkeypatch.setattr(ranges, "error_of", lambda _: KafkaError(getattr(KafkaError, name)))
    monkeypatch.setattr(message_loops, "destroy", lambda *_: None)
    reading._errors[0] = message.ctypes.data
    expected: dict[ErrorKind, type[SparkCepError] | None] = {
        ErrorKind.DELETED: StateError,
        **dict.fromkeys(
            (ErrorKind.LOGIN, ErrorKind.TLS, ErrorKind.FENCED, ErrorKind.REFUSED, ErrorKind.FATAL),
            StartError,
        ),
    }
    kind = expected.get(KINDS[name])
    if kind is None:
        reading._judge(1)
    else:
        with pytest.raises(kind, match=r"^t, partition 0: ") as told:
            reading._judge(1)
        assert type(told.value) is kind
