"""JSON lines: an object a line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pa_json
from numpy.typing import NDArray

from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Bytes
from spark_cep.errors import SchemaError
from spark_cep.recorded.files.row_writer import RowColumn, RowError
from spark_cep.recorded.files.text_columns import (
    NEWLINE,
    Columns,
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


@dataclass(frozen=True)
class JsonLines:
    """An object a line. ``reads``: the columns that PyArrow reads; ``nested``: those whose values
    are objects of Python."""

    file: Path
    reads: Mapping[str, ReadColumn]
    nested: tuple[str, ...] = ()

    def record_ends(self, data: NDArray[np.uint8]) -> I64:
        """See :class:`TextForm`."""
        return np.flatnonzero(data == NEWLINE)

    def columns(self, records: Bytes) -> Columns:
        """See :class:`TextForm`."""
        found: dict[str, pa.Array | list[Any]] = {}
        if self.reads or not self.nested:
            schema = pa.schema([(name, each.given) for name, each in self.reads.items()])
            table = _json_table(records, schema, "ignore")
            for name, each in self.reads.items():
                found[name] = each.made(one_array(table.column(name)))
        if self.nested:
            objects = [_object(record) for record in records.values()]
            found |= {name: [each.get(name) for each in objects] for name in self.nested}
        return found

    def explain(self, record: Bytes, error: Exception) -> str:
        """See :class:`TextForm`."""
        try:
            _object(record.value(0))
        except RowError as no_object:
            return str(no_object)
        if isinstance(error, pa.ArrowException):
            for name, each in self.reads.items():
                try:
                    _json_table(record, pa.schema([(name, each.given)]), "ignore")
                except pa.ArrowException as of_column:
                    told = said(of_column)
                    # PyArrow names the column of some errors.
                    return told if name in told or len(self.reads) == 1 else f"{name}: {told}"
        return said(error)

    def inferred(self, records: Bytes) -> pa.Schema:
        """See :class:`TextForm`."""
        sound = [value for value in first_values(records) if _is_object(value)]
        if not sound:
            raise SchemaError(_no_objects(self.file, records))
        try:
            table = _json_table(as_lines(sound), None, "infer")
        except pa.ArrowInvalid as error:
            raise SchemaError(
                f"{self.file}: the types of its columns cannot be found out: {said(error)}; give"
                " the events' Avro schema with --schema"
            ) from error
        return with_times(table)

    def reading(self, columns: Sequence[RowColumn], records: Bytes) -> JsonLines:
        """See :class:`TextForm`."""
        objects = [_object(value) for value in first_values(records) if _is_object(value)]
        if not objects and len(records):
            raise SchemaError(_no_objects(self.file, records))

        def is_text(name: str) -> bool:
            return isinstance(next(filter(None, (o.get(name) for o in objects)), ""), str)

        nested = tuple(each.name for each in columns if each.arrow is None)
        return JsonLines(self.file, columns_read(columns, is_text), nested)


def _no_objects(file: Path, records: Bytes) -> str:
    first = (records.value(0) or b"").lstrip()[:1]
    if first == b"[":
        return (
            f"{file}: is one JSON array; an object a line is needed, as jq -c '.[]' {file.name}"
            " writes it"
        )
    return f"{file}: none of its first lines is a JSON object, which each line has to be"


def _json_table(records: Bytes, schema: pa.Schema | None, others: str) -> pa.Table:
    text = joined(records)
    table = pa_json.read_json(
        pa.BufferReader(text),
        pa_json.ReadOptions(use_threads=False, block_size=len(text) + 1),
        pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=others),
    )
    return all_of(table, records)


def _object(record: bytes | None) -> dict[str, Any]:
    try:
        found = json.loads(record or b"")
    except ValueError as error:
        raise RowError(f"it is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise RowError("it is no JSON object")
    return found


def _is_object(record: bytes) -> bool:
    try:
        _object(record)
    except RowError:
        return False
    return True
