"""Output records in JSON: one by one, or results that are columns, field by field.

Times are ISO 8601 in UTC with milliseconds, bytes base64, and NaN and infinities texts, as in
values that travel as text (:mod:`spark_cep.matcher.findings.output_values`).
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from json.encoder import encode_basestring as _text
from typing import Any

import numpy as np

from spark_cep.codecs.output.fields import RECORDS, Contract
from spark_cep.codecs.output.record_shape import FieldType, Record
from spark_cep.codecs.output.result_columns import Chosen, FieldColumns
from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Bytes, reader
from spark_cep.errors import OutputError
from spark_cep.matcher.findings.named_values import NamedValues
from spark_cep.matcher.findings.output_values import output_value, time_texts

_WRONG = (ValueError, TypeError, OverflowError)
_NULL = "null"


@dataclass(frozen=True, slots=True)
class JsonResults:
    """Writes records as JSON objects with the fields of the table."""

    def value(self, contract: Contract, result: Any, now: int, origin: str) -> bytes:
        """See :class:`~spark_cep.codecs.output.outputs.ResultEncoder`."""
        record = RECORDS[contract]
        try:
            return _object(record, record.values(result, now)).encode()
        except _WRONG as error:
            raise OutputError(f"{origin} cannot be written as JSON: {error}") from error

    def values(self, contract: Contract, columns: FieldColumns, now: int) -> Bytes:
        """See :class:`~spark_cep.codecs.output.outputs.ResultEncoder`."""
        record = RECORDS[contract]
        rows, events = len(columns.row), len(columns.topic)
        items: list[str] = []
        if record.items is not None:
            of_step, of_event = record.items, record.items.items
            assert of_event is not None
            taken = _objects(_members(of_event, columns, now, events), events)
            steps = _members(of_step, columns, now, events, items=["[]"] * events)
            items = _steps(of_step, steps, columns, taken)
        of_row = _members(record, columns, now, rows, items)
        return Bytes.of([text.encode() for text in _objects(of_row, rows)])


def _object(record: Record, values: Mapping[str, Any]) -> str:
    """A record as a text. Its fields are in the order of the table."""
    members = (f"{_text(f.name)}:{_value(f.type, values[f.name])}" for f in record.fields)
    return f"{{{','.join(members)}}}"


def _value(of: FieldType | Record, value: Any) -> str:
    match of:
        case Record():
            return f"[{','.join(_object(of, each) for each in value)}]"
        case _ if value is None:
            return _NULL
        case FieldType.TIME:
            return _times([value])[0]
        case FieldType.VALUES | FieldType.OPTIONAL_VALUES:
            members = (f"{_text(name)}:{_plain(each)}" for name, each in value.items())
            return f"{{{','.join(members)}}}"
        case FieldType.FLAG:
            return "true" if value else "false"
    return _plain(value)


def _plain(value: Any) -> str:
    """A value of the types of the output schemas."""
    match value:
        case str():
            return _text(value)
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return float.__repr__(value)
        case float():
            return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
        case bytes():
            return f'"{b64encode(value).decode("ascii")}"'
        case list():
            return f"[{','.join(map(_plain, value))}]"
    return json.dumps(value)


def _times(times: Sequence[int] | I64) -> list[str]:
    return [f'"{text}"' for text in time_texts(times)]


def _objects(members: Sequence[Iterable[str]], count: int) -> list[str]:
    """Objects of these members, each of which is a text of all rows, or one for each."""
    if not members:
        return ["{}"] * count
    return [f"{{{','.join(row)}}}" for row in zip(*members, strict=False)][:count]


def _members(
    record: Record, columns: FieldColumns, now: int, count: int, items: Sequence[str] = ()
) -> list[Iterable[str]]:
    """The members of the objects of one level, ``count`` of them; ``items``: the text of the field
    that is an array."""
    found: list[Iterable[str]] = []
    for field in record.fields:
        name = f"{_text(field.name)}:"
        if isinstance(field.type, Record):
            found.append([name + each for each in items])
            continue
        column = None if field.column is None else field.column(columns)
        if field.of is None:
            found.append(repeat(name + _times([now])[0], count))
        elif column is None:
            found.append(repeat(name + ("{}" if field.type is FieldType.VALUES else _NULL), count))
        else:
            found.append([name + each for each in _column(field.type, column)])
    return found


def _column(of: FieldType, column: I64 | Chosen | NamedValues) -> list[str]:
    """The values of a field, a text for each row."""
    if isinstance(column, NamedValues):
        return _named(column, "{}" if of is FieldType.VALUES else _NULL)
    if isinstance(column, Chosen):
        used, place = np.unique(column.numbers, return_inverse=True)
        is_text = of is not FieldType.OPTIONAL_BYTES
        texts = [
            _NULL if number < 0
            else _plain(column.texts.text(number) if is_text else column.texts.value(number))
            for number in used.tolist()
        ]  # fmt: skip
        return [texts[each] for each in place.tolist()]
    if of is FieldType.TIME:
        return _times(column)
    if of is FieldType.FLAG:
        return ["true" if each else "false" for each in column.tolist()]
    return list(map(str, column.tolist()))


def _named(values: NamedValues, empty: str) -> list[str]:
    """The objects of values by name, one for each row; ``empty``: of a row without any."""
    names = [f"{_text(name)}:" for name in values.names]
    texts = [_NULL] * len(values.name)
    for places, column, kind in values.typed:
        read = reader(column, kind)
        try:
            for number, place in enumerate(places.tolist()):
                value = output_value(read(number))
                if value is not None:
                    texts[place] = _plain(value)
        except _WRONG as error:
            which = values.names[int(values.name[place])]
            raise OutputError(f"a value of {which} cannot be written as JSON: {error}") from error
    members = [names[name] + text for name, text in zip(values.name.tolist(), texts, strict=True)]
    found, first = [], 0
    for end in values.ends.tolist():
        found.append(f"{{{','.join(members[first:end])}}}" if first < end else empty)
        first = end
    return found


def _steps(
    record: Record, members: Sequence[Iterable[str]], columns: FieldColumns, events: list[str]
) -> list[str]:
    """The arrays of steps, one for each row: a step has the members at its first event."""
    rows: list[str] = []
    (place,) = (n for n, field in enumerate(record.fields) if isinstance(field.type, Record))
    name = f"{_text(record.fields[place].name)}:"
    of_step = [list(each) for each in members]
    step, first = columns.step.tolist(), 0
    for end, taken in zip(columns.ends.tolist(), columns.taken.tolist(), strict=True):
        steps: list[str] = []
        at = first
        while at < first + taken:
            behind = at + 1
            while behind < first + taken and step[behind] == step[at]:
                behind += 1
            parts = [each[at] for each in of_step]
            parts[place] = f"{name}[{','.join(events[at:behind])}]"
            steps.append(f"{{{','.join(parts)}}}")
            at = behind
        rows.append(f"[{','.join(steps)}]")
        first = end
    return rows
