"""The framings that schema registries put around a body.

Confluent's has two forms. In the older one the value is ``0x00``, the schema id as four bytes (big
endian) and the body. In the newer one the value is the body alone and a record header,
``__value_schema_id``, holds ``0x00`` and the id, or ``0x01`` and the schema's GUID (16 bytes); the
GUID may stand in front of the body, too. A reader looks at the header first. In that of AWS Glue
the value is ``0x03``, the compression (``0x00`` none, ``0x05`` zlib), the GUID of the schema's
version and the body. Functions on the bytes of one record, for messages and single records;
:mod:`spark_cep.codecs.registry.loops.framing_loops` does the same for many.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from spark_cep.codecs.registry.loops import framing_loops as loops
from spark_cep.codecs.registry.schema_ids import SchemaId
from spark_cep.errors import SchemaError

VALUE_HEADER = "__value_schema_id"
LARGEST_ID = 2**32 - 1
#: Most bytes of a body that is compressed.
LARGEST_BODY = 64 << 20


class Framing(StrEnum):
    """The framing of bodies: the bytes around them that name a schema."""

    REGISTRY = "registry"
    GLUE = "glue"
    NONE = "none"

    @property
    def number(self) -> int:
        """Its number in compiled loops."""
        return _NUMBERS[self]


_NUMBERS = {
    Framing.REGISTRY: loops.OF_REGISTRY,
    Framing.GLUE: loops.OF_GLUE,
    Framing.NONE: loops.UNFRAMED,
}


class FramingFault(StrEnum):
    """A fault of a framing."""

    EMPTY = "empty"
    WRONG_MAGIC = "wrong_magic"
    WRONG_LENGTH = "wrong_length"
    COMPRESSION = "compression"


class FramingError(SchemaError):
    """Bytes that do not carry a schema id; ``reason`` says why, the text what was found."""

    def __init__(self, reason: FramingFault, found: str) -> None:
        super().__init__(reason, found)
        self.reason = reason
        self.found = found

    def __str__(self) -> str:
        return self.found


class Framed(NamedTuple):
    """The schema that wrote a value, by id or by GUID, and the body."""

    schema: SchemaId
    body: bytes


def frame(schema_id: int, body: bytes) -> bytes:
    """``body`` with the prefix of ``schema_id`` in front."""
    if not 0 <= schema_id <= LARGEST_ID:
        raise SchemaError(f"schema id {schema_id} does not fit into four bytes")
    return b"\x00" + schema_id.to_bytes(4, "big") + body


def prefixed(value: bytes) -> Framed:
    """The schema in front of a value and its body; ``FramingError`` where there is none."""
    if not value:
        raise FramingError(FramingFault.EMPTY, "the value is empty: no schema id, no body")
    expected = _LENGTHS.get(value[0])
    if expected is None:
        raise FramingError(
            FramingFault.WRONG_MAGIC,
            f"the value begins with byte 0x{value[0]:02x}, not with 0x00 (schema id) or 0x01"
            f" (GUID), and no header {VALUE_HEADER} has the schema{_seems_to_be(value)}",
        )
    if len(value) < expected:
        raise FramingError(
            FramingFault.WRONG_LENGTH,
            f"the value has {len(value)} bytes, fewer than the {expected} of a schema's"
            f" {'id' if value[0] == loops.ID_MAGIC else 'GUID'}",
        )
    return Framed(_schema(value[:expected]), value[expected:])


def _seems_to_be(value: bytes) -> str:
    """A guess at what a value is that has no framing of Confluent's."""
    if value.lstrip()[:1] in (b"{", b"["):
        return " (it looks like JSON)"
    if (
        value[0] == loops.GLUE_MAGIC
        and len(value) >= loops.GLUE_LENGTH
        and value[1] in (loops.PLAIN, loops.ZLIB)
    ):
        return " (it looks like AWS Glue's framing: set framing: glue of the input)"
    return ""


def of_glue(value: bytes) -> Framed:
    """The GUID in Glue's framing, and the body without its compression; ``FramingError`` where
    there is none."""
    if not value:
        raise FramingError(FramingFault.EMPTY, "the value is empty: no schema version, no body")
    if value[0] != loops.GLUE_MAGIC:
        json = " (it looks like JSON)" if value.lstrip()[:1] in (b"{", b"[") else ""
        confluent = " (it looks like the framing of Confluent's registry)" if not value[0] else ""
        raise FramingError(
            FramingFault.WRONG_MAGIC,
            f"the value begins with byte 0x{value[0]:02x}, not with 0x03 as in AWS Glue's"
            f" framing{json}{confluent}",
        )
    if len(value) < loops.GLUE_LENGTH:
        raise FramingError(
            FramingFault.WRONG_LENGTH,
            f"the value has {len(value)} bytes, fewer than the {loops.GLUE_LENGTH} of AWS Glue's"
            " framing",
        )
    guid, body = UUID(bytes=value[2 : loops.GLUE_LENGTH]), value[loops.GLUE_LENGTH :]
    match value[1]:
        case loops.PLAIN:
            return Framed(guid, body)
        case loops.ZLIB:
            return Framed(guid, decompressed(body))
    raise FramingError(
        FramingFault.WRONG_MAGIC,
        f"the compression is byte 0x{value[1]:02x}; allowed: 0x00 (none), 0x05 (zlib)",
    )


