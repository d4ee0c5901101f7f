"""Idleness: which partitions have nothing new, and whether the whole input has.

Pure bookkeeping with an injected clock; :mod:`spark_cep.pipeline.driver.observer` feeds it what
each batch read and asks it, between batches, for the control record to write (see
:class:`spark_cep.pipeline.wire.control.ControlRecord`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from spark_cep.pipeline.match.watermark import Policy
from spark_cep.pipeline.wire.control import ControlRecord, Partition


class IdlenessDetector:
    """Decides the control records of one run. Times are milliseconds; ``now`` never goes back.

    A partition is idle by what Kafka holds, not by what was read: while a batch runs, records may
    come that only the next one reads. So silence is known up to the start of the newest batch, or,
    when none has started since, up to ``unnoticed_ms`` ago: within that time a batch would have
    started for a record.
    """

    def __init__(
        self,
        policy: Policy,
        allowed_disorder_ms: int,
        partition_idle_after_ms: int,
        advance_when_idle_ms: int | None,
        now: Callable[[], int],
        unnoticed_ms: int = 0,
    ) -> None:
        self._policy = policy
        self._disorder = allowed_disorder_ms
        self._partition_idle_after = partition_idle_after_ms
        self._advance_when_idle = advance_when_idle_ms
        self._now = now
        self._unnoticed = unnoticed_ms
        self._maxima: dict[Partition, int | None] = {}
        self._read_at: dict[Partition, int] = {}
        self._in_flight = False
        self._batch_started: int | None = None
        self._silence_known = self._last_read = self._done_at = now()
        self._lower_bound: int | None = None
        self._watermark: int | None = None

    def expect(self, partitions: Sequence[Partition]) -> ControlRecord:
        """The first record: ``partitions`` hold records and must be waited for."""
        for partition in partitions:
            self._maxima.setdefault(partition, None)
            self._read_at.setdefault(partition, self._now())
        return ControlRecord(tuple(partitions))

    def batch_started(self) -> None:
        """A batch runs: what it reads is not known yet, so nothing is idle."""
        self._in_flight = True
        self._batch_started = self._now()

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
        now = self._done_at = self._now()
        self._silence_known = now if self._batch_started is None else self._batch_started
        self._batch_started = None
        for partition, time in maxima:
            self._maxima[partition] = time
            self._read_at.setdefault(partition, now)
        for partition in read:
            # Records without a time say nothing of time, but the partition is not idle.
            self._maxima.setdefault(partition, None)
            self._read_at[partition] = now
            self._last_read = now

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

    def _silence(self) -> int:
        """Up to when it is known of partitions without records that they had none."""
        noticed = self._now() - self._unnoticed
        return noticed if noticed >= self._done_at else self._silence_known

    def _justified(self) -> int | None:
        now = self._silence()
        times = [time for time in self._maxima.values() if time is not None]
        if not times:
            return None
        silent = now - self._last_read
        if self._advance_when_idle is not None and silent >= self._advance_when_idle:
            return max(times) + silent - self._disorder - 1
        if self._policy == "maximum":
            return None
        active = [
            self._maxima.get(partition)
            for partition, read_at in self._read_at.items()
            if now - read_at < self._partition_idle_after
        ]
        if len(active) == len(self._maxima) or None in active:
            return None
        # With every partition idle, the furthest one says how far event time has come.
        chosen = min((time for time in active if time is not None), default=max(times))
        return chosen - self._disorder - 1
