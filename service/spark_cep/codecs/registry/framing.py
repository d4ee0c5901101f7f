"""The framing that schema registries put around an Avro body.

Two forms are in use. In the older one the value is ``0x00``, the schema id as four bytes (big
endian) and the body. In the newer one the value is the body alone and a record header,
``__value_schema_id``, holds ``0x00`` and the id, or ``0x01`` and the schema's GUID (16 bytes). A
reader looks at the header first. Pure functions on bytes; the registry is asked elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from spark_cep.errors import SchemaError

VALUE_HEADER = "__value_schema_id"
PREFIX_LENGTH = 5
LARGEST_ID = 2**32 - 1

_ID_MAGIC = 0x00
_GUID_MAGIC = 0x01
_GUID_LENGTH = 17


class FramingFault(StrEnum):
    """A fault of a framing."""

    EMPTY = "empty"
    WRONG_MAGIC = "wrong_magic"
    WRONG_LENGTH = "wrong_length"


class FramingError(SchemaError):
    """Bytes that do not carry a schema id; ``reason`` says why, the text what was found."""

    def __init__(self, reason: FramingFault, found: str) -> None:
        super().__init__(reason, found)
        self.reason = reason
        self.found = found

    def __str__(self) -> str:
        return self.found


class Framed(NamedTuple):
    """The schema that wrote a value, by id or by GUID, and the offset of the body in the value."""

    schema: int | UUID
    body_start: int


def frame(schema_id: int, body: bytes) -> bytes:
    """``body`` with the prefix of ``schema_id`` in front."""
    if not 0 <= schema_id <= LARGEST_ID:
        raise SchemaError(f"schema id {schema_id} does not fit into four bytes")
    return b"\x00" + schema_id.to_bytes(4, "big") + body


def read_schema_id(value: bytes) -> int:
    """The schema id in front of ``value``; ``FramingError`` where there is none."""
    if not value:
        raise FramingError(FramingFault.EMPTY, "the value is empty: no schema id, no body")
    if value[0] != _ID_MAGIC:
        json = " (it looks like JSON)" if value.lstrip()[:1] in (b"{", b"[") else ""
        raise FramingError(
            FramingFault.WRONG_MAGIC,
            f"the value begins with byte 0x{value[0]:02x}, not with 0x00{json}",
        )
    if len(value) < PREFIX_LENGTH:
        raise FramingError(
            FramingFault.WRONG_LENGTH,
            f"the value has {len(value)} bytes, fewer than the {PREFIX_LENGTH} of a schema id",
        )
    return int.from_bytes(value[1:PREFIX_LENGTH], "big")


def read_schema_header(header: bytes) -> int | UUID:
    """The schema id or GUID in the value of a schema header."""
    if not header:
        raise FramingError(FramingFault.EMPTY, "the schema header is empty")
    expected = {_ID_MAGIC: PREFIX_LENGTH, _GUID_MAGIC: _GUID_LENGTH}.get(header[0])
    if expected is None:
        raise FramingError(
            FramingFault.WRONG_MAGIC,
            f"the schema header begins with byte 0x{header[0]:02x}, not with 0x00 (id) or 0x01"
            " (GUID)",
        )
    if len(header) != expected:
        raise FramingError(
            FramingFault.WRONG_LENGTH,
            f"the schema header has {len(header)} bytes; its kind has {expected}",
        )
    if header[0] == _ID_MAGIC:
        return int.from_bytes(header[1:], "big")
    return UUID(bytes=header[1:])


def locate(value: bytes, headers: Iterable[tuple[str, bytes | None]] = ()) -> Framed:
    """The schema and body of a record value: by its last schema header, else by its prefix."""
    found = [content for name, content in headers if name == VALUE_HEADER]
    if found:
        return Framed(read_schema_header(found[-1] or b""), 0)
    return Framed(read_schema_id(value), PREFIX_LENGTH)
