"""The messages of schemas, next to those that they are read as."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from spark_cep.codecs.protobuf.loops.message_framing import MOST_INDEX
from spark_cep.codecs.registry.loops.framing_loops import MOST_LEVELS

_F = FieldDescriptor
#: Types whose values are written alike, and read as one of the others.
_ALIKE = (
    {_F.TYPE_INT32, _F.TYPE_INT64, _F.TYPE_UINT32, _F.TYPE_UINT64, _F.TYPE_BOOL, _F.TYPE_ENUM},
    {_F.TYPE_SINT32, _F.TYPE_SINT64},
    {_F.TYPE_FIXED32, _F.TYPE_SFIXED32},
    {_F.TYPE_FIXED64, _F.TYPE_SFIXED64},
    {_F.TYPE_STRING, _F.TYPE_BYTES},
)


class WriterMessage(NamedTuple):
    """A ``message`` of a schema, by its index as one number, and the number of the type that it is
    read as (``None``: no input reads it)."""

    message: int
    type: int | None


def index_of(index: Sequence[int]) -> int | None:
    """The index of a message as one number; ``None``: it is too large."""
    if len(index) > MOST_LEVELS or max(index) >= MOST_INDEX:
        return None
    found = 0
    for each in index:
        found = found << 12 | (each + 1)
    return found


def differences(written: Descriptor, read: Descriptor) -> list[str]:
    """Return why a message that was written as one cannot be read as the other."""
    return [*_differences(written, read, "", set())]


def _differences(
    written: Descriptor, read: Descriptor, path: str, seen: set[tuple[str, str]]
) -> Iterator[str]:
    pair = (written.full_name, read.full_name)
    if pair in seen:
        return
    seen.add(pair)
    for field in read.fields:
        other = written.fields_by_number.get(field.number)
        if other is None:
            continue
        below = f"{path}.{field.name}" if path else field.name
        if field.is_repeated != other.is_repeated:
            yield f"{below}: is repeated in one and not in the other"
        elif field.message_type is not None and other.message_type is not None:
            yield from _differences(other.message_type, field.message_type, below, seen)
        elif field.type != other.type and not any(
            {field.type, other.type} <= alike for alike in _ALIKE
        ):
            yield f"{below}: field {field.number} is of another type"
