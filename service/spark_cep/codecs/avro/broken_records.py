"""Explanations of broken Avro records, for people.

A record that the compiled loops refuse is decoded once more by fastavro, which has words for what
is wrong.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from io import BytesIO
from typing import Any

import fastavro

from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.avro.schema_nodes import Node, children
from spark_cep.codecs.output.dead_letters import LONGEST_DETAIL, Reason
from spark_cep.errors import shortened

LARGEST_EXPLAINED = 1_000_000
#: Most fields of the items that so many bytes could be: an item of a byte may have hundreds, null
#: or by default.
_MOST_FIELDS = 5_000_000

_DECODE_ERRORS = (
    EOFError,
    LookupError,
    ValueError,
    TypeError,
    ArithmeticError,
    AttributeError,
    struct.error,
    fastavro.read.SchemaResolutionError,
)


def explain_undecodable(body: bytes, writer: AvroSchema, reader: AvroSchema) -> tuple[Reason, str]:
    """Why a record of these bytes, which the decoder refused, gave no event; never raises."""
    # Java's decoder is stricter than this one in nothing else.
    unknown = (
        "the body does not fit the writer schema: a number in it (an int, a length, the index of a"
        " symbol or branch) is out of its range"
    )
    return decoding_fault(body, writer, reader) or (Reason.UNDECODABLE, unknown)


def decoding_fault(
    body: bytes, writer: AvroSchema, reader: AvroSchema
) -> tuple[Reason, str] | None:
    """Why a record of these bytes cannot be decoded, or ``None`` where it can; never raises.

    Decodes it again, once. The work is bounded: no values beyond ``LARGEST_EXPLAINED`` bytes,
    fewer where items have many fields, and no schemas whose decoding a broken body could make
    endless (recursive ones, arrays of items without bytes). Bytes behind the record are no fault:
    every Avro decoder passes over them.
    """
    if len(body) > LARGEST_EXPLAINED:
        size = f"the body has {len(body)} bytes, too many ({LARGEST_EXPLAINED}) to decode again"
        return Reason.UNDECODABLE, size
    if _fields_of_items(len(body), writer, reader) > _MOST_FIELDS:
        return Reason.UNDECODABLE, (
            f"the body has {len(body)} bytes, too many to decode again with arrays or maps and the"
            " fields of its schemas"
        )
    if unsafe := endless(writer):
        return (
            Reason.UNDECODABLE,
            f"the body of {len(body)} bytes is corrupt (not decoded again: {unsafe})",
        )
    fault = _explain(body, writer, reader)
    return None if fault is None else (fault[0], shortened(fault[1], LONGEST_DETAIL - 1))


def _fields_of_items(size: int, *schemas: AvroSchema) -> int:
    """Return how many fields there are at most in items of so many bytes."""
    texts = [schema.text for schema in schemas]
    if not any(kind in text for text in texts for kind in ('"array"', '"map"')):
        return 0
    return size * max(text.count('"name"') for text in texts)


def _explain(body: bytes, writer: AvroSchema, reader: AvroSchema) -> tuple[Reason, str] | None:
    try:
        written = _plain(writer.text, "logicalType", "default")
        as_written = fastavro.schemaless_reader(BytesIO(body), written, None)
    except EOFError:
        early = f"the body ends early: {len(body)} bytes are not enough for the writer schema"
        return Reason.UNDECODABLE, early
    except _DECODE_ERRORS as error:
        misfit = f"the body does not fit the writer schema: {type(error).__name__}: {error}"
        return Reason.UNDECODABLE, misfit
    # Fastavro reads an int of any size.
    for text in _faults(writer, writer.root, as_written, "", _beyond_int):
        return Reason.UNDECODABLE, f"the body does not fit the writer schema: {text}"
    try:
        datum = fastavro.schemaless_reader(
            BytesIO(body), written, _plain(reader.text, "logicalType")
        )
    except _DECODE_ERRORS as error:
        return Reason.UNDECODABLE, f"the record cannot be read with the reader schema: {error}"
    for text in _faults(reader, reader.root, datum, "", _beyond_logical):
        return Reason.VALUE_OUT_OF_RANGE, text
    return None


_FaultsOfValue = Callable[[Mapping[str, Any], Any, str], Iterator[str]]


def _faults(
    schema: AvroSchema, node: Node, value: Any, path: str, of: _FaultsOfValue
) -> Iterator[str]:
    """Yield the faults of the values of a datum that was read without its logical types; ``of``
    yields those of a value that has no parts, by its definition, value and path."""
    definition = schema.resolve(node)
    if value is None:
        return
    if isinstance(definition, list):
        # The datum does not say which branch it is of.
        branches = [branch for branch in definition if branch != "null"]
        if len(branches) == 1:
            yield from _faults(schema, branches[0], value, path, of)
    elif isinstance(definition, dict):
        match definition["type"]:
            case "record":
                for field in definition["fields"]:
                    name = field["name"]
                    below = f"{path}.{name}" if path else name
                    # In a default of a record, what has a default itself may be missing.
                    yield from _faults(schema, field["type"], value.get(name), below, of)
            case "array":
                for item in value:
                    yield from _faults(schema, definition["items"], item, f"{path}[]", of)
            case "map":
                for item in value.values():
                    yield from _faults(schema, definition["values"], item, f"{path}[]", of)
            case _:
                yield from of(definition, value, path)
    else:
        yield from of({"type": definition}, value, path)


def _beyond_int(definition: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    if definition["type"] == "int" and not -(1 << 31) <= value < 1 << 31:
        yield f"{path}: {value} is no int, which has 32 bits"


def _beyond_logical(definition: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    logical = definition.get("logicalType")
    if logical == "decimal" and isinstance(value, bytes):
        digits = definition["precision"]
        if not value:
            yield f"{path}: a decimal of no bytes"
        elif abs(int.from_bytes(value, "big", signed=True)) >= 10**digits:
            yield f"{path}: {len(value)} bytes hold more than the {digits} digits of the decimal"
    elif logical in _TICKS and isinstance(value, int):
        first, last = (bound * _TICKS[logical] for bound in _YEARS_1_TO_9999)
        if not first <= value < last:
            yield f"{path}: {value} as {logical} is outside the years 1 to 9999"


#: From the beginning of year 1 to that of year 10000, in days since 1970.
_YEARS_1_TO_9999 = (-719_162, 2_932_897)

#: Of logical types of time: how many of their units a day has.
_TICKS = {
    "date": 1,
    "timestamp-millis": 86_400_000,
    "timestamp-micros": 86_400_000_000,
    "local-timestamp-millis": 86_400_000,
    "local-timestamp-micros": 86_400_000_000,
}


@lru_cache(maxsize=1_000)
def _plain(schema: str, *dropped: str) -> Any:
    """A schema for fastavro without some properties: by logical types it rounds decimals and holds
    fewer years, and the defaults of a writer may be wrong."""

    def plain(node: Any) -> Any:
        if isinstance(node, dict):
            return {name: plain(part) for name, part in node.items() if name not in dropped}
        return [plain(part) for part in node] if isinstance(node, list) else node

    return fastavro.parse_schema(plain(json.loads(schema)))


def endless(writer: AvroSchema) -> str | None:
    """Return the reason why decoding garbage with this schema costs more than the garbage's size,
    or ``None``."""
    return "the writer schema is recursive" if writer.recursive else without_bytes(writer)


def without_bytes(writer: AvroSchema) -> str | None:
    """Return whether records of this schema can claim any number of items in a few bytes, as
    text."""
    nodes: list[Node] = [writer.root, *writer.named.values()]
    while nodes:
        node = nodes.pop()
        if isinstance(node, dict) and node["type"] == "array" and _empty(writer, node["items"]):
            return "the writer schema has arrays of items without bytes"
        nodes.extend(children(node))
    return None


def _empty(writer: AvroSchema, node: Node) -> bool:
    """Return whether a value of ``node`` takes no bytes."""
    definition = writer.resolve(node)
    if definition == "null":
        return True
    if not isinstance(definition, dict):
        return False
    if definition["type"] == "fixed":
        return bool(definition["size"] == 0)
    return definition["type"] == "record" and all(
        _empty(writer, inner) for inner in children(definition)
    )
