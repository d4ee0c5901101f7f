"""Values of messages in Python, by Protobuf's own parser: of columns that have no place in arrays
of numbers, and for the words of a dead letter."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

from spark_cep.codecs.protobuf.descriptors import MessageFiles
from spark_cep.codecs.protobuf.message_columns import (
    TIMESTAMP_NAME,
    is_map,
    is_repeated,
    wrapped,
)
from spark_cep.pattern.expressions import ColumnPath

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
_MOST_NANOS = 999_999_999
_LARGEST = (1 << 63) - 1


@dataclass(frozen=True)
class MessageParser:
    """Parses messages of one type; picklable."""

    files: MessageFiles
    name: str

    def __call__(self, body: bytes) -> Any:
        """The message. Raises ValueError where the bytes are none."""
        try:
            return self._class.FromString(body)
        except DecodeError as error:
            raise ValueError(str(error)) from error

    @cached_property
    def _class(self) -> Any:
        return self.files.message_class(self.name)

    def __getstate__(self) -> dict[str, Any]:
        return {"files": self.files, "name": self.name}


@dataclass(frozen=True)
class MessageValue:
    """Reads the value of a column out of whole messages; picklable."""

    parser: MessageParser
    path: ColumnPath

    def __call__(self, body: bytes) -> Any:
        """The value that a message has."""
        found = self.parser(body)
        for name in self.path[:-1]:
            if not _is_there(found, found.DESCRIPTOR.fields_by_name[name]):
                return None
            found = getattr(found, name)
        return field_value(found, found.DESCRIPTOR.fields_by_name[self.path[-1]])


def plain_bytes(value: bytes) -> bytes:
    """A column of bytes, which are there as they are."""
    return value


def _is_there(message: Any, field: FieldDescriptor) -> bool:
    return not field.has_presence or message.HasField(field.name) or field.has_default_value


def field_value(message: Any, field: FieldDescriptor) -> Any:
    """The value of a field, ``None`` where it is not there."""
    value = getattr(message, field.name)
    if is_map(field):
        of = field.message_type.fields_by_number[2]
        return {_key(key): _single(value[key], of) for key in value}
    if is_repeated(field):
        return [_single(each, field) for each in value]
    return _single(value, field) if _is_there(message, field) else None


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


def _single(value: Any, field: FieldDescriptor) -> Any:
    if field.enum_type is not None:
        found = field.enum_type.values_by_number.get(value)
        return None if found is None else found.name
    of = field.message_type
    if of is None:
        return value
    if of.full_name == TIMESTAMP_NAME:
        if out_of_range(value, field):
            return None
        micros = value.seconds * 1_000_000 + value.nanos // 1_000
        return _EPOCH + dt.timedelta(microseconds=micros)
    inner = wrapped(field)
    if inner is not None:
        return value.value
    return {each.name: field_value(value, each) for each in of.fields}


def out_of_range(value: Any, field: FieldDescriptor) -> bool:
    """Return whether a value has no place in the type of its column."""
    of = field.message_type
    if of is not None:
        return of.full_name == TIMESTAMP_NAME and not (
            _FIRST_SECOND <= value.seconds <= _LAST_SECOND and 0 <= value.nanos <= _MOST_NANOS
        )
    unsigned = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)
    return field.type in unsigned and value > _LARGEST


def misfits(message: Any, path: str = "") -> Iterator[str]:
    """Yield what is wrong with values of a message and of those in it that stand alone."""
    for field, value in message.ListFields():
        if is_repeated(field):
            continue
        below = f"{path}.{field.name}" if path else field.name
        if not out_of_range(value, field):
            if field.message_type is not None and field.message_type.full_name != TIMESTAMP_NAME:
                yield from misfits(value, below)
        elif field.message_type is not None:
            yield (
                f"{below}: {value.seconds} seconds and {value.nanos} nanoseconds since 1970 are no"
                " time of the years 1 to 9999"
            )
        else:
            yield f"{below}: found {value}; allowed: a number below 2^63 (BIGINT)"
