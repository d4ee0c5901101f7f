"""Output records in Avro, with the registry's framing in front: one by one, or results that are
columns in one compiled pass."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import Any, Literal

import fastavro
import numpy as np

from spark_cep.codecs.output.fields import RECORDS, Contract
from spark_cep.codecs.output.loops import result_bytes as loops
from spark_cep.codecs.output.record_shape import FieldType, Record
from spark_cep.codecs.output.result_columns import Chosen, FieldColumns
from spark_cep.codecs.output.schemas import AVRO_TYPES, SCALARS, VALUE, schema_text
from spark_cep.codecs.registry.framing import frame
from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import (
    Bytes,
    Flags,
    Numbers,
    Objects,
    reader,
    texts_of,
    texts_together,
)
from spark_cep.errors import OutputError
from spark_cep.matcher.findings.named_values import NamedValues, OfType
from spark_cep.matcher.findings.output_values import output_value
from spark_cep.pattern.types import BIGINT, BOOLEAN, INT

_PARTS = {
    FieldType.INT: loops.LONG,
    FieldType.LONG: loops.LONG,
    FieldType.TIME: loops.LONG,
    FieldType.FLAG: loops.BYTE,
}
_OPTIONAL = (FieldType.OPTIONAL_TEXT, FieldType.OPTIONAL_BYTES, FieldType.OPTIONAL_VALUES)
#: The kind of part of a value, and the byte of its branch, which is among the bytes of an array.
_VALUE_PARTS = {
    branch: (part, 2 * SCALARS.index(branch))
    for branch, part in (
        ("boolean", loops.BYTE), ("long", loops.LONG), ("double", loops.DOUBLE),
        ("string", loops.TEXT), ("bytes", loops.TEXT),
    )
} | {"array": (loops.RAW, -1)}  # fmt: skip
#: Bytes of a part at most, beyond those of its text, and of the numbers and ends of items.
_MOST_OF_PART, _MOST_OF_ITEMS = 11, 12


@dataclass(frozen=True, slots=True)
class AvroResults:
    """Writes records by the public schemas; the ids are those under which the registry knows
    them."""

    match: int
    timeout: int
    dead_letter: int
    match_row: int

    def value(self, contract: Contract, result: Any, now: int, origin: str) -> bytes:
        """See :class:`~spark_cep.codecs.output.outputs.ResultEncoder`."""
        body = BytesIO()
        datum = RECORDS[contract].values(result, now)
        try:
            fastavro.schemaless_writer(body, _parsed(contract), datum)
        except (ValueError, TypeError, OverflowError) as error:
            raise OutputError(f"{origin} cannot be written as Avro: {error}") from error
        return frame(self._schema_id(contract), body.getvalue())

    def values(self, contract: Contract, columns: FieldColumns, now: int) -> Bytes:
        """See :class:`~spark_cep.codecs.output.outputs.ResultEncoder`."""
        record, texts = RECORDS[contract], _Texts()
        of_row = _Level(texts, len(columns.row), frame(self._schema_id(contract), b""))
        of_step = _Level(texts, len(columns.topic))
        of_event = _Level(texts, len(columns.topic), numbers=of_step.numbers)
        inner: Record | None = record
        for level in (of_row, of_step, of_event):
            if inner is not None:
                level.add(inner, columns, now)
                inner = inner.items
        room = sum(level.room for level in (of_row, of_step, of_event))
        out, ends = np.empty(room, np.uint8), np.zeros(len(columns.row) + 1, np.int64)
        loops.write_values(
            columns.ends, columns.taken, columns.step, of_row.parts, of_row.matrix, of_step.parts,
            of_event.parts, of_event.matrix, texts.values, *texts.together().pool, out, ends,
        )  # fmt: skip
        return Bytes.of_ends(out[: ends[-1]], ends)

    def _schema_id(self, contract: Contract) -> int:
        found: int = getattr(self, contract.replace("-", "_"))
        return found


class _Texts:
    """Columns of texts, one behind the other, and values by name."""

    def __init__(self) -> None:
        self._columns: list[Bytes] = []
        self._count = 0
        self._values = [np.zeros((0, 4), np.int64)]

    def add(self, column: Bytes) -> int:
        """The number of its first text among all."""
        self._columns.append(column)
        self._count += len(column)
        return self._count - len(column)

    def together(self) -> Bytes:
        """All of them."""
        return texts_together(self._columns)

    def add_values(self, values: NamedValues) -> tuple[int, int]:
        """The number of the first of these values among all, and bytes that are enough for them."""
        used = np.flatnonzero(np.bincount(values.name))
        names = texts_of([values.names[number] for number in used.tolist()])
        name = np.searchsorted(used, values.name)
        # A value that is not there is the branch of NULL.
        table = np.zeros((len(name), 4), np.int64)
        table[:, 0], table[:, 1], table[:, 2] = name + self.add(names), loops.BYTE, -1
        room = int(names.lengths[name].sum()) + len(name) * 2 * _MOST_OF_PART
        for of_type in values.typed:
            try:
                for places, branch, found in _by_branch(of_type):
                    table[places, 1:3] = _VALUE_PARTS[branch]
                    if isinstance(found, Bytes):
                        table[places, 3] = np.arange(len(found)) + self.add(found)
                        room += int(found.lengths.sum())
                    else:
                        table[places, 3] = found
            except (ValueError, TypeError, OverflowError) as error:
                concerned = np.unique(values.name[of_type.places]).tolist()
                which = ", ".join(values.names[number] for number in concerned)
                raise OutputError(
                    f"a value of {which} cannot be written as Avro: {error}"
                ) from error
        self._values.append(table)
        return sum(map(len, self._values)) - len(table), room

    @property
    def values(self) -> I64:
        """All values: the text of the name, the kind of part, branch, and number of each."""
        return np.concatenate(self._values)


class _Level:
    """The parts of the records of one level, and the numbers of its rows."""

    def __init__(
        self, texts: _Texts, rows: int, constant: bytes = b"", numbers: list[I64] | None = None
    ) -> None:
        self._texts, self._rows = texts, rows
        self._parts: list[tuple[int, int, int, int]] = []
        #: Constants, one behind the other, that are not written yet.
        self._constant = constant
        self.numbers: list[I64] = [] if numbers is None else numbers
        #: Bytes that are enough for all rows.
        self.room = _MOST_OF_ITEMS

    def add(self, record: Record, columns: FieldColumns, now: int) -> None:
        """The fields of a record."""
        for field in record.fields:
            if isinstance(field.type, Record):
                self._part(loops.ITEMS, 0, _MOST_OF_ITEMS)
                continue
            if field.of is None:
                self._constant += _written(field.type, now)
                continue
            column = field.column and field.column(columns)
            if isinstance(column, Chosen):
                self._chosen(column, 1 if field.type in _OPTIONAL else -1)
            elif isinstance(column, np.ndarray):
                self._number(_PARTS[field.type], column)
            elif column is None:
                self._constant += _written(field.type, None)
            else:
                self._values(column, optional=field.type in _OPTIONAL)
        self._write_constant()

    def _values(self, values: NamedValues, *, optional: bool) -> None:
        """Values by name, as the map that they are in each row; ``optional``: NULL for none."""
        first, room = self._texts.add_values(values)
        self.room += room
        which, ends = len(self.numbers), values.ends + first
        counts = np.diff(values.ends, prepend=0)
        self.numbers += [ends - counts, ends]
        if optional:
            self.numbers.append((counts == 0).astype(np.int64))
        branch, nulls = (2, which + 2) if optional else (-1, -1)
        self._part(loops.VALUES, which, 2 * _MOST_OF_PART, branch, nulls)

    def _chosen(self, column: Chosen, branch: int = -1) -> None:
        first, absent = self._texts.add(column.texts), column.numbers < 0
        self.room += column.size
        numbers = np.where(absent, 0, column.numbers + first)
        self._number(loops.TEXT, numbers, branch, absent)

    def _number(
        self, kind: int, numbers: I64, branch: int = -1, nulls: Flags | None = None
    ) -> None:
        """A part with these numbers; ``branch``: of a union, which is NULL where ``nulls`` says."""
        self.numbers.append(numbers)
        which, of_nulls = len(self.numbers) - 1, -1
        if branch >= 0 and nulls is not None and nulls.any():
            self.numbers.append(nulls.astype(np.int64))
            of_nulls = which + 1
        # The number of a branch is a number as others are.
        self._part(kind, which, _MOST_OF_PART, 2 * branch if branch >= 0 else -1, of_nulls)

    def _part(self, kind: int, which: int, room: int, branch: int = -1, nulls: int = -1) -> None:
        self._write_constant()
        self._parts.append((kind, which, branch, nulls))
        self.room += self._rows * room

    def _write_constant(self) -> None:
        constant, self._constant = self._constant, b""
        if constant:
            number = self._texts.add(Bytes.of([constant]))
            self._part(loops.CONSTANT, number, len(constant))

    @property
    def parts(self) -> I64:
        """The parts as the loop takes them."""
        return np.array(self._parts, np.int64).reshape(-1, 4)

    @property
    def matrix(self) -> I64:
        """The numbers as the loop takes them."""
        return np.array(self.numbers, np.int64).reshape(len(self.numbers), self._rows)


@cache
def _parsed(contract: Contract) -> Any:
    return fastavro.parse_schema(json.loads(schema_text(contract)))


@cache
def _parsed_type(of: FieldType | Literal["value"]) -> Any:
    return fastavro.parse_schema(VALUE if of == "value" else AVRO_TYPES[of])


def _by_branch(of_type: OfType) -> Iterator[tuple[I64, str, I64 | Bytes]]:
    """Yield values by the branch of Avro's union that they are of: their places, the branch, and
    numbers or texts; not those that are NULL."""
    places, column, kind = of_type
    there = np.ones(0, bool) if isinstance(column, Objects) else ~column.nulls
    if isinstance(column, Bytes):
        yield places[there], "string", column.take(np.flatnonzero(there))
    elif isinstance(column, Numbers) and column.values.dtype == np.float64:
        yield places[there], "double", column.values.view(np.int64)[there]
    elif isinstance(column, Numbers) and kind in (INT, BIGINT, BOOLEAN):
        branch = "boolean" if kind == BOOLEAN else "long"
        yield places[there], branch, column.values[there]
    else:
        values = list(map(output_value, map(reader(column, kind), range(len(column)))))
        by_class = defaultdict[type, list[int]](list)
        for number, value in enumerate(values):
            by_class[type(value)].append(number)
        by_class.pop(type(None), None)
        for of, numbers in by_class.items():
            branch, column_of = _OF_CLASS.get(of, ("array", _arrays))
            yield places[numbers], branch, column_of([values[number] for number in numbers])


def _arrays(values: list[Any]) -> Bytes:
    return Bytes.of([_written("value", value) for value in values])


_OF_CLASS: dict[type, tuple[str, Callable[[list[Any]], I64 | Bytes]]] = {
    str: ("string", texts_of),
    bytes: ("bytes", Bytes.of),
    float: ("double", lambda values: np.array(values, np.float64).view(np.int64)),
    int: ("long", lambda values: np.array(values, np.int64)),
    bool: ("boolean", lambda values: np.array(values, np.int64)),
}


def _written(of: FieldType | Literal["value"], value: Any) -> bytes:
    """A field, or one of the values of a map, by itself."""
    body = BytesIO()
    fastavro.schemaless_writer(body, _parsed_type(of), value)
    return body.getvalue()
