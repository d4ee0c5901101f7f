"""Columns of text: the type in which each is read, and what is made of it."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_cep.columns.vectors import LENGTH_BITS, LENGTH_MASK, Bytes
from spark_cep.pipeline.decode.iso_times import micros_of
from spark_cep.recorded.files.row_writer import RowColumn, RowError

#: Records that are looked at to find out about a file.
_LOOKED_AT = 1_000
NEWLINE = ord("\n")
#: PyArrow's words for a value of another type, which it calls a change.
_CHANGED = re.compile(r"Column\(/?(.*)\) changed from (\w+) to (\w+)")
_WITH_CLOCK = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}"
_MICROS = pa.timestamp("us", "UTC")

Columns = Mapping[str, pa.Array | list[Any]]


@dataclass(frozen=True)
class ReadColumn:
    """A column as it is read: ``given`` in the text, and made what it should be."""

    column: RowColumn
    given: pa.DataType

    def made(self, array: pa.Array) -> pa.Array:
        """The values. Raises RowError."""
        wanted = self.column.arrow
        if array.type == wanted:
            return array
        if pa.types.is_binary(wanted):
            decoded = [_decoded(each, self.column) for each in array.to_pylist()]
            return pa.array(decoded, pa.binary())
        if pa.types.is_timestamp(wanted) and pa.types.is_string(array.type):
            times, known = micros_of(array)
            nulls = pc.is_null(array).to_numpy(zero_copy_only=False)
            wrong = np.flatnonzero(~known & ~nulls)
            if len(wrong):
                text = array[int(wrong[0])].as_py()
                raise RowError(f"{self.column.name} is {text!r}, which is no time in ISO 8601")
            array = pa.array(times, pa.int64(), mask=nulls).cast(_MICROS)
        # Behind the unit of the column digits are cut off, as Avro's writers do.
        return array.cast(wanted, safe=not pa.types.is_timestamp(wanted))


def _decoded(text: str | None, column: RowColumn) -> bytes | None:
    try:
        return None if text is None else b64decode(text, validate=True)
    except ValueError as error:
        raise RowError(f"{column.name} is {text!r}, which is no base64: {error}") from error


def columns_read(
    columns: Iterable[RowColumn], is_text: Callable[[str], bool]
) -> dict[str, ReadColumn]:
    """The columns that PyArrow reads; ``is_text``: whether a column is text where it might be a
    number as well."""
    found = {}
    for column in columns:
        given = column.arrow
        if given is None:
            continue
        if pa.types.is_temporal(given):
            given = pa.string() if is_text(column.name) else pa.int64()
            if given == pa.int64() and pa.types.is_date(column.arrow):
                given = pa.int32()
        elif pa.types.is_binary(given):
            given = pa.string()
        found[column.name] = ReadColumn(column, given)
    return found


def first_values(records: Bytes) -> list[bytes]:
    """The first records."""
    first = records.take(slice(0, _LOOKED_AT))
    return [value for value in first.values() if value is not None]


def as_lines(values: Sequence[bytes]) -> Bytes:
    """Records, each on lines of its own."""
    text = Bytes.of([value + b"\n" for value in values])
    return Bytes(text.places - 1, text.nulls, text.data)


def joined(records: Bytes) -> bytes:
    """The text from the first record to the last."""
    first, last = int(records.places[0]), int(records.places[-1])
    end = (last >> LENGTH_BITS) + (last & LENGTH_MASK)
    return records.data[first >> LENGTH_BITS : end].tobytes()


def all_of(table: pa.Table, records: Bytes) -> pa.Table:
    """The table, if it has a row for each record. Raises RowError."""
    if table.num_rows != len(records):
        raise RowError(f"there are {table.num_rows} records where one is due")
    return table


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """The column in one piece."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def said(error: Exception) -> str:
    """The error in the words of records."""
    text = str(error).removeprefix("JSON parse error: ").removeprefix("CSV parse error: ")
    text = re.sub(r" in row \d+$", "", text).strip()
    return _CHANGED.sub(
        lambda found: f"{found[1] or 'it'} is a {found[3]} and should be a {found[2]}", text
    )


def with_times(table: pa.Table) -> pa.Schema:
    """The columns of a table of text. Text that is times in ISO 8601 is a timestamp: PyArrow takes
    it for one in some forms alone."""
    fields = []
    for column in table.schema:
        kind = column.type
        if pa.types.is_timestamp(kind):
            # It cannot be told how fine others are.
            kind = _MICROS
        elif pa.types.is_string(kind):
            texts = one_array(table.column(column.name)).drop_null()
            with_clock = pc.all(pc.match_substring_regex(texts, _WITH_CLOCK)).as_py()
            if len(texts) and with_clock and micros_of(texts)[1].all():
                kind = _MICROS
        fields.append((column.name, kind))
    return pa.schema(fields)
