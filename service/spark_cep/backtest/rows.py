"""Results as rows: the fields of the output records, for files that people and tools read."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, cast

import pyarrow as pa

from spark_cep.backtest.replay import ReplayedBatch
from spark_cep.codecs.output.fields import RECORDS, Contract
from spark_cep.codecs.output.record_shape import FieldType, OutputField, Record
from spark_cep.event_times import time_text

_LATE = Record(
    "LateEvent",
    "An event that came too late.",
    (
        OutputField("topic", FieldType.TEXT, "", "at.topic"),
        OutputField("partition", FieldType.INT, "", "at.partition"),
        OutputField("offset", FieldType.LONG, "", "at.offset"),
        OutputField("time", FieldType.TIME, "", "time"),
        OutputField("watermark", FieldType.TIME, "", "watermark"),
        OutputField("record_key", FieldType.OPTIONAL_BYTES, "", "record_key"),
        OutputField("record_value", FieldType.OPTIONAL_BYTES, "", "record_value"),
    ),
)


class Kind(Enum):
    """The kinds of results, by the names of their files."""

    MATCHES = "matches"
    ROWS = "match-rows"
    TIMEOUTS = "timeouts"
    LATE = "late"
    DEAD_LETTERS = "dead-letters"


_CONTRACTS = {
    Kind.MATCHES: "match",
    Kind.ROWS: "match-row",
    Kind.TIMEOUTS: "timeout",
    Kind.DEAD_LETTERS: "dead-letter",
}


def record_of(kind: Kind) -> Record:
    """The fields of a kind, without processing time."""
    if kind is Kind.LATE:
        return _LATE
    record = RECORDS[cast("Contract", _CONTRACTS[kind])]
    fields = tuple(each for each in record.fields if each.of is not None)
    return Record(record.name, record.doc, fields)


_RECORDS = {kind: record_of(kind) for kind in Kind}


def rows_of(found: ReplayedBatch) -> Iterator[tuple[Kind, dict[str, Any]]]:
    """The rows of all results of a batch."""
    outputs = found.objects
    for kind, results in (
        (Kind.MATCHES, outputs.matches),
        (Kind.ROWS, outputs.rows),
        (Kind.TIMEOUTS, outputs.timeouts),
        (Kind.LATE, found.results.late),
        (Kind.DEAD_LETTERS, found.letters),
    ):
        for each in results:
            yield kind, _RECORDS[kind].values(each, 0)


def as_json(kind: Kind, row: Mapping[str, Any]) -> str:
    """A row as one line of JSON: times in ISO 8601 (UTC), bytes in base64."""
    return json.dumps(json_values(_RECORDS[kind], row), ensure_ascii=False, allow_nan=False)


def json_values(record: Record, row: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a row as JSON has them."""
    return {field.name: _json(field.type, row[field.name]) for field in record.fields}


def _json(of: FieldType | Record, value: Any) -> Any:
    if isinstance(of, Record):
        return [json_values(of, item) for item in value]
    if value is None:
        return None
    match of:
        case FieldType.TIME:
            return time_text(value)
        case FieldType.VALUES | FieldType.OPTIONAL_VALUES:
            return {name: _plain(each) for name, each in value.items()}
        case _:
            return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def arrow_schema(kind: Kind) -> pa.Schema:
    """The columns of a kind in Parquet; values by name are JSON texts there."""
    return pa.schema([(each.name, _arrow(each.type)) for each in _RECORDS[kind].fields])


def _arrow(of: FieldType | Record) -> pa.DataType:
    if isinstance(of, Record):
        return pa.list_(pa.struct([(each.name, _arrow(each.type)) for each in of.fields]))
    return _ARROW[of]


_ARROW: Mapping[FieldType, pa.DataType] = {
    FieldType.TEXT: pa.string(),
    FieldType.OPTIONAL_TEXT: pa.string(),
    FieldType.INT: pa.int32(),
    FieldType.LONG: pa.int64(),
    FieldType.TIME: pa.timestamp("ms", "UTC"),
    FieldType.FLAG: pa.bool_(),
    FieldType.OPTIONAL_BYTES: pa.binary(),
    FieldType.VALUES: pa.string(),
    FieldType.OPTIONAL_VALUES: pa.string(),
}


def arrow_values(kind: Kind, row: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a row as :func:`arrow_schema` has them."""
    return _arrow_values(_RECORDS[kind], row)


def _arrow_values(record: Record, row: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for field in record.fields:
        value = row[field.name]
        if isinstance(field.type, Record):
            value = [_arrow_values(field.type, item) for item in value]
        elif field.type in (FieldType.VALUES, FieldType.OPTIONAL_VALUES) and value is not None:
            value = json.dumps(_json(field.type, value), ensure_ascii=False)
        found[field.name] = value
    return found