def decompressed(body: bytes) -> bytes:
    """The bytes that zlib compressed; ``FramingError`` where it is damaged, or too large."""
    unpacking = zlib.decompressobj()
    try:
        found = unpacking.decompress(body, LARGEST_BODY)
    except zlib.error as error:
        raise FramingError(
            FramingFault.COMPRESSION, f"the body cannot be decompressed by zlib: {error}"
        ) from None
    if unpacking.eof:
        return found
    what = "ends early" if len(found) < LARGEST_BODY else f"has more than {LARGEST_BODY:,} bytes"
    raise FramingError(
        FramingFault.COMPRESSION, f"the body, which zlib compressed to {len(body):,} bytes, {what}"
    )


def read_schema_header(header: bytes) -> SchemaId:
    """The schema id or GUID in the value of a schema header."""
    if not header:
        raise FramingError(FramingFault.EMPTY, "the schema header is empty")
    expected = _LENGTHS.get(header[0])
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
    return _schema(header)


_LENGTHS = {loops.ID_MAGIC: loops.ID_LENGTH, loops.GUID_MAGIC: loops.GUID_LENGTH}


def _schema(framing: bytes) -> SchemaId:
    if framing[0] == loops.ID_MAGIC:
        return int.from_bytes(framing[1:], "big")
    return UUID(bytes=framing[1:])


class MessageFraming(NamedTuple):
    """The schema that wrote a value in Protobuf, the index of its ``message`` (``None``: there is
    none that makes sense), and the body."""

    schema: SchemaId
    message: tuple[int, ...] | None
    body: bytes


def message_framing(value: bytes, headers: Iterable[tuple[str, bytes | None]]) -> MessageFraming:
    """The framing of a value in Protobuf: behind the id or GUID, in the header as well, stands the
    index of the message. Raises FramingError."""
    found = [content for name, content in headers if name == VALUE_HEADER]
    if not found:
        schema, rest = prefixed(value)
        index, body = _index(rest)
        return MessageFraming(schema, index, body)
    header = found[-1] or b""
    length = _LENGTHS.get(header[0]) if header else None
    schema = read_schema_header(header if length is None else header[:length])
    return MessageFraming(schema, _index(header[length:])[0], value)


def message_of_glue(value: bytes) -> MessageFraming:
    """The framing of a value in Protobuf with AWS Glue's registry: the number of its message stands
    in front of the body. Raises FramingError."""
    guid, rest = of_glue(value)
    number, at = _varint(rest, 0)
    return MessageFraming(guid, None if number is None else (number,), rest[at:])


def _index(data: bytes) -> tuple[tuple[int, ...] | None, bytes]:
    """The index of a message, and the bytes behind it."""
    numbers: list[int] = []
    count, at = _zigzag(data, 0)
    if count == 0:
        return (0,), data[at:]
    while count is not None and 0 < count <= loops.MOST_LEVELS and len(numbers) < count:
        number, at = _zigzag(data, at)
        if number is None:
            break
        numbers.append(number)
    whole = count is not None and len(numbers) == count
    return (tuple(numbers), data[at:]) if whole else (None, data)


def _zigzag(data: bytes, at: int) -> tuple[int | None, int]:
    value, behind = _varint(data, at)
    return None if value is None else (value >> 1) ^ -(value & 1), behind


def _varint(data: bytes, at: int) -> tuple[int | None, int]:
    value = 0
    for shift, byte in enumerate(data[at : at + 10]):
        value |= (byte & 127) << 7 * shift
        if byte < 128:  # noqa: PLR2004  the last byte of a varint
            return value, at + shift + 1
    return None, at


def locate(value: bytes, headers: Iterable[tuple[str, bytes | None]] = ()) -> Framed:
    """The schema and body of a record value: by its last schema header, else by its prefix."""
    found = [content for name, content in headers if name == VALUE_HEADER]
    if found:
        return Framed(read_schema_header(found[-1] or b""), value)
    return prefixed(value)
