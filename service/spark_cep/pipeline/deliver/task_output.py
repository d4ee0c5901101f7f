"""The output of one task of the match stage: packets to Kafka, in one transaction.

The task that finds results writes them. It succeeds when the brokers have every record of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from time import perf_counter_ns

from spark_cep.pipeline.deliver.output import Delivery, WriteOutcome, WrittenBatch
from spark_cep.pipeline.librdkafka.messages import Messages
from spark_cep.pipeline.wire.packet_schemas import PacketKind
from spark_cep.pipeline.wire.packets import OutputRecords, ResultColumns
from spark_cep.pipeline.wire.reports import Count, Counts, ProcessMemory, Report


class TaskOutput:
    """The output of state partition ``partition`` in one batch. ``again``: the batch may have been
    written before. After an error only :meth:`abandon` may follow."""

    def __init__(
        self, delivery: Delivery, partition: int, batch: WrittenBatch, *, again: bool
    ) -> None:
        self._output = delivery.output(partition, batch, again)
        self._counts: Counts = Counter()
        self._busy = 0

    def written(self, packets: Iterable[tuple[int, bytes]]) -> list[bytes]:
        """Hand on the records of packets, given with their kinds, and return the reports among the
        packets. Raises OutputError when a record is refused, ValueError for a packet of another
        kind."""
        reports = []
        for kind, packet in packets:
            if kind == PacketKind.REPORT:
                reports.append(packet)
                continue
            began = perf_counter_ns()
            self._write(PacketKind(kind), packet)
            self._busy += perf_counter_ns() - began
        return reports

    def finished(self, processes: Iterable[ProcessMemory] = ()) -> bytes:
        """Commit the records, and return the report about them, with the memory of ``processes``.
        Raises OutputError when the brokers do not have them."""
        counts = self._counts
        began = perf_counter_ns()
        outcome = self._output.finish()
        self._busy += perf_counter_ns() - began
        if outcome is WriteOutcome.NOTHING:
            counts.clear()
        else:
            # Also when they were written before: the driver counts a batch once.
            counts[Count.TRANSACTIONS, outcome.value] += 1
        counts[Count.BUSY_US, "sink"] += self._busy // 1000
        return Report(counts, processes=tuple(processes)).encode()

    def abandon(self) -> None:
        """Undo what is not finished."""
        self._output.abandon()

    def _write(self, kind: PacketKind, packet: bytes) -> None:
        counts = self._counts
        match kind:
            case PacketKind.RECORDS:
                records = OutputRecords.decode(packet).records
                self._output.write(Messages.of_records(records))
                for topic, key, value, _ in records:
                    counts[Count.WRITTEN, topic] += 1
                    counts[Count.WRITTEN_BYTES, topic] += len(key or b"") + len(value or b"")
            case PacketKind.RESULTS:
                results = ResultColumns.decode(packet)
                self._output.write(Messages.of_results(results))
                counts[Count.WRITTEN, results.topic] += len(results.rule)
                counts[Count.WRITTEN_BYTES, results.topic] += results.size
            case _:
                raise ValueError(f"a packet of kind {kind.name} is not for a writer")
