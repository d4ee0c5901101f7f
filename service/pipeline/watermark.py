"""The watermark, as a pure function of what was read.

Every key group is told, in each batch, the largest event time of each Kafka partition read, so
every group comes to the same watermark *in the batch itself*, and a replayed batch to the same as
before. An event is late when its time is at or before the watermark as it stood when its batch
began, the floor of the batch's own statement included. What the input alone cannot say (idle
partitions, an idle input) comes as a :class:`ClockStatement`, which Spark's offset log records
with the batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Policy = Literal["partition_minimum", "maximum"]
Partition = tuple[str, int]

#: Before every event time that can occur.
BEGINNING = -(1 << 62)

#: After every event time that can occur.
END = 1 << 62


@dataclass(frozen=True, slots=True)
class ClockStatement:
    """What the driver adds: the partitions that hold records and so hold the watermark back until
    they are read, a floor that the watermark has reached whatever the input says, and the
    fingerprints of the plans that are paused from this batch on (``None``: as before)."""

    partitions: tuple[Partition, ...] = ()
    floor: int | None = None
    paused: tuple[str, ...] | None = None

    def as_json(self) -> dict[str, Any]:
        """For the offset log."""
        paused = None if self.paused is None else list(self.paused)
        partitions = [list(p) for p in self.partitions]
        return {"partitions": partitions, "floor": self.floor, "paused": paused}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ClockStatement:
        """From the offset log."""
        paused = value.get("paused")
        return cls(
            tuple((t, int(p)) for t, p in value["partitions"]),
            value["floor"],
            None if paused is None else tuple(paused),
        )


@dataclass(slots=True)
class Clock:
    """Event time as one key group knows it. ``maxima``: largest event time read, by partition;
    ``None`` for a partition that holds records but was not read yet."""

    policy: Policy
    allowed_disorder_ms: int
    watermark: int = BEGINNING
    maxima: dict[Partition, int | None] = field(default_factory=dict)

    def read(self, maxima: Iterable[tuple[str, int, int | None]]) -> None:
        """Take in largest event times ``(topic, partition, ms)`` of this batch; ``None`` where no
        record had one, which is not waited for any longer."""
        for topic, partition, time in maxima:
            before = self.maxima.get((topic, partition))
            if time is None and before is None:
                self.maxima.pop((topic, partition), None)
            elif before is None or (time is not None and time > before):
                self.maxima[topic, partition] = time

    def state(self, statement: ClockStatement) -> None:
        """Take in what the driver says."""
        for partition in statement.partitions:
            self.maxima.setdefault(partition, None)
        if statement.floor is not None:
            self.watermark = max(self.watermark, statement.floor)

    def advance(self) -> int:
        """Move the watermark to where everything read so far allows it to be."""
        times = list(self.maxima.values())
        if self.policy == "maximum":
            times = [time for time in times if time is not None]
        if times and None not in times:
            chosen = (max if self.policy == "maximum" else min)(t for t in times if t is not None)
            # Events of the same time as the newest may still come: late is at or before.
            self.watermark = max(self.watermark, chosen - self.allowed_disorder_ms - 1)
        return self.watermark

    def packed(self) -> list[Any]:
        """Plain values for the state."""
        return [self.watermark, [[t, p, time] for (t, p), time in self.maxima.items()]]

    def restore(self, packed: list[Any]) -> None:
        """Take over what :meth:`packed` gave."""
        self.watermark, maxima = packed
        self.maxima = {(topic, partition): time for topic, partition, time in maxima}
