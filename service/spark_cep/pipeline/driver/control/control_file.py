"""The file by which the driver tells its query the time, its rules, and where it begins.

The source of the input offers what is new in it as a new offset
(:class:`~spark_cep.pipeline.driver.control.source_offset.SourceOffset`), so Spark runs a batch for
it also when Kafka is silent. The keys are in checkpoints, so they keep their names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from spark_cep.pipeline.driver.control.source_offset import (
    Ends,
    SourceOffset,
    by_partition,
    nested,
)
from spark_cep.pipeline.driver.control.written_files import write_for_query
from spark_cep.pipeline.match.watermark import END
from spark_cep.pipeline.wire.control import ControlRecord

_CLOCK: Final = "clock"
_RUN: Final = "run"
_RULES: Final = "rules"
_START: Final = "start"
_TOPICS: Final = "topics"
_RESET: Final = "reset"


class ControlFile:
    """The file that the driver writes for the source. ``run`` makes the first record of each run of
    the service a new offset, so that a batch runs at start and tells the driver the state of the
    clock. ``topics``: Kafka's ids of the topics that the run reads, by name; they stay in the
    offset log for the next start."""

    def __init__(self, file: Path, run: str, topics: Mapping[str, str]) -> None:
        self._file = file
        self._run = run
        self._topics = dict(topics)
        self._start: Ends | None = None
        self._lower_bound: int | None = None
        self._record = ControlRecord(())
        self._rules: str | None = None
        self._reset: dict[str, int] | None = None
        self._unwritten: str | None = None

    def start_at(self, offsets: Ends) -> None:
        """The job begins at these offsets of the input: they are told until :meth:`begun`, so that
        they are in the offset log of its first batch. Raises as :meth:`write`."""
        self._start = offsets
        self._write(self._record)

    def reset_clock(self, number: int, to: int) -> None:
        """The newest reset of the clock in the checkpoint. It is told from now on, and done by the
        first batch that is told another one than the batch before. Raises as :meth:`write`."""
        self._reset = {"number": number, "to": to}
        self._write(self._record)

    def begun(self) -> None:
        """The first batch is done."""
        self._start = None

    def rules(self, fingerprint: str) -> None:
        """There are other rules for the next batch: a new record, so that it comes at once. Raises
        as :meth:`write`."""
        self._rules = fingerprint
        # The batch before has read the partitions; its lower bound may still wait to be read.
        self._write(ControlRecord((), self._lower_bound))

    def write(self, record: ControlRecord) -> None:
        """Replace the record. Raises StartError when the file cannot be written;
        :meth:`flush` tries again."""
        self._lower_bound = record.lower_bound
        self._record = record
        self._write(record)

    def _write(self, record: ControlRecord) -> None:
        content: dict[str, Any] = {
            _CLOCK: record.as_json(),
            _RUN: self._run,
            _TOPICS: self._topics,
        }
        if self._rules is not None:
            content[_RULES] = self._rules
        if self._reset is not None:
            content[_RESET] = self._reset
        if self._start is not None:
            content[_START] = nested(self._start)
        self._unwritten = json.dumps(content, sort_keys=True)
        self.flush()

    def flush(self) -> None:
        """Write the newest record, if it could not be written yet. Raises as :meth:`write`."""
        if self._unwritten is None:
            return
        write_for_query(self._file, self._unwritten, "what time it is")
        self._unwritten = None


def newest(file: Path) -> dict[str, Any]:
    """The content of the file; none while it is not there."""
    found: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    return found


def time_ends(content: Mapping[str, Any]) -> bool:
    """Return whether the file's content tells that the input has ended, and time with it."""
    return _CLOCK in content and ControlRecord.from_json(content[_CLOCK]).lower_bound == END


def record_between(start: SourceOffset, end: SourceOffset) -> ControlRecord | None:
    """The control record of a batch; ``None`` for one that is told nothing new."""
    if end.control == start.control:
        return None
    record = ControlRecord.from_json(end.control[_CLOCK])
    reset = end.control.get(_RESET)
    if reset is None or reset == start.control.get(_RESET):
        return record
    return replace(record, reset_to=reset["to"])


def start_of(offset: SourceOffset) -> Ends | None:
    """The offsets at which the job begins, if this offset is that of its first batch."""
    start = offset.control.get(_START)
    return None if start is None else by_partition(start)


def reset_of(offset: SourceOffset) -> int:
    """The number of the newest reset of the clock that a batch up to this one was told; 0: none."""
    number: int = offset.control.get(_RESET, {"number": 0})["number"]
    return number


def topics_of(offset: SourceOffset) -> dict[str, str]:
    """Kafka's ids of the topics that were read, by name, as far as they are known."""
    found: dict[str, str] = offset.control.get(_TOPICS, {})
    return found
