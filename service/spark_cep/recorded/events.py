"""Recorded events as batches: partitions read side by side by event time, with a watermark
(:mod:`~spark_cep.recorded.merging`)."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from spark_cep.codecs.record_reader import RecordFormat
from spark_cep.columns.compilation import I64
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.model import Coordinates, DeadLetter
from spark_cep.pipeline.decode.decoder import Decoder
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions, decoder_for
from spark_cep.pipeline.decode.packing import Packing
from spark_cep.pipeline.decode.tallies import NO_TIME
from spark_cep.pipeline.match.watermark import BEGINNING, END
from spark_cep.pipeline.read.records import KafkaRecords
from spark_cep.pipeline.wire.new_schemas import NewSchemasError, schemas_in
from spark_cep.recorded.merging import AtEnd, Piece, PieceQueue, RunOfRecords, merged
from spark_cep.recorded.recording import Chunk, Recording
from spark_cep.runner.batch import Batch, RunSettings

#: Bytes of first records that wait for their turn, and files that are kept open for theirs.
_BYTES_WAITING = 64 << 20
_MOST_OPEN = 64
#: Places at which records that are read together are cut, since what follows is late.
_MOST_CUTS = 8


class Window(NamedTuple):
    """The event times that are read, in ms: ``start`` and what follows, to before ``end``."""

    start: int = BEGINNING
    end: int = END

    @property
    def is_all(self) -> bool:
        """Return whether it leaves nothing out."""
        return (self.start, self.end) == (BEGINNING, END)


class WantedRecords(NamedTuple):
    """The wanted records of a piece, ``None`` without any, and dead letters for those that cannot
    be handed on."""

    records: KafkaRecords | None
    letters: list[DeadLetter]


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

    def around(self, at: Coordinates) -> RecordedEvents:
        """Few of the events: the one at these coordinates is among them, if it is there."""
        found = [each.around(at) for each in self.recordings]
        return replace(self, recordings=[*filter(None, found)])

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
        for each in merged(self._queues(settings), settings, at_end):
            records = [p.content.records for p in each.pieces if p.content.records is not None]
            letters = [letter for piece in each.pieces for letter in piece.content.letters]
            batch = Batch(records, watermark=each.watermark)
            yield RecordedBatch(batch, letters, each.rows, each.read)

    def pieces(
        self, recording: Recording, settings: RunSettings
    ) -> Generator[Piece[WantedRecords]]:
        """The records of one recording, some at a time."""
        for chunk in recording.chunks():
            yield from self._pieces(chunk, settings.allowed_disorder_ms)

    def _pieces(self, chunk: Chunk, allowed_disorder_ms: int) -> Iterator[Piece[WantedRecords]]:
        """The records of a chunk, cut in front of those that are late by others in it."""
        letters, records = chunk.letters, chunk.records
        offset = min((each.at.offset for each in letters), default=END)
        if records is None:
            facts = RunOfRecords(offset, len(letters), 0, None, None, None, chunk.read)
            yield Piece(facts, WantedRecords(None, letters))
            return
        times = self.event_times(records)
        cuts = _late_from(times, allowed_disorder_ms)
        for start, end in pairwise([0, *cuts, len(records)]):
            some, of_some = records, times
            if cuts:
                some, of_some = records.between(start, end), times[start:end]
            offset = min(offset, int(some.offset[0]))
            yield self._piece(offset, some, of_some, letters, chunk.read)
            letters, offset = [], END

    def _piece(
        self, offset: int, records: KafkaRecords, times: I64, letters: list[DeadLetter], read: int
    ) -> Piece[WantedRecords]:
        least, newest = _bounds(times)
        if not self.window.is_all:
            start, end = self.window
            inside = np.flatnonzero((times == NO_TIME) | ((times >= start) & (times < end)))
            records, times = records.take(inside), times[inside]
        rows, size = len(letters) + len(records), int(records.sizes.sum())
        facts = RunOfRecords(offset, rows, size, least, newest, _bounds(times)[1], read)
        return Piece(facts, WantedRecords(records if len(records) else None, letters))

    def _queues(self, settings: RunSettings) -> list[PieceQueue[WantedRecords]]:
        """The recordings, each with the least time that it begins with, which its first records
        have: they are kept until it is their turn, or read again where they are many."""
        queues = []
        waiting = still_open = 0
        for each in self.recordings:
            pieces = self.pieces(each, settings)
            begun = next(pieces, None)
            if begun is None:
                queues.append(PieceQueue(pieces, each.size))
                continue
            records = begun.content.records
            size = 0 if records is None else len(records.value.data)
            if still_open < _MOST_OPEN and waiting + size <= _BYTES_WAITING:
                waiting += size
                rest: Iterator[Piece[WantedRecords]] = pieces
                if begun.facts.read >= each.size:
                    # Nothing more is in it, and so it is closed.
                    rest = iter([*pieces])
                else:
                    still_open += 1
                queues.append(PieceQueue(chain([begun], rest), each.size, begun.facts.least))
            else:
                pieces.close()
                queues.append(PieceQueue(self.pieces(each, settings), each.size, begun.facts.least))
        return queues


def _bounds(times: I64) -> tuple[int | None, int | None]:
    """The least and the newest of the times that there are."""
    known = times[times != NO_TIME]
    return (int(known.min()), int(known.max())) if len(known) else (None, None)


def _late_from(times: I64, allowed_disorder_ms: int) -> list[int]:
    """The first places of records that are behind earlier ones by more than is allowed, and were
    not behind those in front of the last place."""
    newest = np.maximum.accumulate(times)
    behind = np.flatnonzero(
        (times[1:] < newest[:-1] - allowed_disorder_ms) & (times[1:] != NO_TIME)
    ) + 1  # fmt: skip
    places: list[int] = []
    while len(behind) and len(places) < _MOST_CUTS:
        places.append(int(behind[0]))
        behind = behind[times[behind] >= newest[behind[0] - 1] - allowed_disorder_ms]
    return places
