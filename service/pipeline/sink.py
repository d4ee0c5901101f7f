"""Output packets to Kafka, and counts to the driver.

The write is a narrow step behind the matcher, so a partition's records leave from the task that
made them. A task succeeds when its delivery has finished: the brokers have every record of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from service.codecs.outputs import MATCH_ID_HEADER, OutputEncoder
from service.codecs.result_columns import EncodedResults
from service.packing import pack, unpack
from service.pipeline.memory import memory_of_task
from service.pipeline.output import Delivery, Output, Written
from service.pipeline.pack import Kind

REPORT_SQL_SCHEMA = "report BINARY"
_REPORT_SCHEMA = pa.schema([("report", pa.binary())])


@dataclass(frozen=True)
class PartitionWriter:
    """``mapInArrow`` function behind the matcher: writes records, passes reports on.

    ``first``: the batch is the first one since the query was started.
    """

    delivery: Delivery
    query: str
    batch: int
    first: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Output packets of one partition in, reports out."""
        task = TaskContext.get()
        assert task is not None
        again = self.first or task.attemptNumber() > 0
        output = self.delivery.output(task.partitionId(), self.query, self.batch, again)
        reports: list[bytes] = []
        written: Counter[str] = Counter()
        size: Counter[str] = Counter()
        busy = 0
        try:
            for batch in batches:
                began = perf_counter_ns()
                kinds, packets = batch.column(0).to_pylist(), batch.column(1).to_pylist()
                for kind, packet in zip(kinds, packets, strict=True):
                    if kind == Kind.COUNTS:
                        reports.append(packet)
                        continue
                    if kind == Kind.RESULTS:
                        topic, count, length = _write_results(output, packet)
                        written[topic] += count
                        size[topic] += length
                        continue
                    records = [
                        (topic, key, value, [(name, text) for name, text in headers])
                        for topic, key, value, headers in unpack(packet)
                    ]
                    output.write(records)
                    for topic, key, value, _ in records:
                        written[topic] += 1
                        size[topic] += len(key or b"") + len(value or b"")
                busy += perf_counter_ns() - began
            began = perf_counter_ns()
            result = output.finish()
            busy += perf_counter_ns() - began
        except BaseException:
            output.abandon()
            raise
        counts: list[list[Any]] = [["busy_us", "sink", busy // 1000]]
        if result is not Written.NOTHING:
            # Also when they were written before: the driver counts a batch once.
            counts.append(["transactions", result.value, 1])
            counts += [["written", topic, count] for topic, count in written.items()]
            counts += [["written_bytes", topic, count] for topic, count in size.items()]
        reports.append(pack({"counts": counts, "processes": [memory_of_task()]}))
        yield pa.RecordBatch.from_arrays([pa.array(reports, pa.binary())], schema=_REPORT_SCHEMA)


def packed_results(encoder: OutputEncoder, encoded: EncodedResults) -> bytes:
    """Results as a packet for the writer: what all share once, the rest in columns."""
    topic, headers = encoder.result_topic(encoded.kind), encoder.result_headers(encoded)
    return pack([topic, headers, encoded.rule, encoded.keys, encoded.ids, encoded.values])


def _write_results(output: Output, packet: bytes) -> tuple[str, int, int]:
    """Write a packet of results; returns their topic, how many they are, and the bytes of keys and
    values."""
    topic, headers, rules, keys, ids, values = unpack(packet)
    shared = [[(name, value) for name, value in each] for each in headers]
    # One at a time: lists of all of them keep Python's garbage collector busy.
    output.write(
        (topic, key, value, [*shared[rule], (MATCH_ID_HEADER, match_id)])
        for rule, key, match_id, value in zip(rules, keys, ids, values, strict=True)
    )
    size = sum(map(len, values)) + sum(len(key or b"") for key in keys)
    return topic, len(values), size
