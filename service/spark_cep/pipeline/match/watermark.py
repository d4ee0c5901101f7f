"""The watermark, as a pure function of what was read.

Every key group is told, in each batch, the largest event time of each Kafka partition read, so
every group comes to the same watermark *in the batch itself*, and a replayed batch to the same as
before. An event is late when its time is at or before the watermark as it stood when its batch
began, the lower bound of the batch's own control record included. What the input alone cannot say
(idle partitions, an idle input) comes as a :class:`~spark_cep.pipeline.wire.control.ControlRecord`,
which Spark's offset log keeps with the batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from spark_cep.matcher.findings.partial import END_OF_TIME
from spark_cep.pipeline.wire.control import ControlRecord, Partition

Policy = Literal["partition_minimum", "maximum"]

#: Before every event time that can occur.
BEGINNING = -(1 << 62)

#: After every event time that can occur.
END = END_OF_TIME


@dataclass(slots=True)
class Clock:
    """Event time as one key group knows it. ``maxima``: largest event time read, by partition;
    ``None`` for a partition that holds records but was not read yet."""

    policy: Policy
    allowed_disorder_ms: int
    watermark: int = BEGINNING
    maxima: dict[Partition, int | None] = field(default_factory=dict)
    _reaches: int = BEGINNING
    _seen: int = BEGINNING

    def read(self, maxima: Iterable[tuple[str, int, int | None]]) -> None:
        """Take in largest event times ``(topic, partition, ms)`` of this batch; ``None`` where no
        record had one, which is not waited for any longer."""
        for topic, partition, time in maxima:
            before = self.maxima.get((topic, partition))
            if time is None and before is None:
                self.maxima.pop((topic, partition), None)
            elif before is None or (time is not None and time > before):
                self.maxima[topic, partition] = time

    def control(self, record: ControlRecord) -> None:
        """Take in what the driver says."""
        for partition in record.partitions:
            self.maxima.setdefault(partition, None)
        if record.lower_bound is not None:
            self.watermark = max(self.watermark, record.lower_bound)

    def set_back(self, to: int) -> int:
        """Go back to the watermark ``to``, as if no event had been read that is newer than one that
        moves it there; the time of that one."""
        newest = to + self.allowed_disorder_ms + 1
        self.watermark = to
        for partition, time in self.maxima.items():
            self.maxima[partition] = time if time is None else min(time, newest)
        self._seen = min(self._seen, newest)
        return newest

    def reach(self, watermark: int, newest: int) -> None:
        """Let this batch, whose newest event is of time ``newest``, end with ``watermark``, at
        least: for a clock of the caller's own, who has no partitions."""
        self._reaches = watermark
        self._seen = max(self._seen, newest)

    def advance(self) -> int:
        """Move the watermark to where everything read so far allows it to be."""
        self.watermark = max(self.watermark, self._reaches)
        times = list(self.maxima.values())
        if self.policy == "maximum":
            times = [time for time in times if time is not None]
        if times and None not in times:
            chosen = (max if self.policy == "maximum" else min)(t for t in times if t is not None)
            # Events of the same time as the newest may still come: late is at or before.
            self.watermark = max(self.watermark, chosen - self.allowed_disorder_ms - 1)
        return self.watermark

    @property
    def newest(self) -> int:
        """The newest event time that was read."""
        read = [time for time in self.maxima.values() if time is not None]
        read += [] if self._seen == BEGINNING else [self._seen]
        return max(read, default=self.watermark)

    def packed(self) -> list[Any]:
        """Plain values for the state."""
        maxima = [[t, p, time] for (t, p), time in self.maxima.items()]
        return [self.watermark, maxima, self._seen]

    def restore(self, packed: list[Any]) -> None:
        """Take over what :meth:`packed` gave."""
        self.watermark, maxima, self._seen = packed
        self.maxima = {(topic, partition): time for topic, partition, time in maxima}
