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
from spark_cep.codecs.record_reader import InputType, Read, RecordFormat, RecordReader, Wanted
from spark_cep.codecs.registry.resolved_schemas import EventType
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.vectors import Bytes
from spark_cep.config import Input


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

    def read(self, topic: str, values: Bytes) -> Read:
        """See :class:`~spark_cep.codecs.record_reader.RecordReader`."""
        place = self._place(topic)
        read = self.readers[place].read(topic, values)
        types = np.where(read.types < 0, read.types, read.types + np.int32(self.first[place]))
        return read._replace(types=types)

    def explain(self, value: bytes, fault: Fault, number: int) -> tuple[Reason, str]:
        """See :class:`~spark_cep.codecs.record_reader.RecordReader`."""
        if number < 0:
            # It is of no type where its schema says which: formats without schemas know it.
            return self._naming_schemas.explain(value, fault, number)
        place = sum(first <= number for first in self.first) - 1
        return self.readers[place].explain(value, fault, number - self.first[place])

    def of_task(self, planned_at: int, schemas: str | None) -> MixedReader:
        """See :class:`~spark_cep.codecs.record_reader.RecordReader`."""
        return replace(
            self, readers=tuple(each.of_task(planned_at, schemas) for each in self.readers)
        )

    def new_schemas(self, values: Iterable[bytes]) -> Collection[str]:
        """See :class:`~spark_cep.codecs.record_reader.RecordReader`."""
        return self._naming_schemas.new_schemas(values)

    @property
    def _naming_schemas(self) -> RecordReader:
        return self.readers[_place_of_schemas(self.parts)]

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
    """The formats of a job. Only one of them has records that name their schemas: Avro."""

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
        return self._naming_schemas.known

    def learn(self, schemas: Iterable[str]) -> Collection[str]:
        """See :class:`~spark_cep.codecs.record_reader.RecordFormat`."""
        return self._naming_schemas.learn(schemas)

    def snapshot(self) -> MixedFormats:
        """See :class:`~spark_cep.codecs.record_reader.RecordFormat`."""
        return replace(
            self, parts=tuple(part._replace(format=part.format.snapshot()) for part in self.parts)
        )

    @property
    def _naming_schemas(self) -> RecordFormat:
        return self.parts[_place_of_schemas(self.parts)].format


def _place_of_schemas(parts: Sequence[FormatInputs]) -> int:
    names = [part.name for part in parts]
    return names.index("avro") if "avro" in names else 0
