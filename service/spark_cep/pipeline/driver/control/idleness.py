"""Idleness: which partitions have nothing new, and whether the whole input has.

Pure bookkeeping with an injected clock; :mod:`spark_cep.pipeline.driver.observer` feeds it what
each batch read and asks it, between batches, for the control record to write (see
:class:`spark_cep.pipeline.wire.control.ControlRecord`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from spark_cep.pipeline.match.watermark import Policy
from spark_cep.pipeline.wire.control import ControlRecord, Partition


@dataclass
class IdlenessDetector:
    """Decides the control records of one run. Times are milliseconds; ``now`` never goes back.

    A partition is idle by what Kafka holds, not by what was read: while a batch runs, records may
    come that only the next one reads. So silence is known up to the start of the newest batch, or,
    when none has started since, up to ``unnoticed_ms`` ago: within that time a batch would have
    started for a record.
    """

    policy: Policy
    allowed_disorder_ms: int
    partition_idle_after_ms: int
    advance_when_idle_ms: int | None
    now: Callable[[], int]
    unnoticed_ms: int = 0
    _maxima: dict[Partition, int | None] = field(default_factory=dict, init=False)
    _read_at: dict[Partition, int] = field(default_factory=dict, init=False)
    _in_flight: bool = field(default=False, init=False)
    _batch_started: int | None = field(default=None, init=False)
    _lower_bound: int | None = field(default=None, init=False)
    _watermark: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._silence_known = self._last_read = self._done_at = self.now()

    def expect(self, partitions: Sequence[Partition]) -> ControlRecord:
        """The first record: ``partitions`` hold records and must be waited for."""
        for partition in partitions:
            self._maxima.setdefault(partition, None)
            self._read_at.setdefault(partition, self.now())
        return ControlRecord(tuple(partitions))

    def batch_started(self) -> None:
        """A batch runs: what it reads is not known yet, so nothing is idle."""
        self._in_flight = True
        self._batch_started = self.now()

    def batch_done(
        self,
        maxima: Iterable[tuple[Partition, int | None]],
        read: Iterable[Partition],
        watermark: int | None = None,
    ) -> None:
        """A batch ended: event time by partition as the key groups know it, what was read, and the
        watermark, if the batch told it."""
        self._watermark = watermark
        self._in_flight = False
        now = self._done_at = self.now()
        self._silence_known = now if self._batch_started is None else self._batch_started
        self._batch_started = None
        waited = dict(maxima)
        for partition, time in waited.items():
            self._maxima[partition] = time
            self._read_at.setdefault(partition, now)
        for partition in read:
            self._last_read = now
            if partition in waited:
                self._read_at[partition] = now
            else:
                # None of its records had a time yet, and the key groups do not wait for it.
                self._maxima.pop(partition, None)
                self._read_at.pop(partition, None)

    def control_record(self) -> ControlRecord | None:
        """The lower bound of the watermark that idleness justifies by now, if it is a new one."""
        bound = None if self._in_flight else self._justified()
        if bound is None or (self._lower_bound is not None and bound <= self._lower_bound):
            return None
        self._lower_bound = bound
        return ControlRecord((), bound)

    def late_until(self) -> int | None:
        """No event of the next batch that is later than this is late; ``None``: nobody knows."""
        if self._watermark is None:
            return None
        bound = self._lower_bound
        return self._watermark if bound is None else max(self._watermark, bound)

    def holding(self) -> dict[Partition, int | None]:
        """The partitions that hold the watermark back: of those that are waited for the ones that
        were not read yet, else those with the oldest newest event (ms). None of them where no
        partition is ahead of them."""
        if self.policy == "maximum":
            return {}
        waited = {
            partition: self._maxima.get(partition) for partition in self._active(self._silence())
        }
        times = [time for time in self._maxima.values() if time is not None]
        known = [time for time in waited.values() if time is not None]
        oldest = None if len(known) < len(waited) else min(known, default=None)
        if not times or oldest == max(times):
            return {}
        return {partition: time for partition, time in waited.items() if time == oldest}

    def _active(self, now: int) -> list[Partition]:
        """The partitions that are waited for."""
        return [
            partition
            for partition, read_at in self._read_at.items()
            if now - read_at < self.partition_idle_after_ms
        ]

    def _silence(self) -> int:
        """Up to when it is known of partitions without records that they had none."""
        noticed = self.now() - self.unnoticed_ms
        return noticed if noticed >= self._done_at else self._silence_known

    def _justified(self) -> int | None:
        now = self._silence()
        times = [time for time in self._maxima.values() if time is not None]
        if not times:
            return None
        silent = now - self._last_read
        if self.advance_when_idle_ms is not None and silent >= self.advance_when_idle_ms:
            return max(times) + silent - self.allowed_disorder_ms - 1
        if self.policy == "maximum":
            return None
        active = [self._maxima.get(partition) for partition in self._active(now)]
        if len(active) == len(self._maxima) or None in active:
            return None
        # With every partition idle, the furthest one says how far event time has come.
        chosen = min((time for time in active if time is not None), default=max(times))
        return chosen - self.allowed_disorder_ms - 1
