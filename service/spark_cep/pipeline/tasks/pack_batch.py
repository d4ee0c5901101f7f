"""The decode stage as a task of Spark's: a task's records in, rows of packets out.

The first key group passes on dead letters and the task's report; every one is told how far event
time has come. Where each task has all records of a batch, it packs for the key groups of one state
partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import pyarrow as pa

from spark_cep.codecs.output.outputs import OutputEncoder
from spark_cep.pipeline.decode.pack import Packer
from spark_cep.pipeline.decode.packing import Packing
from spark_cep.pipeline.read.records import KafkaRecords
from spark_cep.pipeline.spark.memory import memory_of_task
from spark_cep.pipeline.spark.private_api import pickled, unpickled
from spark_cep.pipeline.tasks.batch_properties import properties_of_task
from spark_cep.pipeline.tasks.packet_rows import packet_rows
from spark_cep.pipeline.wire.packet_schemas import PacketKind
from spark_cep.pipeline.wire.packets import RecordPackets
from spark_cep.pipeline.wire.reports import LostRecords, ProcessMemory
from spark_cep.pipeline.wire.task_properties import TaskProperties
from spark_cep.rules.plans import plan_of

_MOST_PACKERS = 4


class PackBatch:
    """Packs with the rules that the task's batch has."""

    def __init__(self, packing: Packing, encoder: OutputEncoder) -> None:
        self._packing: bytes = pickled((packing, encoder))

    def __call__(
        self, records: Iterator[KafkaRecords | LostRecords], key_groups: range
    ) -> Iterator[pa.RecordBatch]:
        """One task: its records in, packets for some key groups out."""
        properties = properties_of_task()
        packer, encoder = _packer(self._packing, properties.rules)
        return rows_of_task(packer, encoder, records, properties, key_groups, memory_of_task())


def rows_of_task(
    packer: Packer,
    encoder: OutputEncoder,
    records: Iterable[KafkaRecords | LostRecords],
    properties: TaskProperties,
    key_groups: range,
    processes: Sequence[ProcessMemory] = (),
) -> Iterator[pa.RecordBatch]:
    """The rows of one task for some key groups. If these are a part, other tasks have the same
    records, and one of them tells of these."""
    tells = 0 in key_groups
    for packed, letters in packer.pack(records, properties):
        packets = [packet for packet in packed if packet[0] in key_groups]
        if packets:
            yield packet_rows(packets)
        for packet in RecordPackets.of(map(encoder.dead_letter, letters)) if tells else ():
            yield packet_rows([(0, PacketKind.RECORDS, packet)])
    if key_groups:
        # Also without records: each batch writes each key group.
        times = packer.times.encode()
        every = [(group, int(PacketKind.EVENT_TIMES), times) for group in key_groups]
        report = packer.report(processes, of_records=tells)
        yield packet_rows([*every, (key_groups[0], PacketKind.REPORT, report.encode())])


@lru_cache(maxsize=_MOST_PACKERS)
def _packer(packing: bytes, rules: str) -> tuple[Packer, OutputEncoder]:
    """A process has one task at a time, and a packer begins each of them afresh."""
    made: tuple[Packing, OutputEncoder] = unpickled(packing)
    return made[0].packer(plan_of(rules)), made[1]
