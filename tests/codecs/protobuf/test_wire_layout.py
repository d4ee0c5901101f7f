"""Columns out of Protobuf next to Protobuf's own parser."""

from __future__ import annotations

import datetime as dt
from random import Random
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.serializers import CPickleSerializer

from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.codecs.protobuf.message_columns import columns_of
from spark_cep.codecs.protobuf.message_values import MessageParser, MessageValue
from spark_cep.codecs.protobuf.reader import ProtobufFormat, ProtobufReader
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.record_reader import RawRecord
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.codecs.registry.framing import Framing
from spark_cep.codecs.topic_numbers import TopicNumbers
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.representation import Representation, from_whole, representation
from spark_cep.columns.vectors import Bytes
from spark_cep.pattern.types import RecordType, SqlType, column_type, record_type
from tests.codecs.protobuf.files import event_class, event_files, some_event

EACH = settings(max_examples=15, derandomize=True, database=None, phases=[Phase.generate])
PARSER = MessageParser(event_files(), "t.Event")
SCHEMA = columns_of(event_files().message("t.Event"), "event")
Path = tuple[str, ...]


def form() -> ProtobufFormat:
    """Events without framing."""
    types = (EventType(0, "events", "t.Event", SCHEMA, ("t",), "at", "auto"),)
    return ProtobufFormat(
        types, framing=Framing.NONE, unframed=TopicNumbers({"t": 0}), parsers=(PARSER,)
    )


def all_columns(record: RecordType, above: Path = ()) -> list[Path]:
    """All columns, those in messages and the messages themselves, too."""
    found = []
    for name, kind in record.fields.items():
        found.append((*above, name))
        if isinstance(kind, RecordType):
            found += all_columns(kind, (*above, name))
    return found


COLUMNS = all_columns(record_type(SCHEMA.text))


class Reading:
    """A reader of some columns."""

    def __init__(self, columns: list[Path]) -> None:
        vectors, types = ColumnVectors(), record_type(SCHEMA.text)
        self.wanted: dict[Path, tuple[int, SqlType]] = {}
        for path in columns:
            of = column_type(types, path)
            assert of is not None
            self.wanted[path] = vectors.value(path, of), of
            vectors.reader_of(vectors.value(path, of), of)
        serializer: Any = CPickleSerializer()
        made = form().reader([self.wanted], vectors)
        self.reader: ProtobufReader = serializer.loads(serializer.dumps(made))
        self.vectors = vectors

    def read(self, bodies: list[bytes]) -> tuple[list[int], list[dict[Path, Any]]]:
        """The faults of records, and the values of their columns."""
        read = self.reader.read("t", Bytes.of(bodies), Bytes.of([None] * len(bodies)))
        rows = []
        for row in range(len(bodies)):
            values: dict[Path, Any] = {}
            sound = read.faults[row] == Fault.NONE
            for path, (vector, of) in self.wanted.items() if sound else ():
                whole, value = int(read.wholes[row, vector]), None
                data = read.data[whole >> 32 : (whole >> 32) + (whole & 0xFFFFFFFF)].tobytes()
                if not read.nulls[row, vector]:
                    match representation(of):
                        case Representation.WHOLE:
                            value = from_whole(of)(whole)
                        case Representation.DOUBLE:
                            value = float(read.doubles[row, vector])
                        case Representation.TEXT:
                            value = data.decode()
                        case Representation.OBJECT:
                            reader = int(read.wholes[row, self.vectors.reader(vector)])
                            value = read.readers[reader](data)
                values[path] = value
            rows.append(values)
        return read.faults.tolist(), rows


def expected(body: bytes, columns: list[Path]) -> dict[Path, Any]:
    """The columns by Protobuf's parser."""
    return {path: MessageValue(PARSER, path)(body) for path in columns}


@EACH
@given(seed=st.integers(0, 2**32), few=st.booleans())
def test_the_same_values_as_protobuf(seed: int, few: bool) -> None:
    """Of all columns or of some; also of messages in parts, of which fields come several times."""
    random = Random(seed)
    columns = random.sample(COLUMNS, 6) if few else COLUMNS
    bodies = []
    for _ in range(60):
        parts = [some_event(random) for _ in range(random.choice([1, 1, 1, 2, 3]))]
        # Behind each other they are one message.
        bodies.append(b"".join(each.SerializeToString() for each in parts))
    faults, rows = Reading(columns).read(bodies)
    for body, fault, row in zip(bodies, faults, rows, strict=True):
        assert fault == Fault.NONE
        assert repr(row) == repr(expected(body, columns))


