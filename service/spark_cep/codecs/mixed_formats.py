"""Inputs of several formats in one job: each topic is read in the format of its input."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.record_reader import (
    InputType,
    RawRecord,
    Read,
    RecordFormat,
    RecordReader,
    Wanted,
)
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.vectors import Bytes
from spark_cep.config import Input

#: The part whose schemas have no name in front.
_AVRO = "avro"


class FormatInputs(NamedTuple):
    """The inputs of one format, which is called ``name``. ``topics``: of those that are listed;
    ``patterns``: of others."""

    name: str
    format: RecordFormat
    topics: frozenset[str]
    patterns: tuple[str, ...]


def part_of(name: str, form: RecordFormat, inputs: Iterable[Input]) -> FormatInputs:
    """The part of these inputs."""
    several = list(inputs)
    return FormatInputs(
        name,
        form,
        frozenset(topic for each in several for topic in each.topics),
        tuple(each.topic_pattern for each in several if each.topic_pattern is not None),
    )


@dataclass(frozen=True)
class MixedReader(RecordReader):
    """Hands the records of a topic to the reader of its format. ``first``: the number of each
    format's first record type."""

    parts: tuple[FormatInputs, ...]
    readers: tuple[RecordReader, ...]
    first: tuple[int, ...]

    def read(self, topic: str, values: Bytes, headers: Bytes) -> Read:
        """See :class:`~spark_cep.codecs.record_reader.RecordReader`."""
        place = self._place(topic)
        read = self.readers[place].read(topic, values, headers)
        types = np.where(read.types < 0, read.types, read.types + np.int32(self.first[place]))
        return read._replace(types=types)

    def explain(self, record: RawRecord, fault: Fault, number: int) -> tuple[Reason, str]:
        """See :class:`~spark_cep.codecs.record_reader.RecordReader`."""
        place = self._place(record.topic)
        own = number if number < 0 else number - self.first[place]
        return self.readers[place].explain(record, fault, own)

    def of_task(self, planned_at: int, schemas: str | None) -> MixedReader:
        """See :class:`~spark_cep.codecs.record_reader.RecordReader`."""
        known = None if schemas is None else _by_part(schemas)
        readers = [
            reader.of_task(planned_at, None if known is None else known.get(part.name, ""))
            for part, reader in zip(self.parts, self.readers, strict=True)
        ]
        return replace(self, readers=tuple(readers))

    def new_schemas(self, records: Iterable[RawRecord]) -> Collection[str]:
        """See :class:`~spark_cep.codecs.record_reader.RecordReader`."""
        of_part: dict[int, list[RawRecord]] = {}
        for record in records:
            of_part.setdefault(self._place(record.topic), []).append(record)
        return [
            _name_of(self.parts[place].name, each)
            for place, several in of_part.items()
            for each in self.readers[place].new_schemas(several)
        ]

    def _place(self, topic: str) -> int:
        for place, part in enumerate(self.parts):
            if topic in part.topics:
                return place
        for place, part in enumerate(self.parts):
            if any(re.fullmatch(pattern, topic) for pattern in part.patterns):
                return place
        return 0


@dataclass(frozen=True)
class MixedFormats(RecordFormat):
    """The formats of a job."""

    parts: tuple[FormatInputs, ...]
    types: tuple[InputType, ...]

    @classmethod
    def of(cls, parts: Sequence[FormatInputs]) -> MixedFormats:
        """The formats of these parts, whose types are numbered through."""
        types: list[InputType] = []
        for each in (one for part in parts for one in part.format.types):
            assert isinstance(each, EventType)
            types.append(replace(each, number=len(types)))
        return cls(tuple(parts), tuple(types))

    def reader(self, wanted: Sequence[Wanted], vectors: ColumnVectors) -> MixedReader:
        """See :class:`~spark_cep.codecs.record_reader.RecordFormat`."""
        for columns in wanted:
            for vector, of in columns.values():
                # The arrays of all readers have all vectors.
                vectors.reader_of(vector, of)
        counts = [len(part.format.types) for part in self.parts]
        first = tuple(accumulate(counts[:-1], initial=0))
        readers = tuple(
            part.format.reader(wanted[start : start + count], vectors)
            for part, start, count in zip(self.parts, first, counts, strict=True)
        )
        return MixedReader(self.parts, readers, first)

    @property
    def known(self) -> str:
        """See :class:`~spark_cep.codecs.record_reader.RecordFormat`."""
        texts = [(part.name, part.format.known) for part in self.parts]
        return ";".join(_name_of(name, text) for name, text in texts if text)

    def learn(self, schemas: Iterable[str]) -> Collection[str]:
        """See :class:`~spark_cep.codecs.record_reader.RecordFormat`."""
        of_part: dict[str, list[str]] = {}
        for name in schemas:
            part, schema = _part_and_name(name)
            of_part.setdefault(part, []).append(schema)
        return [
            _name_of(part.name, missing)
            for part in self.parts
            if part.name in of_part
            for missing in part.format.learn(of_part[part.name])
        ]

    def snapshot(self) -> MixedFormats:
        """See :class:`~spark_cep.codecs.record_reader.RecordFormat`."""
        return replace(
            self, parts=tuple(part._replace(format=part.format.snapshot()) for part in self.parts)
        )


def _name_of(part: str, schemas: str) -> str:
    """Schemas that a part knows, among those of all parts; Avro's are as in a job of Avro alone."""
    return schemas if part == _AVRO else f"{part}:{schemas}"


def _part_and_name(text: str) -> tuple[str, str]:
    part, colon, schemas = text.rpartition(":")
    return (part, schemas) if colon else (_AVRO, schemas)


def _by_part(known: str) -> dict[str, str]:
    return dict(_part_and_name(each) for each in known.split(";") if each)
