"""The first stage: parts of the recordings, read and decoded, to packets by key.

A task tells a few numbers about each piece, so that the order in which one process would have
merged the pieces can be found without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spark_cep.errors import SparkCepError
from spark_cep.event_times import LAST_TIME
from spark_cep.model import DeadLetter
from spark_cep.pipeline.match.watermark import BEGINNING
from spark_cep.pipeline.wire.new_schemas import NewSchemasError, schemas_in
from spark_cep.pipeline.wire.task_properties import TaskProperties
from spark_cep.recorded.events import RecordedEvents
from spark_cep.recorded.merging import RunOfRecords
from spark_cep.recorded.recording import Recording
from spark_cep.rules.plans import plan_of
from spark_cep.runner.batch import RunSettings

#: Parts of the input for each task of the first stage, so that tasks end at about one time.
_PARTS_PER_TASK = 4


class PiecePlace(NamedTuple):
    """The place of a piece: the number of its recording, and its first offset."""

    recording: int
    offset: int


class Packet(NamedTuple):
    """A packet of a piece, for the task of the second stage that has its keys; ``number``: among
    those of the piece."""

    place: PiecePlace
    task: int
    number: int
    kind: int
    packet: bytes


class Letters(NamedTuple):
    """Dead letters of a piece."""

    place: PiecePlace
    letters: list[DeadLetter]


class PieceSummary(NamedTuple):
    """A piece in numbers, for the merge."""

    place: PiecePlace
    facts: RunOfRecords


class Failed(NamedTuple):
    """The error that a task ended with: the driver raises it."""

    error: type[Exception]
    text: str

    def raised(self) -> Exception:
        """The error."""
        if self.error is NewSchemasError:
            return NewSchemasError(schemas_in(self.text))
        return self.error(self.text)


@dataclass(frozen=True)
class RecordingPart:
    """A part of the recording of this number; ``is_whole``: it has no others."""

    recording: int
    of: Recording
    is_whole: bool


@dataclass(frozen=True)
class Reading:
    """The first stage, as its tasks need it. ``plan``: as :func:`spark_cep.rules.plans.plan_of`
    reads it; ``settings``: with a key group for each task of the second stage."""

    events: RecordedEvents
    plan: str
    settings: RunSettings

    def packed(
        self, parts: Iterable[RecordingPart]
    ) -> Iterator[Packet | Letters | PieceSummary | Failed]:
        """The pieces of these parts: packets, dead letters, and numbers."""
        packer = self.events.inputs(self.settings.key_groups).packer(plan_of(self.plan))
        try:
            for part in parts:
                newest = BEGINNING
                for piece in self.events.pieces(part.of, self.settings):
                    place = PiecePlace(part.recording, piece.facts.offset)
                    letters, number = [*piece.content.letters], 0
                    properties = TaskProperties(LAST_TIME, self._late_until(part, newest))
                    records = filter(None, [piece.content.records])
                    for packets, more in packer.pack(records, properties):
                        letters += more
                        for task, kind, packet in packets:
                            yield Packet(place, task, number, kind, packet)
                            number += 1
                    if letters:
                        yield Letters(place, letters)
                    yield PieceSummary(place, piece.facts)
                    if piece.facts.newest is not None:
                        newest = max(newest, piece.facts.newest)
        except (SparkCepError, NewSchemasError) as error:
            yield Failed(type(error), str(error))

    def _late_until(self, part: RecordingPart, newest: int) -> int | None:
        """The event time after which no event of the next piece is late, whatever other recordings
        have: this one holds the watermark back itself."""
        if self.settings.watermark == "maximum" or not part.is_whole:
            return None
        return max(BEGINNING, newest - self.settings.allowed_disorder_ms - 1)


def shares_of(recordings: Sequence[Recording], tasks: int) -> list[list[RecordingPart]]:
    """The input in shares of about one size: large recordings are cut into parts, small ones are
    put together."""
    count = tasks * _PARTS_PER_TASK
    most = max(1, sum(each.size for each in recordings) // count)
    parts: list[tuple[int, RecordingPart]] = []
    for number, each in enumerate(recordings):
        several = each.parts(min(tasks, max(1, each.size // most)))
        is_whole = len(several) == 1
        parts += [
            (each.size // len(several), RecordingPart(number, one, is_whole)) for one in several
        ]
    shares: list[list[RecordingPart]] = [[] for _ in range(max(1, min(count, len(parts))))]
    sizes = [0] * len(shares)
    for size, part in sorted(parts, key=lambda each: -each[0]):
        least = sizes.index(min(sizes))
        shares[least].append(part)
        sizes[least] += size
    return shares
