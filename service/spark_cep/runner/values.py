"""Records of Python values, as a format of records: for events that no producer has written.

A record is packed: the number of its record type, its event time, its columns. Where nothing is
known of a type, its columns have the types of their values
(:data:`spark_cep.pattern.types.UNKNOWN`), and the decoder evaluates conditions on them; columns of
known types are read into the vectors that compiled conditions read, as those of Avro records are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.record_reader import RawRecord, Read, RecordFormat, RecordReader, Wanted
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.representation import Representation, representation, to_whole
from spark_cep.columns.vectors import LENGTH_BITS, Bytes
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import RuleSetPlan
from spark_cep.errors import StateError
from spark_cep.model import Coordinates
from spark_cep.packing import pack, unpack
from spark_cep.pattern.expressions import ColumnPath
from spark_cep.pattern.types import TIMESTAMP, UNKNOWN, RecordType, SqlType
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions
from spark_cep.pipeline.decode.pack import Packer
from spark_cep.pipeline.decode.packing import Packing
from spark_cep.pipeline.read.records import KafkaRecords

#: The column with the event time; no column of an event has such a name.
_TIME = "\0time"


@dataclass(frozen=True)
class ValueRecord:
    """One record: where it stands, its time in ms since 1970, and its packed value."""

    at: Coordinates
    time: int
    value: bytes

    @classmethod
    def of(
        cls, at: Coordinates, number: int, micros: int, columns: Mapping[str, Any]
    ) -> ValueRecord:
        """A record of type ``number``, at ``micros`` microseconds since 1970; nested records are
        mappings. Raises ValueError for a value that has no type of the expression language."""
        try:
            return cls(at, micros // 1_000, pack([number, micros, columns]))
        except (StateError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{columns!r} has a value that is no column's: {error}") from error


@dataclass(frozen=True)
class ValueType:
    """A record type of one input; ``name`` and ``columns`` are ``None`` where nothing is known."""

    number: int
    input: str
    full_name: str | None
    known: RecordType | None
    #: The columns that rules read.
    read: tuple[ColumnPath, ...]
    event_time: str = _TIME
    event_time_unit: str = "micros"

    @property
    def name(self) -> str:
        """The full name."""
        return self.full_name or ""

    @cached_property
    def columns(self) -> RecordType:
        """Its columns, and the event time."""
        known = _untyped(self.read) if self.known is None else self.known
        return RecordType({**known.fields, _TIME: TIMESTAMP}, known.name)


def _untyped(paths: Iterable[ColumnPath]) -> RecordType:
    """A record that has all these columns."""
    below: dict[str, list[ColumnPath]] = {}
    for path in paths:
        below.setdefault(path[0], []).append(path[1:])
    return RecordType(
        {
            name: _untyped(filter(None, inner)) if any(inner) else UNKNOWN
            for name, inner in below.items()
        }
    )


@dataclass(frozen=True)
class _ValueFormat(RecordFormat):
    types: tuple[ValueType, ...]

    def reader(self, wanted: Sequence[Wanted], vectors: ColumnVectors) -> _ValueReader:
        """See :class:`~spark_cep.codecs.record_reader.RecordFormat`."""
        of_types = tuple(
            tuple(
                _Column(path, vector, kind, vectors.reader_of(vector, kind))
                for path, (vector, kind) in of_type.items()
            )
            for of_type in wanted
        )
        return _ValueReader(of_types, vectors.width)


@dataclass(frozen=True)
class _Column:
    """The place of a column; ``reader``: the vector of its reader, where it has one."""

    path: ColumnPath
    vector: int
    kind: SqlType
    reader: int

    @cached_property
    def to_whole(self) -> Callable[[Any], int]:
        """From a value to its number."""
        return to_whole(self.kind)


@dataclass(frozen=True)
class _ValueReader(RecordReader):
    columns: tuple[tuple[_Column, ...], ...]
    width: int

    def explain(self, record: RawRecord, fault: Fault, number: int) -> tuple[Reason, str]:
        """Values of Python have no faults."""
        raise NotImplementedError(record, fault, number)

    def read(self, topic: str, values: Bytes, headers: Bytes) -> Read:  # noqa: ARG002  of any topic
        """See :class:`~spark_cep.codecs.record_reader.RecordReader`."""
        count, data = len(values), bytearray(b"\0")
        wholes = np.zeros((count, max(1, self.width)), np.int64)
        doubles, nulls = wholes.view(np.float64), np.ones(wholes.shape, np.uint8)
        types = np.empty(count, np.int32)
        for row, record in enumerate(values.values()):
            assert record is not None
            types[row], time, columns = unpack(record)
            columns[_TIME] = time
            for column in self.columns[types[row]]:
                value = _value(columns, column.path)
                if value is None:
                    continue
                nulls[row, column.vector] = 0
                match representation(column.kind):
                    case Representation.WHOLE:
                        time_itself = column.path == (_TIME,)
                        wholes[row, column.vector] = time if time_itself else column.to_whole(value)
                    case Representation.DOUBLE:
                        doubles[row, column.vector] = value
                    case Representation.TEXT:
                        wholes[row, column.vector] = _place(data, value.encode())
                    case Representation.OBJECT:
                        wholes[row, column.vector] = _place(data, pack(value))
        faults = np.zeros(count, np.int32)
        together = np.frombuffer(bytes(data), np.uint8)
        return Read(together, wholes, doubles, nulls, types, faults, (unpack,))


def _place(data: bytearray, value: bytes) -> int:
    """Append a value to ``data`` and return its place."""
    start = len(data)
    data += value
    return start << LENGTH_BITS | len(value)


def _value(columns: Mapping[str, Any], path: ColumnPath) -> Any:
    found: Any = columns
    for part in path:
        if found is None:
            return None
        found = found.get(part)
    return found


@dataclass
class ValueInputs:
    """The record types of values, as :class:`~spark_cep.runner.runner.Inputs`. ``types``: what is
    known of them; ``("", name)`` of :meth:`number` are of any input.

    A type gets a number when it is first asked for; then the runner is to be told
    (:meth:`~spark_cep.runner.runner.Runner.use`)."""

    types: RecordTypes = field(default_factory=RecordTypes)
    options: DecodeOptions = field(
        default_factory=lambda: DecodeOptions(1, max_ahead_ms=None, keep_all=True)
    )
    _numbers: dict[tuple[str, str | None], int] = field(default_factory=dict)

    def number(self, source: str, name: str | None) -> int:
        """The number of record type ``name`` of input ``source``."""
        return self._numbers.setdefault((source, name), len(self._numbers))

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def type_names(self) -> tuple[str | None, ...]:
        """The names of types by number."""
        return tuple(name for _, name in self._numbers)

    def packer(self, plan: RuleSetPlan) -> Packer:
        """The packer for the rules of ``plan``."""
        read = tuple(sorted(set(_paths(plan))))
        types = tuple(
            ValueType(number, source, name, self.types.of((source, ""), name), read)
            for (source, name), number in self._numbers.items()
        )
        return Packing(_ValueFormat(types), self.options).packer(plan)


def _paths(plan: RuleSetPlan) -> Iterator[ColumnPath]:
    """The columns that rules read."""
    for part in plan.partitionings:
        for expression in part.key:
            yield from expression.columns
        for condition in part.conditions:
            if condition.expression is not None:
                yield from condition.expression.columns
        yield from (slot.path for slot in part.slots)


def records_of(records: Iterable[ValueRecord]) -> Iterator[KafkaRecords]:
    """Records as they are read of Kafka, of each partition together."""
    by_partition: dict[tuple[str, int], list[ValueRecord]] = {}
    for record in records:
        by_partition.setdefault(record.at[:2], []).append(record)
    for (topic, partition), several in by_partition.items():
        count = len(several)
        nothing = Bytes.of([None] * count)
        yield KafkaRecords(
            topic,
            partition,
            np.array([record.at.offset for record in several], np.int64),
            np.array([record.time for record in several], np.int64),
            Bytes.of([record.value for record in several]),
            nothing,
            nothing,
        )
