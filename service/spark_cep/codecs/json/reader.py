"""The reader of JSON records, and the format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from spark_cep.codecs.avro.reader_schemas import project
from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.json.loops.record_text import MOST_ADDED, MOST_DEEP
from spark_cep.codecs.json.text_layout import TextLayout, text_layout
from spark_cep.codecs.json.values import Members, MisfitError, parsed, value_of
from spark_cep.codecs.output.dead_letters import LONGEST_DETAIL, Reason
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.record_reader import (
    RawRecord,
    Read,
    RecordFormat,
    RecordReader,
    Wanted,
)
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.codecs.registry.framing import Framing, FramingError, of_glue, prefixed
from spark_cep.codecs.topic_numbers import TopicNumbers
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.vectors import Bytes
from spark_cep.errors import printable, shortened

#: Bytes of a value that are gone through again for the words of its dead letter.
_LARGEST_EXPLAINED = 4 << 20


@dataclass(frozen=True)
class JsonReader(RecordReader):
    """Reads the records of a topic by the layout of its record type. ``schemas``: of what is
    wanted of each type."""

    layouts: tuple[TextLayout, ...]
    schemas: tuple[AvroSchema, ...]
    topics: TopicNumbers
    framing: Framing

    def read(self, topic: str, values: Bytes, headers: Bytes) -> Read:  # noqa: ARG002  JSON has its names
        """See :class:`~spark_cep.codecs.record_reader.RecordReader`."""
        number = self.topics.number(topic)
        if number is None:
            return _not_read(values)
        return self.layouts[number].read(values, number, self.framing)

    def explain(self, record: RawRecord, fault: Fault, number: int) -> tuple[Reason, str]:
        """See :class:`~spark_cep.codecs.record_reader.RecordReader`."""
        value = record.value
        match fault:
            case Fault.TOO_DEEP:
                return Reason.UNDECODABLE, f"the value nests more than {MOST_DEEP} levels deep"
            case Fault.TOO_LARGE:
                return Reason.UNDECODABLE, (
                    f"in this value of {len(value):,} bytes, fields that are missing would take"
                    f" more than {MOST_ADDED:,} bytes by their defaults"
                )
        reason, why = _explained(value, self.schemas[number], self.framing)
        return reason, shortened(printable(why), LONGEST_DETAIL - 1)


def _not_read(values: Bytes) -> Read:
    """Records of a topic that no input reads."""
    none, count = np.zeros((len(values), 1), np.int64), len(values)
    faults = np.where(values.nulls, int(Fault.TOMBSTONE), int(Fault.NOT_READ)).astype(np.int32)
    return Read(
        values.data, none, none.view(np.float64), np.ones(none.shape, np.uint8),
        np.full(count, -1, np.int32), faults,
    )  # fmt: skip


def _body(value: bytes, framing: Framing) -> bytes:
    """The text of a record. Raises FramingError where it has not the framing that it needs."""
    if framing is Framing.GLUE:
        return of_glue(value).body
    if framing is Framing.REGISTRY:
        with suppress(FramingError):
            return prefixed(value).body
    return value


def _explained(value: bytes, schema: AvroSchema, framing: Framing) -> tuple[Reason, str]:
    """Why a record cannot be read as ``schema``."""
    if len(value) > _LARGEST_EXPLAINED:
        return Reason.UNDECODABLE, f"the value has {len(value):,} bytes, too many to explain"
    try:
        body = _body(value, framing)
    except FramingError as error:
        return Reason.NOT_FRAMED, str(error)
    # Of what was compressed, places are those of the body.
    framed = len(value) - len(body) if value.endswith(body) else 0
    if not body.strip():
        found = "empty" if not value else f"{len(value)} bytes without text"
        return Reason.UNDECODABLE, f"the value is {found}, not a JSON object"
    # Texts that nobody reads may be anything.
    text = body.decode("utf-8", "surrogateescape")
    try:
        found = parsed(text)
    except RecursionError:
        return Reason.UNDECODABLE, "the value nests too deeply"
    except ValueError as error:
        return Reason.UNDECODABLE, f"the value is not JSON: {_said(error, text, framed)}"
    if not isinstance(found, Members):
        what = "an array" if isinstance(found, list) else "a single value"
        return Reason.UNDECODABLE, f"the value is {what} of JSON; an event is an object"
    try:
        value_of(schema, schema.root, found, "")
    except MisfitError as misfit:
        out_of_range = misfit.out_of_range
        reason = Reason.VALUE_OUT_OF_RANGE if out_of_range else Reason.UNDECODABLE
        return reason, str(misfit)
    return Reason.UNDECODABLE, "the value is not JSON as RFC 8259 has it"


def _said(error: ValueError, text: str, framed: int) -> str:
    """The reason why a text is not JSON, and the byte; ``framed``: those before the text."""
    at = getattr(error, "pos", None)
    if at is None:
        return str(error)
    place = framed + len(text[:at].encode("utf-8", "surrogateescape"))
    near = text[at : at + 20]
    behind = f": {near}" if near else ", where the value ends"
    return f"{getattr(error, 'msg', error)} at byte {place}{behind}"


@dataclass(frozen=True)
class JsonFormat(RecordFormat):
    """JSON, whose records have one type in a topic. ``patterns``: the regular expressions of
    topics by type."""

    types: tuple[EventType, ...]
    patterns: Mapping[int, str] = field(default_factory=dict)
    framing: Framing = Framing.REGISTRY

    def reader(self, wanted: Sequence[Wanted], vectors: ColumnVectors) -> JsonReader:
        """See :class:`~spark_cep.codecs.record_reader.RecordFormat`."""
        needed = tuple(
            project(one.readable, [".".join(path) for path in columns])
            for one, columns in zip(self.types, wanted, strict=True)
        )
        # Writing a layout may add vectors, which all of them have.
        for columns in wanted:
            for vector, of in columns.values():
                vectors.reader_of(vector, of)
        layouts = tuple(
            replace(text_layout(schema, columns, vectors), width=vectors.width)
            for schema, columns in zip(needed, wanted, strict=True)
        )
        numbers = {topic: one.number for one in self.types for topic in one.topics}
        patterns = tuple((pattern, number) for number, pattern in self.patterns.items())
        return JsonReader(layouts, needed, TopicNumbers(numbers, patterns), self.framing)
