"""Output packets to Kafka, and reports to the driver.

The write is a narrow step behind the matcher, so a partition's records leave from the task that
made them. A task succeeds when its delivery has finished: the brokers have every record of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from time import perf_counter_ns

import pyarrow as pa
from pyspark import TaskContext

from spark_cep.pipeline.deliver.output import Delivery, Output, WriteOutcome, WrittenBatch
from spark_cep.pipeline.librdkafka.messages import Messages
from spark_cep.pipeline.spark.memory import memory_of_task
from spark_cep.pipeline.wire.fragments import whole
from spark_cep.pipeline.wire.packets import OutputRecords, PacketKind, ResultColumns
from spark_cep.pipeline.wire.reports import Count, Counts, Report

REPORT_SCHEMA = pa.schema([("report", pa.binary())])


@dataclass(frozen=True)
class PartitionWriter:
    """``mapInArrow`` function behind the matcher: writes records, passes reports on.

    ``offsets``: the batch's digest. ``first``: it is the first one since the query was started.
    """

    delivery: Delivery
    batch: WrittenBatch
    first: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Output packets of one partition in, reports out."""
        task = TaskContext.get()
        assert task is not None
        again = self.first or task.attemptNumber() > 0
        output = self.delivery.output(task.partitionId(), self.batch, again)
        reports: list[bytes] = []
        counts: Counts = Counter()
        busy = 0
        try:
            for kind, packet in whole(_rows(batches)):
                began = perf_counter_ns()
                if kind == PacketKind.REPORT:
                    reports.append(packet)
                else:
                    _write(output, PacketKind(kind), packet, counts)
                busy += perf_counter_ns() - began
            began = perf_counter_ns()
            result = output.finish()
            busy += perf_counter_ns() - began
        except BaseException:
            output.abandon()
            raise
        if result is WriteOutcome.NOTHING:
            counts.clear()
        else:
            # Also when they were written before: the driver counts a batch once.
            counts[Count.TRANSACTIONS, result.value] += 1
        counts[Count.BUSY_US, "sink"] += busy // 1000
        reports.append(Report(counts, processes=tuple(memory_of_task())).encode())
        yield pa.RecordBatch.from_arrays([pa.array(reports, pa.binary())], schema=REPORT_SCHEMA)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    for batch in batches:
        yield from zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)


def _write(output: Output, kind: PacketKind, packet: bytes, counts: Counts) -> None:
    """Write a packet of records, and count them. Raises ValueError for a packet of another kind."""
    match kind:
        case PacketKind.RECORDS:
            records = OutputRecords.decode(packet).records
            output.write(Messages.of_records(records))
            size: Counter[str] = Counter()
            for topic, key, value, _ in records:
                size[topic] += len(key or b"") + len(value or b"")
            for topic, number in Counter(record[0] for record in records).items():
                counts[Count.WRITTEN, topic] += number
                counts[Count.WRITTEN_BYTES, topic] += size[topic]
        case PacketKind.RESULTS:
            results = ResultColumns.decode(packet)
            output.write(Messages.of_results(results))
            counts[Count.WRITTEN, results.topic] += len(results.rule)
            counts[Count.WRITTEN_BYTES, results.topic] += results.size
        case _:
            raise ValueError(f"a packet of kind {kind.name} is not for a writer")
