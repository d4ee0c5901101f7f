"""JSON lines: an object a line, which the decoder reads as it is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.json as pa_json
from numpy.typing import NDArray

from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Bytes
from spark_cep.errors import SchemaError
from spark_cep.recorded.files.text_columns import (
    NEWLINE,
    all_of,
    as_lines,
    first_values,
    joined,
    said,
    with_times,
)


@dataclass(frozen=True)
class JsonLines:
    """An object a line."""

    file: Path

    def record_ends(self, data: NDArray[np.uint8]) -> I64:
        """The places of the line ends that end a record, in a text that begins with one."""
        return np.flatnonzero(data == NEWLINE)

    def check(self, records: Bytes) -> None:
        """SchemaError where none of a file's first records is an object."""
        if not any(map(_is_object, first_values(records))):
            raise SchemaError(_no_objects(self.file, records))

    def inferred(self, records: Bytes) -> pa.Schema:
        """The columns that the first records have. Raises SchemaError."""
        self.check(records)
        sound = as_lines([value for value in first_values(records) if _is_object(value)])
        text = joined(sound)
        try:
            table = pa_json.read_json(
                pa.BufferReader(text),
                pa_json.ReadOptions(use_threads=False, block_size=len(text) + 1),
            )
            all_of(table, sound)
        except pa.ArrowInvalid as error:
            raise SchemaError(
                f"{self.file}: the types of its columns cannot be found out: {said(error)}; give"
                " the events' Avro schema with --schema"
            ) from error
        return with_times(table)


def _no_objects(file: Path, records: Bytes) -> str:
    first = (records.value(0) or b"").lstrip()[:1]
    if first == b"[":
        return (
            f"{file}: is one JSON array; an object a line is needed, as jq -c '.[]' {file.name}"
            " writes it"
        )
    return f"{file}: none of its first lines is a JSON object, which each line has to be"


def _is_object(record: bytes) -> bool:
    try:
        return isinstance(json.loads(record), dict)
    except (ValueError, RecursionError):
        return False
