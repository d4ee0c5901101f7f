"""JSON lines and CSV: where the records of a text are, and the columns in them."""

from __future__ import annotations

import csv
import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
from numpy.typing import NDArray

from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import LENGTH_BITS, LENGTH_MASK, Bytes
from spark_cep.errors import ConfigurationError, SchemaError
from spark_cep.pipeline.decode.iso_times import micros_of
from spark_cep.recorded.row_writer import Column, RowError

#: Records that are looked at to find out about a file.
_LOOKED_AT = 1_000
_NEWLINE, _QUOTE = ord("\n"), ord('"')
_DELIMITERS = ",;\t|"
#: PyArrow's words for a value of another type, which it calls a change.
_CHANGED = re.compile(r"Column\(/(.*)\) changed from (\w+) to (\w+)")
_MICROS = pa.timestamp("us", "UTC")

Columns = Mapping[str, pa.Array | list[Any]]


class TextForm(Protocol):
    """A form of text with a record for each event."""

    def record_ends(self, data: NDArray[np.uint8]) -> I64:
        """The places of the line ends that end a record, in a text that begins with one."""

    def columns(self, records: Bytes) -> Columns:
        """The columns of records. Raises RowError, or what PyArrow does, where one is wrong."""

    def inferred(self, records: Bytes) -> pa.Schema:
        """The columns that the first records have. Raises SchemaError."""

    def reading(self, columns: Sequence[Column], records: Bytes) -> TextForm:
        """The form that reads these columns of a file with these first ``records``. Raises
        SchemaError where the file lacks one."""


@dataclass(frozen=True)
class _Read:
    """A column as it is read: ``given`` in the text, and made what it should be."""

    column: Column
    given: pa.DataType

    def made(self, array: pa.Array) -> pa.Array:
        """The values. Raises RowError."""
        wanted = self.column.arrow
        if array.type == wanted:
            return array
        if pa.types.is_binary(wanted):
            values = [
                None if each is None else _decoded(each, self.column) for each in array.to_pylist()
            ]
            return pa.array(values, pa.binary())
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


def _decoded(text: str | None, column: Column) -> bytes | None:
    try:
        return None if text is None else b64decode(text, validate=True)
    except ValueError as error:
        raise RowError(f"{column.name} is {text!r}, which is no base64: {error}") from error


def _reads(columns: Iterable[Column], is_text: Callable[[str], bool]) -> dict[str, _Read]:
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
        found[column.name] = _Read(column, given)
    return found


@dataclass(frozen=True)
class JsonLines:
    """An object a line. ``reads``: the columns that PyArrow reads; ``nested``: those whose values
    are objects of Python."""

    file: Path
    reads: Mapping[str, _Read]
    nested: tuple[str, ...] = ()

    def record_ends(self, data: NDArray[np.uint8]) -> I64:
        """See :class:`TextForm`."""
        return np.flatnonzero(data == _NEWLINE)

    def columns(self, records: Bytes) -> Columns:
        """See :class:`TextForm`."""
        found: dict[str, pa.Array | list[Any]] = {}
        if self.reads or not self.nested:
            schema = pa.schema([(name, each.given) for name, each in self.reads.items()])
            table = _json_table(records, schema, "ignore")
            for name, each in self.reads.items():
                found[name] = each.made(_one_array(table.column(name)))
        if self.nested:
            objects = [_object(record) for record in records.values()]
            found |= {name: [each.get(name) for each in objects] for name in self.nested}
        return found

    def inferred(self, records: Bytes) -> pa.Schema:
        """See :class:`TextForm`."""
        sound = [value for value in _first(records) if _is_object(value)]
        if not sound:
            raise SchemaError(_no_objects(self.file, records))
        try:
            table = _json_table(Bytes.of(sound), None, "infer")
        except pa.ArrowInvalid as error:
            raise SchemaError(
                f"{self.file}: the types of its columns cannot be found out: {_said(error)}; give"
                " the events' Avro schema with --schema"
            ) from error
        # Of text with times it cannot be told how fine they are.
        return pa.schema(
            [
                (each.name, _MICROS if pa.types.is_timestamp(each.type) else each.type)
                for each in table.schema
            ]
        )

    def reading(self, columns: Sequence[Column], records: Bytes) -> JsonLines:
        """See :class:`TextForm`."""
        objects = [_object(value) for value in _first(records) if _is_object(value)]
        if not objects and len(records):
            raise SchemaError(_no_objects(self.file, records))

        def is_text(name: str) -> bool:
            return isinstance(next(filter(None, (o.get(name) for o in objects)), ""), str)

        nested = tuple(each.name for each in columns if each.arrow is None)
        return JsonLines(self.file, _reads(columns, is_text), nested)


def _no_objects(file: Path, records: Bytes) -> str:
    first = (records.value(0) or b"").lstrip()[:1]
    if first == b"[":
        return (
            f"{file}: is one JSON array; an object a line is needed, as jq -c '.[]' {file.name}"
            " writes it"
        )
    return f"{file}: none of its first lines is a JSON object, which each line has to be"


