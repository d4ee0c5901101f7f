"""CSV: values with delimiters between, their names in the first line."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Bytes
from spark_cep.errors import SchemaError
from spark_cep.recorded.files.row_writer import RowColumn
from spark_cep.recorded.files.text_columns import (
    NEWLINE,
    ReadColumn,
    all_of,
    as_lines,
    columns_read,
    first_values,
    joined,
    one_array,
    said,
    with_times,
)

_QUOTE = ord('"')
_DELIMITERS = ",;\t|"
#: A number or a time, which is no name.
_VALUE = re.compile(r"[-+]?[0-9][-+0-9.,:/TZ ]*")
_OF_COLUMN = re.compile(r"In CSV column #(\d+): (?:Row #1: )?")


@dataclass(frozen=True)
class CsvLines:
    """Values with delimiters between, their names in the first line. A value in double quotes may
    have delimiters and line ends in it."""

    file: Path
    names: tuple[str, ...]
    delimiter: str
    reads: Mapping[str, ReadColumn]

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
        values = [name for name in names if _VALUE.fullmatch(name)]
        if values:
            raise SchemaError(
                f"{file}: the first line has to have the name of each column, and has the value"
                f" {values[0]!r}"
            )
        return cls(file, tuple(names), delimiter, {})

    def record_ends(self, data: NDArray[np.uint8]) -> I64:
        """The places of the line ends that end a record, in a text that begins with one."""
        ends = np.flatnonzero(data == NEWLINE)
        quotes = np.flatnonzero(data == _QUOTE)
        if not len(quotes):
            return ends
        # Where the number of quotes so far is odd, it is inside of some.
        outside: I64 = ends[np.searchsorted(quotes, ends) % 2 == 0]
        return outside

    def columns(self, records: Bytes) -> Mapping[str, pa.Array]:
        """The columns of records. Raises RowError, or what PyArrow does, where one is wrong."""
        types = {name: each.given for name, each in self.reads.items()}
        table = self._table(records, types)
        found = {}
        for name, each in self.reads.items():
            array = one_array(table.column(name))
            if pa.types.is_string(array.type) and not each.column.can_lack:
                array = array.fill_null("")
            found[name] = each.made(array)
        return found

    def _table(self, records: Bytes, types: Mapping[str, pa.DataType] | None) -> pa.Table:
        text = joined(records)
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
        return all_of(table, records)

    def explain(self, error: Exception) -> str:
        """Return why a record cannot be read, which failed with ``error``."""
        named = _OF_COLUMN.sub(lambda found: f"{self.names[int(found[1])]}: ", said(error))
        return named.removeprefix("Row #1: ")

    def inferred(self, records: Bytes) -> pa.Schema:
        """The columns that the first records have. Raises SchemaError."""
        sound = [v for v in first_values(records) if len(self._cells(v)) == len(self.names)]
        if not sound:
            raise SchemaError(
                f"{self.file}: none of its first records has {len(self.names)} values, as the first"
                " line says"
            )
        return with_times(self._table(as_lines(sound), None))

    def reading(self, columns: Sequence[RowColumn], records: Bytes) -> CsvLines:
        """The form that reads these columns of a file with these first ``records``. Raises
        SchemaError where the file lacks one."""
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
        rows = [dict(zip(self.names, self._cells(v), strict=False)) for v in first_values(records)]

        def is_text(name: str) -> bool:
            seen = next(filter(None, (row.get(name) for row in rows)), "")
            return not re.fullmatch(r"-?\d+", seen)

        there = [each for each in columns if each.name in self.names]
        return CsvLines(self.file, self.names, self.delimiter, columns_read(there, is_text))

    def _cells(self, record: bytes) -> list[str]:
        text = StringIO(record.decode("utf-8", "replace"), newline="")
        return next(csv.reader(text, delimiter=self.delimiter), [])
