"""Delivery without transactions: a batch that is run again is written again."""

from __future__ import annotations

import atexit
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError

from spark_cep.errors import KafkaAwayError, OutputError
from spark_cep.pipeline.deliver.kafka_retry import record_may_pass
from spark_cep.pipeline.deliver.output import Batch, Written
from spark_cep.pipeline.librdkafka.messages import Messages
from spark_cep.pipeline.librdkafka.producer import Producer

_FLUSH_SECONDS = 60.0

_producers: dict[str, _Kept] = {}


class _Kept:
    """A producer of this Python worker; workers are reused from batch to batch. A worker has one
    task at a time."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.failures: list[str] = []
        #: Failures that would come again.
        self.refusals: list[str] = []
        self.producer = Producer(config, self._failed)

    def _failed(self, topic: str, error: KafkaError) -> None:
        told = self.failures if record_may_pass(error) else self.refusals
        told.append(f"{topic}: {error.str()}")


def _kept(config: Mapping[str, Any]) -> _Kept:
    name = json.dumps(config, sort_keys=True, default=str)
    if name not in _producers:
        if not _producers:
            atexit.register(_close)
        _producers[name] = _Kept(config)
    return _producers[name]


def _close() -> None:
    for each in _producers.values():
        each.producer.flush(5.0)


@dataclass(frozen=True)
class AtLeastOnce:
    """``outputs.delivery: at_least_once``."""

    producer_config: Mapping[str, Any]

    def output(self, partition: int, batch: Batch, first: bool) -> AtLeastOnceOutput:  # noqa: ARG002
        """The output of one task; which one makes no difference."""
        return AtLeastOnceOutput(self.producer_config)


class AtLeastOnceOutput:
    """Records are acknowledged one by one."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._kept: _Kept | None = None

    def write(self, messages: Messages) -> None:
        """Hand records on."""
        if self._kept is None:
            self._kept = _kept(self._config)
            self._kept.failures.clear()
            self._kept.refusals.clear()
        self._kept.producer.produce(messages)

    def finish(self) -> Written:
        """Wait for the acknowledgements."""
        if self._kept is None:
            return Written.NOTHING
        left = self._kept.producer.flush(_FLUSH_SECONDS)
        if left:
            self._kept.failures.append(
                f"{left} records not acknowledged after {_FLUSH_SECONDS:.0f} s"
            )
        refusals = self._kept.refusals
        failures = refusals + self._kept.failures
        if failures:
            kind = OutputError if refusals else KafkaAwayError
            raise kind(
                f"{len(failures)} output records could not be written; the first: {failures[0]}"
            )
        return Written.COMMITTED

    def abandon(self) -> None:
        """Nothing can be taken back."""