@dataclass(frozen=True)
class CsvLines:
    """Values with delimiters between, their names in the first line. A value in double quotes may
    have delimiters and line ends in it."""

    file: Path
    names: tuple[str, ...]
    delimiter: str
    reads: Mapping[str, _Read]

    @classmethod
    def of(cls, file: Path, header: bytes) -> CsvLines:
        """The form of a file with this first line. Raises SchemaError."""
        line = header.decode("utf-8", "replace").strip("\r\n")
        delimiter = max(_DELIMITERS, key=line.count)
        names = next(csv.reader(StringIO(line), delimiter=delimiter), [])
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice or not all(names):
            what = f"the name {twice[0]!r} twice" if twice else "a column without a name"
            raise SchemaError(
                f"{file}: the first line has {what}; it has to have the name of each column"
            )
        return cls(file, tuple(names), delimiter, {})

    def record_ends(self, data: NDArray[np.uint8]) -> I64:
        """See :class:`TextForm`."""
        ends = np.flatnonzero(data == _NEWLINE)
        quotes = np.flatnonzero(data == _QUOTE)
        if not len(quotes):
            return ends
        # Where the number of quotes so far is odd, it is inside of some.
        return ends[np.searchsorted(quotes, ends) % 2 == 0]

    def columns(self, records: Bytes) -> Columns:
        """See :class:`TextForm`."""
        types = {name: each.given for name, each in self.reads.items()}
        table = self._table(records, types)
        found = {}
        for name, each in self.reads.items():
            array = _one_array(table.column(name))
            if pa.types.is_string(array.type) and not each.column.can_lack:
                array = array.fill_null("")
            found[name] = each.made(array)
        return found

    def _table(self, records: Bytes, types: Mapping[str, pa.DataType] | None) -> pa.Table:
        text = _joined(records)
        table = pa_csv.read_csv(
            pa.BufferReader(text),
            pa_csv.ReadOptions(
                use_threads=False, block_size=len(text) + 1, column_names=self.names
            ),
            pa_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            pa_csv.ConvertOptions(
                column_types=types,
                include_columns=None if types is None else list(types),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        return _all_of(table, records)

    def inferred(self, records: Bytes) -> pa.Schema:
        """See :class:`TextForm`."""
        sound = [v for v in _first(records) if len(self._cells(v)) == len(self.names)]
        if not sound:
            raise SchemaError(
                f"{self.file}: none of its first records has {len(self.names)} values, as the first"
                " line says"
            )
        return pa.schema(
            [
                (each.name, _MICROS if pa.types.is_timestamp(each.type) else each.type)
                for each in self._table(Bytes.of(sound), None).schema
            ]
        )

    def reading(self, columns: Sequence[Column], records: Bytes) -> CsvLines:
        """See :class:`TextForm`."""
        nested = [each.name for each in columns if each.arrow is None and each.name in self.names]
        if nested:
            raise SchemaError(
                f"{self.file}: {', '.join(nested)} nests in the schema, and CSV has no such values;"
                " use JSON lines"
            )
        missing = [each.name for each in columns if each.name not in self.names]
        if needed := [e.name for e in columns if e.name in missing and not e.can_lack]:
            raise SchemaError(
                f"{self.file}: has no column {', '.join(needed)}, which the schema needs; it has"
                f" {', '.join(self.names)}"
            )
        rows = [dict(zip(self.names, self._cells(v), strict=False)) for v in _first(records)]

        def is_text(name: str) -> bool:
            seen = next(filter(None, (row.get(name) for row in rows)), "")
            return not re.fullmatch(r"-?\d+", seen)

        there = [each for each in columns if each.name in self.names]
        return CsvLines(self.file, self.names, self.delimiter, _reads(there, is_text))

    def _cells(self, record: bytes) -> list[str]:
        text = StringIO(record.decode("utf-8", "replace"), newline="")
        return next(csv.reader(text, delimiter=self.delimiter), [])


def _first(records: Bytes) -> list[bytes]:
    return [value for value in islice(records.values(), _LOOKED_AT) if value is not None]


def _joined(records: Bytes) -> bytes:
    """The text from the first record to the last."""
    first, last = int(records.places[0]), int(records.places[-1])
    end = (last >> LENGTH_BITS) + (last & LENGTH_MASK)
    return records.data[first >> LENGTH_BITS : end].tobytes()


def _json_table(records: Bytes, schema: pa.Schema | None, others: str) -> pa.Table:
    text = _joined(records)
    table = pa_json.read_json(
        pa.BufferReader(text),
        pa_json.ReadOptions(use_threads=False, block_size=len(text) + 1),
        pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=others),
    )
    return _all_of(table, records)


def _all_of(table: pa.Table, records: Bytes) -> pa.Table:
    if table.num_rows != len(records):
        raise RowError(f"there are {table.num_rows} records where one is due")
    return table


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _object(record: bytes | None) -> dict[str, Any]:
    try:
        found = json.loads(record or b"")
    except ValueError as error:
        raise RowError(str(error)) from error
    if not isinstance(found, dict):
        raise RowError("it is no JSON object")
    return found


def _is_object(record: bytes) -> bool:
    try:
        _object(record)
    except RowError:
        return False
    return True


def _said(error: Exception) -> str:
    """The error in the words of records."""
    text = str(error).removeprefix("JSON parse error: ").removeprefix("CSV parse error: ")
    text = re.sub(r" in row \d+$", "", text).strip()
    return _CHANGED.sub(r"\1 is a \3 and should be a \2", text)


def why(error: Exception) -> str:
    """Return why one record cannot be read, by the error of reading it alone."""
    return _said(error).removeprefix("Row #1: ")


def form_of(file: Path, header: bytes) -> TextForm:
    """The form of a file that begins with this line."""
    suffixes = [each.lower() for each in file.suffixes]
    if {".csv", ".tsv"} & set(suffixes):
        return CsvLines.of(file, header)
    return JsonLines(file, {})


def unreadable(file: Path, error: OSError) -> ConfigurationError:
    """Return the error for a file that cannot be read."""
    return ConfigurationError(f"{file}: cannot be read: {error.strerror or error}")
