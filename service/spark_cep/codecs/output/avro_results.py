"""Output records in Avro, with the registry's framing in front: one by one, or results that are
columns in one compiled pass."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import Any

import fastavro
import numpy as np

from spark_cep.codecs.output.fields import RECORDS, Contract, FieldType, Record
from spark_cep.codecs.output.loops import result_bytes as loops
from spark_cep.codecs.output.result_columns import Chosen, FieldColumns
from spark_cep.codecs.output.schemas import AVRO_TYPES, schema_text
from spark_cep.codecs.registry.framing import frame
from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Bytes, texts_together
from spark_cep.errors import OutputError

_PARTS = {
    FieldType.TEXT: loops.TEXT,
    FieldType.OPTIONAL_TEXT: loops.OPTIONAL_TEXT,
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
            columns.ends, columns.step, of_row.parts, of_row.matrix, of_step.parts, of_event.parts,
            of_event.matrix, *texts.together().pool, out, ends,
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
        self._parts: list[tuple[int, int]] = []
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
            column = now if field.of is None else field.column and field.column(columns)
            if isinstance(column, Chosen):
                first = self._texts.add(column.texts)
                self._number(field.type, np.where(column.numbers < 0, -1, column.numbers + first))
                self.room += column.size
            elif isinstance(column, np.ndarray):
                self._number(field.type, column)
            else:
                body = BytesIO()
                fastavro.schemaless_writer(body, _parsed_type(field.type), column)
                self._constant += body.getvalue()
        self._write_constant()

    def _number(self, of: FieldType, numbers: I64) -> None:
        self.numbers.append(numbers)
        self._part(_PARTS[of], len(self.numbers) - 1, _MOST_OF_PART)

    def _part(self, kind: int, which: int, room: int) -> None:
        self._write_constant()
        self._parts.append((kind, which))
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
def _parsed_type(of: FieldType) -> Any:
    return fastavro.parse_schema(AVRO_TYPES[of])
