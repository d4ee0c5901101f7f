"""Output packets to Kafka, one producer per state partition, and counts to the driver.

The write is a narrow step behind the matcher, so a partition's records leave from the task that
made them. A task succeeds when the brokers have acknowledged every record of it.
"""

from __future__ import annotations

import atexit
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from service.errors import OutputError
from service.matcher.snapshot import pack, unpack
from service.pipeline.pack import Kind

REPORT_SQL_SCHEMA = "report BINARY"
_REPORT_SCHEMA = pa.schema([("report", pa.binary())])
_FLUSH_SECONDS = 120.0

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
class PartitionWriter:
    """``mapInArrow`` function behind the matcher: writes records, passes reports on."""

    producer_config: Mapping[str, Any]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Output packets of one partition in, reports out."""
        reports: list[bytes] = []
        written: Counter[str] = Counter()
        failures: list[str] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failures.append(f"{message.topic()}: {error.str()}")

        producer: Producer | None = None
        busy = 0
        for batch in batches:
            began = perf_counter_ns()
            kinds, packets = batch.column(0).to_pylist(), batch.column(1).to_pylist()
            for kind, packet in zip(kinds, packets, strict=True):
                if kind == Kind.COUNTS:
                    reports.append(packet)
                    continue
                producer = producer or _producer(self.producer_config)
                for topic, key, value, headers in unpack(packet):
                    _produce(producer, topic, key, value, headers, delivered)
                    written[topic] += 1
            busy += perf_counter_ns() - began
        if producer is not None:
            began = perf_counter_ns()
            left = producer.flush(_FLUSH_SECONDS)
            busy += perf_counter_ns() - began
            if left:
                failures.append(f"{left} records not acknowledged after {_FLUSH_SECONDS:.0f} s")
        if failures:
            raise OutputError(
                f"{len(failures)} output records could not be written; the first: {failures[0]}"
            )
        if written:
            counts: list[list[Any]] = [["busy_us", "write", busy // 1000]]
            counts += [["written", topic, count] for topic, count in written.items()]
            reports.append(pack({"counts": counts}))
        yield pa.RecordBatch.from_arrays([pa.array(reports, pa.binary())], schema=_REPORT_SCHEMA)


def _produce(
    producer: Producer, topic: str, key: Any, value: Any, headers: Any, delivered: Any
) -> None:
    while True:
        try:
            producer.produce(
                topic,
                value=value,
                key=key,
                headers=[(name, text) for name, text in headers],
                on_delivery=delivered,
            )
        except BufferError:
            producer.poll(0.5)
        except KafkaException as error:
            raise OutputError(f"a record for {topic} is refused: {error}") from error
        else:
            return
