"""Output records in Avro, with the registry's framing in front: one by one, or results that are
columns in one compiled pass."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import Any, Literal

import fastavro
import numpy as np

from spark_cep.codecs.output.fields import RECORDS, Contract, FieldType, Record
from spark_cep.codecs.output.loops import result_bytes as loops
from spark_cep.codecs.output.result_columns import Chosen, FieldColumns
from spark_cep.codecs.output.schemas import AVRO_TYPES, SCALARS, VALUE, schema_text
from spark_cep.codecs.output.values import output_value
from spark_cep.codecs.registry.framing import frame
from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Bytes, Flags, Numbers, Vector, reader, texts_together
from spark_cep.errors import OutputError
from spark_cep.matcher.findings.results import Measured
from spark_cep.pattern.types import BIGINT, BOOLEAN, INT, SqlType

_PARTS = {
    FieldType.TEXT: loops.TEXT,
    FieldType.OPTIONAL_TEXT: loops.TEXT,
    FieldType.INT: loops.LONG,
    FieldType.LONG: loops.LONG,
    FieldType.TIME: loops.LONG,
    FieldType.FLAG: loops.BYTE,
}
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
        steps = next(f.type for f in record.fields if isinstance(f.type, Record))
        events = next(f.type for f in steps.fields if isinstance(f.type, Record))
        of_row = _Level(texts, len(columns.row), frame(self._schema_id(contract), b""))
        of_row.add(record, columns, now)
        of_step = _Level(texts, len(columns.topic))
        of_step.add(steps, columns, now)
        of_event = _Level(texts, len(columns.topic), numbers=of_step.numbers)
        of_event.add(events, columns, now)
        room = sum(level.room for level in (of_row, of_step, of_event))
        out, ends = np.empty(room, np.uint8), np.zeros(len(columns.row) + 1, np.int64)
        loops.write_values(
            columns.ends, columns.taken, columns.step, of_row.parts, of_row.matrix, of_step.parts,
            of_event.parts, of_event.matrix, *texts.together().pool, out, ends,
        )  # fmt: skip
        return Bytes.of_ends(out[: ends[-1]], ends)

    def _schema_id(self, contract: Contract) -> int:
        found: int = getattr(self, contract.replace("-", "_"))
        return found


class _Texts:
    """Columns of texts, one behind the other."""

    def __init__(self) -> None:
        self._columns: list[Bytes] = []
        self._count = 0

    def add(self, column: Bytes) -> int:
        """The number of its first text among all."""
        self._columns.append(column)
        self._count += len(column)
        return self._count - len(column)

    def together(self) -> Bytes:
        """All of them."""
        return texts_together(self._columns)


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
                self._chosen(loops.TEXT, column, 1 if field.type is FieldType.OPTIONAL_TEXT else -1)
            elif isinstance(column, np.ndarray):
                self._number(_PARTS[field.type], column)
            elif column is None:
                self._constant += _written(field.type, None)
            else:
                self._values(column)
        self._write_constant()

    def _values(self, columns: Sequence[Measured]) -> None:
        """Values by name, as the map that they are in each row."""
        if columns:
            self._constant += _written(FieldType.LONG, len(columns))
        for each in columns:
            self._constant += _written(FieldType.TEXT, each.name)
            self._value(*each)
        self._constant += b"\0"

    def _value(self, name: str, values: Vector, kind: SqlType | None) -> None:
        if isinstance(values, Bytes):
            numbers = np.where(values.nulls, -1, np.arange(len(values)))
            self._chosen(loops.TEXT, Chosen(values, numbers), SCALARS.index("string"))
        elif isinstance(values, Numbers) and values.values.dtype == np.float64:
            bits = values.values.view(np.int64)
            self._number(loops.DOUBLE, bits, SCALARS.index("double"), values.nulls)
        elif isinstance(values, Numbers) and kind in (INT, BIGINT):
            self._number(loops.LONG, values.values, SCALARS.index("long"), values.nulls)
        elif isinstance(values, Numbers) and kind == BOOLEAN:
            self._number(loops.BYTE, values.values, SCALARS.index("boolean"), values.nulls)
        else:
            read = map(reader(values, kind), range(len(values)))
            try:
                written = [_written("value", output_value(value)) for value in read]
            except (ValueError, TypeError, OverflowError) as error:
                raise OutputError(f"measure {name} cannot be written as Avro: {error}") from error
            self._chosen(loops.RAW, Chosen(Bytes.of(written), np.arange(len(written))))

    def _chosen(self, kind: int, column: Chosen, branch: int = -1) -> None:
        first, absent = self._texts.add(column.texts), column.numbers < 0
        self.room += column.size
        self._number(kind, np.where(absent, 0, column.numbers + first), branch, absent)

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
        return np.array(self._parts, np.int64)

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


def _written(of: FieldType | Literal["value"], value: Any) -> bytes:
    """A field, or one of the values of a map, by itself."""
    body = BytesIO()
    fastavro.schemaless_writer(body, _parsed_type(of), value)
    return body.getvalue()
