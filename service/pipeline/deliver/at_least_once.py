"""Delivery without transactions: a batch that is run again is written again."""

from __future__ import annotations

import atexit
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from service.errors import OutputError
from service.pipeline.deliver.output import Batch, Written, produce
from service.pipeline.wire.packets import Record

_FLUSH_SECONDS = 60.0

_producers: dict[str, Producer] = {}


def _producer(config: Mapping[str, Any]) -> Producer:
    """The producer of this Python worker; workers are reused from batch to batch."""
    name = json.dumps(config, sort_keys=True, default=str)
    if name not in _producers:
        if not _producers:
            atexit.register(_close)
        _producers[name] = Producer(dict(config))
    return _producers[name]


def _close() -> None:
    for producer in _producers.values():
        producer.flush(5.0)


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
        self._producer: Producer | None = None
        self._failures: list[str] = []

    def write(self, records: Iterable[Record]) -> None:
        """Hand records on."""
        if self._producer is None:
            self._producer = _producer(self._config)
        produce(self._producer, records, self._delivered)

    def finish(self) -> Written:
        """Wait for the acknowledgements."""
        if self._producer is None:
            return Written.NOTHING
        left = self._producer.flush(_FLUSH_SECONDS)
        if left:
            self._failures.append(f"{left} records not acknowledged after {_FLUSH_SECONDS:.0f} s")
        if self._failures:
            raise OutputError(
                f"{len(self._failures)} output records could not be written; the first:"
                f" {self._failures[0]}"
            )
        return Written.COMMITTED

    def abandon(self) -> None:
        """Nothing can be taken back."""

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failures.append(f"{message.topic()}: {error.str()}")
