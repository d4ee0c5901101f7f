"""The packets that one batch brings to a key group."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from spark_cep.pipeline.match.spool import Spool
from spark_cep.pipeline.wire.control import ControlRecord
from spark_cep.pipeline.wire.event_packets import rows_of
from spark_cep.pipeline.wire.packet_schemas import PacketKind
from spark_cep.pipeline.wire.packets import EventTimes, Unkeyed, UnkeyedEvents


def _events() -> Spool[tuple[int, pa.RecordBatch]]:
    return Spool(lambda number, packet: [(number, rows_of(packet))], views=True)


def _unkeyed() -> Spool[Unkeyed]:
    return Spool(lambda _, packet: UnkeyedEvents.decode(packet).events)


@dataclass
class BatchInput:
    """One batch of a key group: events by partitioning, events without key, and news of time."""

    events: Spool[tuple[int, pa.RecordBatch]] = field(default_factory=_events)
    unkeyed: Spool[Unkeyed] = field(default_factory=_unkeyed)
    times: list[EventTimes] = field(default_factory=list)
    control: ControlRecord = field(default_factory=ControlRecord)

    def take(self, kind: int, packet: bytes) -> bool:
        """Take in one of the group's packets; False for what is not its own, but goes on to writers
        and driver."""
        if kind >= PacketKind.EVENTS:
            self.events.add(kind - PacketKind.EVENTS, packet)
            return True
        match PacketKind(kind):
            case PacketKind.EVENT_TIMES:
                self.times.append(EventTimes.decode(packet))
            case PacketKind.CONTROL:
                self.control = ControlRecord.decode(packet)
            case PacketKind.UNKEYED:
                self.unkeyed.add(0, packet)
            case _:
                return False
        return True

    def close(self) -> None:
        """Let go of all packets."""
        self.events.close()
        self.unkeyed.close()
