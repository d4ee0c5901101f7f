"""Recorded events as batches: partitions read side by side by event time, with a watermark.

A job that reads a backlog takes from all partitions and lets the slowest one hold the watermark
back. Here files and partitions are merged the same way: the next records come from the one whose
event time is least, and a file that has not begun holds the watermark back by its first event. One
that has ended does not. So events are late only where they are out of order inside of a file, or
partition, by more than is allowed, and no more than a few batches wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from spark_cep.codecs.record_reader import RecordFormat
from spark_cep.columns.compilation import I64
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.model import DeadLetter
from spark_cep.pipeline.decode.decoder import Decoder
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions, decoder_for
from spark_cep.pipeline.decode.packing import Packing
from spark_cep.pipeline.decode.tallies import NO_TIME
from spark_cep.pipeline.match.watermark import BEGINNING, END
from spark_cep.pipeline.read.records import KafkaRecords
from spark_cep.pipeline.wire.new_schemas import NewSchemasError, schemas_in
from spark_cep.recorded.recording import Chunk, Recording
from spark_cep.runner.batch import Batch, RunSettings

#: Records of a batch, and bytes of them, about. The state of all keys is read and written for each.
_ROWS = 200_000
_BYTES = 64 << 20
#: Where the watermark goes at the end: behind the last event, or, so that everything is decided,
#: behind all deadlines.
AtEnd = Literal["wait", "decide"]


@dataclass(frozen=True)
class Window:
    """The event times that are read, in ms: ``start`` and what follows, to before ``end``."""

    start: int = BEGINNING
    end: int = END

    @property
    def is_all(self) -> bool:
        """Return whether it leaves nothing out."""
        return (self.start, self.end) == (BEGINNING, END)


class RecordedBatch(NamedTuple):
    """A batch for a runner. ``letters``: dead letters of records that the runner is not given;
    ``records``: how many records it has, those included; ``read``: bytes of all recordings that
    have been read by now, about."""

    batch: Batch
    letters: list[DeadLetter]
    records: int
    read: int


@dataclass
class RecordedEvents:
    """Events of recordings, of the record types of ``format``. ``notes``: what was found out of
    them and not said, for people."""

    format: RecordFormat
    recordings: Sequence[Recording]
    notes: tuple[str, ...] = ()
    window: Window = field(default_factory=Window)
    _times: Decoder | None = field(default=None, init=False)

    @property
    def size(self) -> int:
        """Bytes of all recordings."""
        return sum(each.size for each in self.recordings)

    def inputs(self, key_groups: int) -> Packing:
        """The record types, as a runner takes them."""
        return Packing(self.format, DecodeOptions(key_groups, None, keep_all=False))

    def snapshot(self) -> RecordedEvents:
        """A copy for another process, which learns no schemas."""
        return replace(self, format=self.format.snapshot())

    def within(self, window: Window) -> RecordedEvents:
        """The events of these times."""
        return replace(self, window=window)

    def learn(self, error: NewSchemasError) -> None:
        """Learn the schemas without which a runner could not read a batch. Raises RegistryError."""
        self.format.learn(schemas_in(str(error)))
        self._times = None

    def event_times(self, records: KafkaRecords) -> I64:
        """The event times of records in ms; ``NO_TIME`` of those that have none."""
        if self._times is None:
            options = DecodeOptions(1, None, keep_all=False)
            self._times = decoder_for(compile_rules(()), self.format, options)
        return self._times.event_times(records)

    def batches(self, settings: RunSettings, at_end: AtEnd = "wait") -> Iterator[RecordedBatch]:
        """All events, in batches with the watermark that the settings give.

        Raises ConfigurationError where a recording cannot be read.
        """
        merge = _Merge(self, settings)
        while merge.unfinished:
            yield merge.batch()
        yield merge.last(at_end)


class _Lane:
    """One recording that is read. ``reached``: its newest event time by now, or the least one that
    it begins with."""

    def __init__(self, recording: Recording, times: Callable[[KafkaRecords], I64]) -> None:
        self._recording = recording
        self._chunks: Iterator[Chunk] | None = None
        self._times = times
        self.read = 0
        self.reached = BEGINNING
        self.finished = False
        for chunk in recording.chunks():
            if chunk.records is None:
                continue
            known = times(chunk.records)
            known = known[known != NO_TIME]
            if len(known):
                # Read again when it is this one's turn: there may be many.
                self.reached = int(known.min())
                break

    def next(self) -> tuple[Chunk, I64] | None:
        """The next records and their times; ``None`` at the end."""
        if self._chunks is None:
            self._chunks = self._recording.chunks()
        chunk = next(self._chunks, None)
        if chunk is None:
            self.finished = True
            self.read = self._recording.size
            return None
        self.read = chunk.read
        if chunk.records is None:
            return chunk, np.zeros(0, np.int64)
        times = self._times(chunk.records)
        self.reached = max(self.reached, int(times.max()))
        return chunk, times


class _Merge:
    def __init__(self, events: RecordedEvents, settings: RunSettings) -> None:
        self._lanes = [_Lane(each, events.event_times) for each in events.recordings]
        self._window = events.window
        self._settings = settings
        self._watermark = BEGINNING
        self._newest = BEGINNING

    @property
    def unfinished(self) -> list[_Lane]:
        """Those that have more."""
        return [lane for lane in self._lanes if not lane.finished]

    def batch(self) -> RecordedBatch:
        """The next batch."""
        several: list[KafkaRecords] = []
        letters: list[DeadLetter] = []
        rows = size = 0
        while rows < _ROWS and size < _BYTES and (lanes := self.unfinished):
            found = min(lanes, key=lambda lane: lane.reached).next()
            if found is None:
                continue
            chunk, times = found
            letters += chunk.letters
            rows += len(chunk.letters)
            if chunk.records is None:
                continue
            records, times = self._within(chunk.records, times)
            if len(records):
                several.append(records)
                rows += len(records)
                size += int(records.sizes.sum())
                self._newest = max(self._newest, int(times.max()))
        batch = Batch(several, watermark=self._moved())
        return RecordedBatch(batch, letters, rows, sum(lane.read for lane in self._lanes))

    def last(self, at_end: AtEnd) -> RecordedBatch:
        """The batch behind all others, without records."""
        watermark = END if at_end == "decide" else max(self._watermark, self._newest)
        batch = Batch((), watermark=watermark)
        return RecordedBatch(batch, [], 0, sum(lane.read for lane in self._lanes))

    def _within(self, records: KafkaRecords, times: I64) -> tuple[KafkaRecords, I64]:
        """The records of the window, and those without a time, and their times."""
        window = self._window
        if window.is_all:
            return records, times
        inside = (times == NO_TIME) | ((times >= window.start) & (times < window.end))
        rows = np.flatnonzero(inside)
        return records.take(rows), times[rows]

    def _moved(self) -> int:
        lanes = self.unfinished
        policy = max if self._settings.watermark == "maximum" else min
        reached = policy((lane.reached for lane in lanes), default=BEGINNING)
        if reached > BEGINNING:
            moved = reached - self._settings.allowed_disorder_ms - 1
            self._watermark = max(self._watermark, moved)
        return self._watermark
