"""The seam of all that can be read: a recording gives its records in order, some at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, Protocol, Self

import numpy as np

from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Bytes
from spark_cep.errors import printable, shortened
from spark_cep.model import Coordinates, DeadLetter
from spark_cep.pipeline.read.records import KafkaRecords

#: Records that are read together, and bytes of them, about.
ROWS_TOGETHER = 20_000
BYTES_TOGETHER = 4 << 20
#: The timestamp of a record that has none.
_NO_TIMESTAMP = -1


class Chunk(NamedTuple):
    """Some records of a recording. ``letters``: dead letters for those that cannot be handed on.
    ``read``: bytes of the recording that have been read by now, about."""

    records: KafkaRecords | None
    letters: list[DeadLetter]
    read: int


class Recording(Protocol):
    """Records of one topic and partition, in order."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    @property
    def topic(self) -> str:
        """The topic of its records' coordinates."""

    @property
    def size(self) -> int:
        """Bytes of all of it, about."""

    def chunks(self) -> Iterator[Chunk]:
        """All records, from the beginning. Raises ConfigurationError where the whole of it is not
        what it should be."""

    def parts(self, count: int) -> Sequence[Recording]:
        """The recording in about so many parts of one size, which processes read side by side: all
        chunks of all parts, by offset, are its records in order."""

    def around(self, at: Coordinates) -> Recording | None:
        """A part, as small as can be told, that has the record at these coordinates; ``None`` where
        it is not in this recording."""


@dataclass(frozen=True)
class FileCoordinates:
    """The coordinates of the records of a file, whose ``name`` is for messages. ``first``: the
    offset of its first record; ``None``: an offset is the number of the record in the file, or of
    the line."""

    name: str
    topic: str
    partition: int = 0
    first: int | None = None

    def offset(self, record: int, number: int) -> int:
        """The offset of a ``record``, counted from 0, that people know by another ``number``."""
        return number if self.first is None else self.first + record

    def records(self, values: Bytes, numbers: I64) -> KafkaRecords:
        """Records with these values. ``numbers``: their offsets, or, where the first one's is
        known, their numbers counted from 0."""
        count = len(values)
        nothing = Bytes.of([None] * count)
        offsets = numbers if self.first is None else self.first + numbers
        times = np.full(count, _NO_TIMESTAMP, np.int64)
        return KafkaRecords(self.topic, self.partition, offsets, times, values, nothing, nothing)

    def letter(self, offset: int, where: str, why: str, value: bytes | None) -> DeadLetter:
        """The dead letter of a record that cannot be read; ``where`` it is in the file."""
        at = Coordinates(self.topic, self.partition, offset)
        detail = f"{printable(self.name)}, {where}: {printable(shortened(why))}"
        return DeadLetter(at, Reason.UNDECODABLE.value, detail, record_value=value)


@dataclass(frozen=True)
class FileRecording:
    """The common part of recordings that are files. ``part``: of so many parts the one of this
    number; chunks go round, since it is little work to pass over one."""

    file: Path
    place: FileCoordinates
    part: tuple[int, int] = field(default=(0, 1), kw_only=True)

    @property
    def name(self) -> str:
        """See :class:`Recording`."""
        return self.place.name

    @property
    def topic(self) -> str:
        """See :class:`Recording`."""
        return self.place.topic

    @property
    def size(self) -> int:
        """See :class:`Recording`."""
        return self.file.stat().st_size

    def parts(self, count: int) -> Sequence[Self]:
        """See :class:`Recording`."""
        return [replace(self, part=(number, count)) for number in range(count)]

    def around(self, at: Coordinates) -> Self | None:
        """See :class:`Recording`."""
        return self if at[:2] == (self.place.topic, self.place.partition) else None

    def has(self, chunk: int) -> bool:
        """Return whether a chunk is in this part."""
        number, count = self.part
        return chunk % count == number


@dataclass(frozen=True)
class FramedFile(FileRecording):
    """A file whose records are handed on as Avro. ``schema``: of the records; ``schema_id``: its
    number, which stands in front of each record."""

    schema: AvroSchema
    schema_id: int