def damaged(random: Random, body: bytes) -> bytes:
    """A message with damage."""
    made = bytearray(body or b"\x0a\x01a")
    at = random.randrange(len(made))
    match random.randrange(4):
        case 0:
            del made[at:]
        case 1:
            made[at] ^= 1 << random.randrange(8)
        case 2:
            made[at:at] = random.randbytes(random.randrange(1, 4))
        case _:
            made[at:at] = random.choice([b"\xff" * 12, b"\x0b\x0c", b"\x0b\x13\x14\x0c", b"\x00"])
    return bytes(made)


@EACH
@given(seed=st.integers(0, 2**32))
def test_damage_is_a_fault_where_protobuf_finds_it(seed: int) -> None:
    """With all columns wanted the verdict is that of Protobuf's parser, and the values are; without
    those that it reads, what is accepted can be read."""
    random = Random(seed)
    bodies = [damaged(random, some_event(random).SerializeToString()) for _ in range(150)]
    faults, rows = Reading(COLUMNS).read(bodies)
    simple: list[Path] = [
        path for path in COLUMNS if path in (("kind",), ("n",), ("place", "city"), ("at",))
    ]
    few, _ = Reading(simple).read(bodies)
    for body, fault, row, fault_of_few in zip(bodies, faults, rows, few, strict=True):
        try:
            event_class().FromString(body)
        except DecodeError:
            assert fault in (Fault.UNDECODABLE, Fault.BAD_VALUE)
            continue
        assert fault != Fault.UNDECODABLE, body
        assert fault_of_few in (Fault.NONE, fault)
        if fault == Fault.NONE:
            assert repr(row) == repr(expected(body, COLUMNS))


def test_values_beyond_their_columns() -> None:
    """Are dead letters that name the column."""
    event = event_class()
    reading = Reading([("u64",), ("far",)])
    for message, why in (
        (event(u64=2**63), "u64: found 9223372036854775808; allowed: a number below 2^63 (BIGINT)"),
        (event(far={"seconds": 2**50}), "far: 1125899906842624 seconds and 0 nanoseconds"),
    ):
        body = message.SerializeToString()
        assert reading.read([body])[0] == [Fault.BAD_VALUE]
        told = reading.reader.explain(RawRecord("t", body), Fault.BAD_VALUE, 0)
        assert told[0] == Reason.VALUE_OUT_OF_RANGE
        assert why in told[1]
    body = event(kind="a").SerializeToString()[:-1]
    assert reading.reader.explain(RawRecord("t", body), Fault.UNDECODABLE, 0) == (
        Reason.UNDECODABLE,
        "the 2 bytes of the body are not a message t.Event, or a text in it is not UTF-8",
    )


PROTO2 = """
syntax = "proto2";
package t;
message Old {
  required int64 at = 1;
  optional string kind = 2 [default = "none"];
  optional bytes raw = 3 [default = "\\xff"];
  optional double x = 4 [default = 2.5];
  optional bool ok = 5;
  repeated group Line = 6 { optional string text = 1; }
  optional Old inside = 7;
}
"""


def test_proto2() -> None:
    """Fields have the defaults that the file gives, or are NULL; groups and messages that contain
    themselves are no columns."""
    from spark_cep.codecs.protobuf.descriptors import compiled_text

    files = compiled_text(PROTO2, "old.proto", {})
    schema = columns_of(files.message("t.Old"), "old")
    columns = record_type(schema.text)
    assert [*columns.fields] == ["at", "kind", "raw", "x", "ok"]
    parser = MessageParser(files, "t.Old")
    types = (EventType(0, "old", "t.Old", schema, ("t",), "at", "millis"),)
    old = ProtobufFormat(
        types, framing=Framing.NONE, unframed=TopicNumbers({"t": 0}), parsers=(parser,)
    )
    vectors = ColumnVectors()
    wanted: dict[Path, tuple[int, SqlType]] = {}
    for name in columns.fields:
        of = column_type(columns, (name,))
        assert of is not None
        wanted[name,] = vectors.value((name,), of), of
    message = files.message_class("t.Old")(at=7)
    message.line.add(text="a")
    read = old.reader([wanted], vectors).read(
        "t", Bytes.of([message.SerializePartialToString()]), Bytes.of([None])
    )
    assert read.faults.tolist() == [0]
    at, kind, raw, x, ok = (wanted[name,][0] for name in columns.fields)
    assert read.wholes[0, at] == 7
    texts = [
        read.data[place >> 32 : (place >> 32) + (place & 0xFFFFFFFF)].tobytes()
        for place in read.wholes[0, [kind, raw]].tolist()
    ]
    assert texts == [b"none", b"\xff"]
    assert (read.doubles[0, x], read.nulls[0, ok]) == (2.5, 1)


@pytest.mark.parametrize("micros", [0, 1, -1, 1_700_000_000_123_456])
def test_times(micros: int) -> None:
    """To the microsecond."""
    event = event_class()()
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=micros)
    event.at.FromDatetime(moment)
    _, (row,) = Reading([("at",)]).read([event.SerializeToString()])
    assert row["at",] == moment
