"""Event time as the driver sets it while a query runs, in control records.

Batches report what they read on Spark's thread; the supervisor asks it on its own, between two
looks at the query.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from spark_cep.config import Settings
from spark_cep.errors import StartError
from spark_cep.observability.logs import logger
from spark_cep.pipeline.driver.checkpoint.clock_resets import ClockReset
from spark_cep.pipeline.driver.control.answers import last_answer
from spark_cep.pipeline.driver.control.control_file import ControlFile
from spark_cep.pipeline.driver.control.idleness import IdlenessDetector
from spark_cep.pipeline.driver.control.source_offset import Ends
from spark_cep.pipeline.driver.input.source import DriverFiles
from spark_cep.pipeline.driver.lifecycle.listening_clock import ListeningClock
from spark_cep.pipeline.driver.observe.event_time import event_time_text
from spark_cep.pipeline.driver.observe.progress import BatchReport
from spark_cep.pipeline.match.watermark import BEGINNING, END
from spark_cep.pipeline.wire.control import ControlRecord, Partition

_log = logger(__name__)

#: A batch for a record that comes is planned within the aim; so much later it has called us.
_NOTICED_AFTER_MS = 1_000


class TimeControl:
    """Idleness of one run, and the file from which its query reads control records. ``topics``:
    Kafka's ids of the topics that it reads, by name."""

    def __init__(
        self,
        settings: Settings,
        files: DriverFiles,
        run: str,
        topics: Mapping[str, str] | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._clock = ListeningClock(lambda: time.monotonic_ns() // 1_000_000)
        self._idleness = IdlenessDetector(
            settings.time.watermark,
            settings.time.allowed_disorder,
            settings.time.partition_idle_after,
            settings.time.advance_when_idle,
            self._clock,
            settings.trigger.latency + _NOTICED_AFTER_MS,
        )
        self._file = ControlFile(files.control, run, topics or {})
        self._answers = files.answers
        self._unwritable = False
        #: A reset of the clock waits for the first batch behind this one.
        self._reset_after: int | None = None

    def expect(self, partitions: Sequence[Partition]) -> None:
        """Write the run's first record: ``partitions`` hold records and must be waited for. Raises
        StartError when it cannot be written."""
        with self._lock:
            self._file.write(self._idleness.expect(partitions))

    def start_at(self, offsets: Ends) -> None:
        """The job begins at these offsets of the input. Raises StartError when that cannot be
        written."""
        with self._lock:
            self._file.start_at(offsets)

    def reset_clock(self, reset: ClockReset, planned: int) -> None:
        """Tell the newest reset of the clock in the checkpoint. Until it is done, by the first
        batch behind the one that is ``planned`` already, idleness says nothing: what it knows is of
        the clock before. Raises StartError when it cannot be written."""
        with self._lock:
            self._file.reset_clock(reset.number, reset.to)
            if reset.pending:
                self._reset_after = planned
        if reset.pending:
            _log.warning("clock_set_back", watermark=event_time_text(reset.to))

    def end_of_input(self) -> None:
        """Nothing more will come: time reaches its end. Raises StartError when that cannot be
        written."""
        with self._lock:
            self._file.write(ControlRecord((), END))

    def rules_changed(self, fingerprint: str) -> None:
        """There are other rules: a batch comes for them, also without events."""
        with self._lock, self._tried_again_later():
            self._file.rules(fingerprint)

    def query_started(self) -> None:
        """Nobody has listened since the last query ended."""
        with self._lock:
            self._clock.forget()

    def look(self) -> bool:
        """Take in what the running query has heard of Kafka, and write what idleness says by now.
        Returns whether it heard since the last look that no batch begins."""
        with self._lock:
            waits = self._heard()
            with self._tried_again_later():
                self._file.flush()
                self._write()
        return waits

    def holding(self) -> Mapping[Partition, int | None]:
        """The partitions that hold the watermark back, with the newest event time of each."""
        with self._lock:
            return self._idleness.holding()

    def batch_started(self) -> int | None:
        """A batch runs; the event time (ms) after which none of its events is late, if known."""
        with self._lock:
            self._idleness.batch_started()
            return self._idleness.late_until()

    def batch_done(self, report: BatchReport) -> None:
        """A batch ended. Batches may come back to back: between two of them is the only chance to
        write."""
        watermark = report.watermark if report.watermark > BEGINNING else None
        read = [(each.topic, each.partition) for each in report.partitions_read]
        with self._lock:
            self._file.begun()
            if self._reset_after is not None and report.batch > self._reset_after:
                self._reset_after = None
            self._heard()
            self._clock.batch_done(round(report.seconds * 1000))
            self._idleness.batch_done(report.maxima, read, watermark)
            with self._tried_again_later():
                self._write()

    @contextmanager
    def _tried_again_later(self) -> Iterator[None]:
        """A record that cannot be written now (no room, too many open files) is no reason to end
        the job: event time stands meanwhile, and each look tries again."""
        try:
            yield
        except StartError as error:
            if not self._unwritable:
                _log.warning("control_record_not_written", reason=str(error))
            self._unwritable = True
        else:
            self._unwritable = False

    def _heard(self) -> bool:
        answer = last_answer(self._answers)
        return answer is not None and self._clock.answered(answer.at) and answer.waits

    def _write(self) -> None:
        if self._reset_after is not None:
            return
        record = self._idleness.control_record()
        if record is not None:
            self._file.write(record)
