"""Dead letters: the closed list of reasons, and the reason of one broken record for people.

Two things are counted and passed over, not dead letters: tombstones (records whose value is null)
and records of a type that no input reads, in a topic with several record types.
"""

from __future__ import annotations

import struct
from enum import StrEnum
from io import BytesIO
from typing import Self

import fastavro

from service.codecs.avro_schema import AvroSchema, Node, children, parse
from service.codecs.framing import PREFIX_LENGTH
from service.errors import SchemaError

LARGEST_EXPLAINED = 1_000_000
LONGEST_DETAIL = 500

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


class Reason(StrEnum):
    """Why something became a dead letter; the word stands in the record's ``reason``."""

    meaning: str

    def __new__(cls, word: str, meaning: str) -> Self:
        """A reason with its word and its meaning."""
        reason = str.__new__(cls, word)
        reason._value_ = word
        reason.meaning = meaning
        return reason

    NOT_FRAMED = (
        "not_framed",
        "The value has no schema id in front: empty, too short, another magic byte.",
    )
    UNKNOWN_SCHEMA_ID = (
        "unknown_schema_id",
        "The registry does not know the schema id.",
    )
    UNREADABLE_SCHEMA = (
        "unreadable_schema",
        "The registry knows the schema; it is not Avro or does not resolve to the reader schema.",
    )
    UNDECODABLE = ("undecodable", "The body is truncated or corrupt for its schema.")
    MISSING_KEY = ("missing_key", "The key, or one of its parts, is null.")
    MISSING_EVENT_TIME = ("missing_event_time", "The event time is null.")
    EVENT_TIME_OUT_OF_BOUNDS = (
        "event_time_out_of_bounds",
        "The event time is further ahead of the record's timestamp than the settings allow.",
    )
    CONDITION_FAILED = (
        "condition_failed",
        "A condition could not be computed; the event counted as not matching for that rule.",
    )
    MEASURE_FAILED = ("measure_failed", "A measure of a match could not be computed.")
    SKIP_FAILED = (
        "skip_failed",
        "A match has no event to skip to, and the rule asks for that to be an error.",
    )
    LIMIT_REACHED = (
        "limit_reached",
        "A key held more partial matches or events of a rule than its limit.",
    )


REASONS = frozenset(reason.value for reason in Reason)


def explain_undecodable(
    value: bytes,
    writer_schema: str | AvroSchema,
    reader_schema: str | AvroSchema,
    *,
    framed: bool = True,
) -> str:
    """Why the record ``value`` gave no event, as one sentence; never raises."""
    fault = decoding_fault(value, writer_schema, reader_schema, framed=framed)
    return fault or "the body can be decoded with its schema, but gave no event"


def decoding_fault(
    value: bytes,
    writer_schema: str | AvroSchema,
    reader_schema: str | AvroSchema,
    *,
    framed: bool = True,
) -> str | None:
    """Why the record ``value`` cannot be decoded, or ``None`` where it can; never raises.

    Decodes it again, once. ``framed``: the body follows the prefix of the registry's framing.
    The work is bounded: no values beyond ``LARGEST_EXPLAINED`` bytes, and no schemas whose
    decoding a broken body could make endless (recursive ones, arrays of items without bytes).
    """
    body = value[PREFIX_LENGTH:] if framed else value
    try:
        writer = _parsed(writer_schema, "writer schema")
        reader = _parsed(reader_schema, "reader schema")
    except SchemaError as error:
        return _short(str(error))
    if len(body) > LARGEST_EXPLAINED:
        return f"the body has {len(body)} bytes, too many ({LARGEST_EXPLAINED}) to decode again"
    if unsafe := _endless(writer):
        return f"the body of {len(body)} bytes is corrupt (not decoded again: {unsafe})"
    fault = _explain(body, writer, reader)
    return None if fault is None else _short(fault)


def _explain(body: bytes, writer: AvroSchema, reader: AvroSchema) -> str | None:
    stream = BytesIO(body)
    try:
        fastavro.schemaless_reader(stream, fastavro.parse_schema(writer.json), None)
    except EOFError:
        return f"the body ends early: {len(body)} bytes are not enough for the writer schema"
    except _DECODE_ERRORS as error:
        return f"the body does not fit the writer schema: {type(error).__name__}: {error}"
    if rest := len(body) - stream.tell():
        return f"the record ends {rest} bytes before the body does: written with another schema?"
    try:
        fastavro.schemaless_reader(
            BytesIO(body), fastavro.parse_schema(writer.json), fastavro.parse_schema(reader.json)
        )
    except _DECODE_ERRORS as error:
        return f"the record cannot be read with the reader schema: {error}"
    return None


def _parsed(schema: str | AvroSchema, origin: str) -> AvroSchema:
    return schema if isinstance(schema, AvroSchema) else parse(schema, origin)


def _endless(writer: AvroSchema) -> str | None:
    """What makes decoding garbage with this schema costly beyond the size of the garbage."""
    if writer.recursive:
        return "the writer schema is recursive"
    nodes: list[Node] = [writer.root, *writer.named.values()]
    while nodes:
        node = nodes.pop()
        if isinstance(node, dict) and node["type"] == "array" and _empty(writer, node["items"]):
            return "the writer schema has arrays of items without bytes"
        nodes.extend(children(node))
    return None


def _empty(writer: AvroSchema, node: Node) -> bool:
    """Whether a value of ``node`` takes no bytes."""
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


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_DETAIL else text[: LONGEST_DETAIL - 1] + "…"
