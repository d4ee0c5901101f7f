"""The order in which recordings are read side by side: by event time, with a watermark for each
batch.

A job that reads a backlog takes from all partitions and lets the slowest one hold the watermark
back. Here files and partitions are merged the same way: the next records come from the one whose
event time is least, and a file that has not begun holds the watermark back by its first event. One
that has ended does not. So events are late only where they are out of order inside of a file, or
partition, by more than is allowed, and no more than a few batches wait.

The order follows from a few numbers about the records alone, so that it can be found apart from
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar

from spark_cep.pipeline.match.watermark import BEGINNING, END
from spark_cep.runner.batch import RunSettings

#: Records of a batch, and bytes of them, about. The state of all keys is read and written for each.
_ROWS = 200_000
_BYTES = 64 << 20
#: Batches that are ended before that, since what comes next is late.
_MOST_CUTS = 200
#: Where the watermark goes at the end: behind the last event, or, so that everything is decided,
#: behind all deadlines.
AtEnd = Literal["wait", "decide"]


class RunOfRecords(NamedTuple):
    """Numbers about some records of a recording that follow one another. ``offset``: of the first
    one; ``rows``: those that are wanted, and those that cannot be read; ``size``: bytes of the
    wanted ones; ``least``, ``newest``: event times of all, ``None`` where none has one;
    ``newest_wanted``: of the wanted ones; ``read``: bytes of the recording that have been read by
    then, about."""

    offset: int
    rows: int
    size: int
    least: int | None
    newest: int | None
    newest_wanted: int | None
    read: int


Content = TypeVar("Content")


@dataclass(frozen=True)
class Piece(Generic[Content]):
    """Some records of a recording, as ``content``."""

    facts: RunOfRecords
    content: Content


class PieceQueue(Generic[Content]):
    """The pieces of one recording, in order. ``reached``: the newest event time by now, or
    ``first``, the least one that it begins with."""

    def __init__(
        self, pieces: Iterator[Piece[Content]], size: int, first: int | None = None
    ) -> None:
        self._pieces, self._size = pieces, size
        self._waiting: Piece[Content] | None = None
        self.read = 0
        self.reached = BEGINNING if first is None else first
        self.finished = False

    def next(self) -> Piece[Content] | None:
        """The next piece, until it is taken; ``None`` at the end."""
        if self._waiting is None:
            self._waiting = next(self._pieces, None)
        if self._waiting is None:
            self.finished = True
            self.read = self._size
        return self._waiting

    def take(self, piece: Piece[Content]) -> None:
        """Go on behind the next piece."""
        self._waiting = None
        self.read = piece.facts.read
        if piece.facts.newest is not None:
            self.reached = max(self.reached, piece.facts.newest)


class MergedBatch(NamedTuple, Generic[Content]):
    """Pieces that are applied together, and the watermark behind them. ``newest``: the newest event
    time that is wanted; ``read``: bytes of all recordings that have been read by now, about."""

    pieces: list[Piece[Content]]
    watermark: int
    newest: int
    read: int

    @property
    def rows(self) -> int:
        """The number of records, with those that cannot be read."""
        return sum(each.facts.rows for each in self.pieces)


def merged(
    queues: Sequence[PieceQueue[Content]], settings: RunSettings, at_end: AtEnd
) -> Iterator[MergedBatch[Content]]:
    """All pieces, in batches; the last one has none, and time stands where ``at_end`` says."""
    watermark = newest_of_all = BEGINNING
    cuts = 0
    policy = max if settings.watermark == "maximum" else min
    while unfinished := [queue for queue in queues if not queue.finished]:
        pieces: list[Piece[Content]] = []
        rows = size = 0
        newest = BEGINNING
        while rows < _ROWS and size < _BYTES and unfinished:
            queue = min(unfinished, key=lambda each: each.reached)
            piece = queue.next()
            if piece is None:
                unfinished.remove(queue)
                continue
            if pieces and cuts < _MOST_CUTS and _is_late(piece, queue, settings):
                # The time of what is in front of it passes first.
                cuts += 1
                break
            queue.take(piece)
            pieces.append(piece)
            rows += piece.facts.rows
            size += piece.facts.size
            if piece.facts.newest_wanted is not None:
                newest = max(newest, piece.facts.newest_wanted)
        newest_of_all = max(newest_of_all, newest)
        reached = policy((queue.reached for queue in unfinished), default=BEGINNING)
        if reached > BEGINNING:
            watermark = max(watermark, reached - settings.allowed_disorder_ms - 1)
        yield MergedBatch(pieces, watermark, newest, sum(queue.read for queue in queues))
    watermark = END if at_end == "decide" else max(watermark, newest_of_all)
    yield MergedBatch([], watermark, BEGINNING, sum(queue.read for queue in queues))


def _is_late(piece: Piece[Content], queue: PieceQueue[Content], settings: RunSettings) -> bool:
    """Return whether some of it is behind what was there by more than is allowed."""
    least = piece.facts.least
    return least is not None and least < queue.reached - settings.allowed_disorder_ms
