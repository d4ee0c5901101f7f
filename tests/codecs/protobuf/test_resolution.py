"""Inputs in Protobuf, from settings to records: by the registry, with its framings, and without."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from spark_cep.codecs.formats import record_format
from spark_cep.codecs.mixed_formats import MixedFormats
from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.codecs.protobuf.descriptors import MessageFiles, compiled_text
from spark_cep.codecs.protobuf.reader import ProtobufFormat, ProtobufReader
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.record_reader import RawRecord, RecordFormat
from spark_cep.codecs.registry.framing import VALUE_HEADER, frame
from spark_cep.codecs.registry.registry import Registry, SchemaText
from spark_cep.codecs.registry.schema_ids import SchemaId
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.vectors import Bytes
from spark_cep.errors import ConfigurationError, SchemaError, SchemaNotFoundError
from spark_cep.pattern.types import BIGINT
from tests.codecs.protobuf.files import EVENT, PLACE, REFERENCES, event_class
from tests.codecs.registry.glue_framing import frame_of_glue
from tests.codecs.test_formats import LOGIN, settings
from tests.codecs.test_formats import Texts as AvroTexts
from tests.pipeline.decode.lookups import lookup
from tests.pipeline.decode.reference import packed
from tests.pipeline.decode.test_framings import headers

GUID = UUID("f2a1b7c8-0000-4000-8000-00000000abcd")
OTHER_GUID = UUID("f2a1b7c8-0000-4000-8000-00000000abce")
#: Without a field, with another one, and the messages the other way round.
NEWER = """
syntax = "proto3";
package t;
message More { message Inner { int64 n = 1; } }
message Event { int64 n = 3; string added = 500; }
"""
CHANGED = 'syntax = "proto3"; package t; message Event { string n = 3; }'
FILES = {
    1: compiled_text(EVENT, "1", REFERENCES),
    2: compiled_text(NEWER, "2", {}),
    3: compiled_text(CHANGED, "3", {}),
}


class Texts(Registry):
    """Schemas by id; the first of them is that of every subject."""

    def __init__(self, files: dict[SchemaId, MessageFiles], kind: str = "PROTOBUF") -> None:
        self.files = files
        self._kind = kind

    def ids(self, subject: str) -> list[int]:
        """All that are numbers."""
        return [each for each in self.files if isinstance(each, int)]

    def text(self, subject: str, version: int | None = None) -> SchemaText:
        """The same for each."""
        return SchemaText(subject, 1, self._kind, EVENT, REFERENCES)

    def get_messages(self, schema: SchemaId) -> MessageFiles:
        """By id or GUID."""
        if schema not in self.files:
            raise SchemaNotFoundError(f"no schema {schema}")
        return self.files[schema]


def reader_of(form: RecordFormat) -> tuple[ProtobufReader, int]:
    """The reader of the column ``n``, and its vector."""
    vectors = ColumnVectors()
    vector = vectors.value(("n",), BIGINT)
    reader = form.reader([{("n",): (vector, BIGINT)}] * len(form.types), vectors)
    assert isinstance(reader, ProtobufReader)
    return reader, vector


def read(reader: Any, topic: str, values: Sequence[bytes | None], header: str | None = None) -> Any:
    """What a reader makes of records."""
    of = [None if header is None else packed(header)] * len(values)
    return reader.read(topic, Bytes.of(values), Bytes.of(of))


def by_registry(folder: Path, registry: Registry, **more: Any) -> ProtobufFormat:
    """Of an input that reads events."""
    event = {"topics": ["p"], "format": "protobuf", "record": "Event", "event_time": "at", **more}
    found = record_format(settings(folder, events=event), registry, ["p"])
    assert isinstance(found, ProtobufFormat)
    return found


def test_framings_of_the_registry(tmp_path: Path) -> None:
    """The id and the index of the message in front, or in the header; by the writer's index, a
    message is an event, another one, or none."""
    form = by_registry(tmp_path, Texts({1: FILES[1], 2: FILES[2], GUID: FILES[2]}))
    form.ask(Texts({GUID: FILES[2]}), [GUID])
    assert form.known == f"1-2,{GUID}"
    assert [(each.name, each.input) for each in form.types] == [("t.Event", "events")]
    reader, vector = reader_of(form)
    body = event_class()(n=5).SerializeToString()
    for schema, index, fault in (
        (1, b"\2\2", Fault.NONE),
        (1, b"\0", Fault.NOT_READ),
        (1, b"\2\0", Fault.NOT_READ),
        (2, b"\2\2", Fault.NONE),
        (2, b"\0", Fault.NOT_READ),
        (2, b"\4\0\0", Fault.NOT_READ),
        (2, b"\2\x10", Fault.UNDECODABLE),
        (2, b"\1", Fault.UNDECODABLE),
        (9, b"\2\2", Fault.UNKNOWN_SCHEMA),
    ):
        in_front = read(reader, "p", [frame(schema, index + body)])
        in_header = read(reader, "p", [body], headers(frame(schema, index)))
        for found in (in_front, in_header):
            assert found.faults.tolist() == [fault]
            if fault is Fault.NONE:
                assert (found.wholes[0, vector], found.types[0]) == (5, 0)
    found = read(reader, "p", [body, None], headers(b"\1" + GUID.bytes + b"\2\2"))
    assert found.faults.tolist() == [Fault.NONE, Fault.TOMBSTONE]
    assert read(reader, "other", [frame(1, b"\2\2" + body)]).faults.tolist() == [Fault.NONE]
    assert reader.of_task(0, "2").known.ids.tolist() == [2]


def test_dead_letters(tmp_path: Path) -> None:
    """They say which schema, index or framing there was."""
    form = by_registry(tmp_path, Texts({1: FILES[1], 3: FILES[3]}))
    reader, _ = reader_of(form)
    assert read(reader, "p", [frame(3, b"\0")]).faults.tolist() == [Fault.UNREADABLE_SCHEMA]
    for value, fault, reason, why in (
        (b"", Fault.NOT_FRAMED, Reason.NOT_FRAMED, "the value is empty"),
        (b"{}", Fault.NOT_FRAMED, Reason.NOT_FRAMED, "(it looks like JSON)"),
        (frame(3, b"\0"), Fault.UNREADABLE_SCHEMA, Reason.UNREADABLE_SCHEMA,
         "schema id 3: t.Event cannot be read as that of input events: n: field 3 is of another"),
        (frame(9, b"\0"), Fault.UNKNOWN_SCHEMA, Reason.UNKNOWN_SCHEMA_ID, "no schema with id 9"),
        (frame(1, b"\2\x10"), Fault.UNDECODABLE, Reason.UNDECODABLE,
         "the schema 1 has no message with the index [8]"),
    ):  # fmt: skip
        assert read(reader, "p", [value]).faults.tolist() == [fault]
        told = reader.explain(RawRecord("p", value), fault, -1)
        assert (told[0], why in told[1]) == (reason, True), told
    body = event_class()(kind="a").SerializeToString()
    (header,) = [(VALUE_HEADER, frame(1, b"\2\2"))]
    told = reader.explain(RawRecord("p", body[:-1], [header]), Fault.UNDECODABLE, 0)
    assert "2 bytes of the body are not a message t.Event" in told[1]


def test_schemas_are_learnt(tmp_path: Path) -> None:
    """Those that the registry may have, with the framing in front or in a header."""
    registry = Texts({1: FILES[1]})
    form = by_registry(tmp_path, registry)
    form.lookup = lookup(2, GUID)
    reader = reader_of(form)[0].of_task(0, None)
    (header,) = [(VALUE_HEADER, b"\1" + GUID.bytes + b"\0")]
    records = [RawRecord("p", frame(2, b"\0")), RawRecord("p", b"", [header])]
    assert sorted(reader.new_schemas(records)) == ["2", str(GUID)]
    registry.files |= {2: FILES[2]}
    assert form.learn(["2", str(GUID)]) == [str(GUID)]
    assert form.snapshot().known == "1-2"


def of_glue(folder: Path, **writers: str) -> ProtobufFormat:
    """Of an input with AWS Glue's framing; ``writers``: the files of GUIDs."""
    (folder / "parts").mkdir(exist_ok=True)
    texts = {"event": EVENT, "newer": NEWER, "changed": CHANGED, "parts/place": PLACE}
    for name, text in texts.items():
        (folder / f"{name}.proto").write_text(text, "utf-8")
    event = {
        "topics": ["p"], "format": "protobuf", "framing": "glue", "record": "Event",
        "reader_schema": {"file": folder / "event.proto"}, "event_time": "at",
        "writer_schemas": {guid: folder / f"{name}.proto" for guid, name in writers.items()},
    }  # fmt: skip
    found = record_format(settings(folder, url=None, events=event), None, ["p"])
    assert isinstance(found, ProtobufFormat)
    return found


def test_framing_of_glue(tmp_path: Path) -> None:
    """Of a version that the settings name, the message is found by its number in the order of all
    names; compressed or not."""
    form = of_glue(tmp_path, **{str(GUID): "newer", str(OTHER_GUID): "event"})
    assert form.known == ",".join(sorted([str(GUID), str(OTHER_GUID)]))
    reader, vector = reader_of(form)
    body = event_class()(n=5).SerializeToString()
    for guid, number, fault in (
        (GUID, b"\0", Fault.NONE),
        (GUID, b"\1", Fault.NOT_READ),
        (GUID, b"\2", Fault.NOT_READ),
        (GUID, b"\3", Fault.UNDECODABLE),
        (OTHER_GUID, b"\0", Fault.NONE),
        (OTHER_GUID, b"\2", Fault.NOT_READ),
        (OTHER_GUID, b"\4", Fault.NOT_READ),
        # The entries of a map are counted, and are no messages of a topic.
        (OTHER_GUID, b"\1", Fault.UNDECODABLE),
        (OTHER_GUID, b"\xff\xff\xff\xff\x0f", Fault.UNDECODABLE),
        (UUID(int=7), b"\0", Fault.UNKNOWN_SCHEMA),
    ):
        values = [frame_of_glue(guid, number + body, compressed=each) for each in (False, True)]
        found = read(reader, "p", values)
        assert found.faults.tolist() == [fault, fault]
        if fault is Fault.NONE:
            assert found.wholes[:, vector].tolist() == [5, 5]
            assert found.added == len(body) + 1
    assert reader.of_task(0, str(GUID)).known.messages[:, 1].tolist() == [0, -1, -1]
    assert not reader.of_task(0, None).new_schemas([RawRecord("p", values[0])])


def test_dead_letters_of_glue(tmp_path: Path) -> None:
    """They say which version, number or framing there was."""
    reader, _ = reader_of(of_glue(tmp_path, **{str(GUID): "event"}))
    known = frame_of_glue(GUID, b"")
    for value, fault, reason, why in (
        (frame(1, b"\0"), Fault.NOT_FRAMED, Reason.NOT_FRAMED, "not with 0x03 as in AWS Glue's"),
        (known[:9], Fault.NOT_FRAMED, Reason.NOT_FRAMED, "fewer than the 18 of AWS Glue's"),
        (frame_of_glue(GUID, b"\0" * 99, compressed=True)[:-9], Fault.NOT_FRAMED,
         Reason.NOT_FRAMED, "zlib compressed to"),
        (frame_of_glue(UUID(int=7), b"\0"), Fault.UNKNOWN_SCHEMA, Reason.UNKNOWN_SCHEMA_ID,
         f"is not in writer_schemas of inputs.events, which has {GUID}; add it"),
        (known + b"\x09", Fault.UNDECODABLE, Reason.UNDECODABLE,
         f"the schema {GUID} has no message with the index [9]"),
        (known, Fault.UNDECODABLE, Reason.UNDECODABLE, "that is in front of the body"),
    ):  # fmt: skip
        assert read(reader, "p", [value]).faults.tolist() == [fault]
        told = reader.explain(RawRecord("p", value), fault, -1)
        assert (told[0], why in told[1]) == (reason, True), told
    value = frame_of_glue(GUID, b"\0\x0a\x09a", compressed=True)
    assert read(reader, "p", [value]).faults.tolist() == [Fault.UNDECODABLE]
    told = reader.explain(RawRecord("p", value), Fault.UNDECODABLE, 0)
    assert "the 3 bytes of the body are not a message t.Event" in told[1]


def test_files_that_do_not_fit_glue(tmp_path: Path) -> None:
    """They are refused at the start."""
    with pytest.raises(SchemaError, match=r"changed\.proto cannot be used: .* is of another type"):
        of_glue(tmp_path, **{str(GUID): "changed"})
    with pytest.raises(SchemaError, match=r"has no record type that is read as t\.Event"):
        of_glue(tmp_path, **{str(GUID): "parts/place"})


def test_numbers_of_glue() -> None:
    """They are those of the example in AWS Glue's serializer."""
    text = "message B { message C {} message A { message D {} } }"
    numbers = {each.full_name: n for n, each in compiled_text(text, "b", {}).numbered()}
    assert numbers == {"B": (0,), "B.A": (1,), "B.A.D": (2,), "B.C": (3,)}


def test_without_framing(tmp_path: Path) -> None:
    """A file, with imports below its folder, and no registry; beside Avro by the registry."""
    (tmp_path / "event.proto").write_text(EVENT, "utf-8")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "place.proto").write_text(PLACE, "utf-8")
    given = {
        "topics": ["p"], "format": "protobuf", "framing": "none", "record": "t.Other",
        "reader_schema": {"file": tmp_path / "event.proto"}, "event_time": "at",
    }  # fmt: skip
    form = record_format(settings(tmp_path, url=None, others=given), None, ["p"])
    body = compiled_text(EVENT, "e", REFERENCES).message_class("t.Other")(at=7).SerializeToString()
    vectors = ColumnVectors()
    vector = vectors.value(("at",), BIGINT)
    reader = form.reader([{("at",): (vector, BIGINT)}], vectors)
    assert read(reader, "p", [body]).wholes[0, vector] == 7
    assert read(reader, "q", [body]).faults.tolist() == [Fault.NOT_READ]
    both = settings(tmp_path, others=given, logins={"topics": ["l"]})
    mixed = record_format(both, AvroTexts({5: LOGIN}, {}, l_value=[5]), ["p", "l"])
    assert isinstance(mixed, MixedFormats)
    assert mixed.known == "5"
    assert [each.name for each in mixed.types] == ["t.Other", "t.Login"]


@pytest.mark.parametrize(
    ("more", "kind", "why"),
    [
        ({"record": None}, "PROTOBUF", r"has the messages t\.Other, t\.Event, t\.Event\.Item; set"),
        ({"record": "Item2"}, "PROTOBUF", "has no messages called Item2"),
        ({}, "AVRO", "is of type AVRO; allowed for Protobuf: PROTOBUF"),
        ({"framing": "glue"}, "PROTOBUF", "writer_schemas has to name the files"),
        ({"framing": "none"}, "PROTOBUF", "Protobuf is read as the schema of"),
    ],
)
def test_settings_that_do_not_fit(more: Any, kind: str, why: str, tmp_path: Path) -> None:
    """Are refused at the start."""
    with pytest.raises((SchemaError, ConfigurationError, ValueError), match=why):
        by_registry(tmp_path, Texts({1: FILES[1]}, kind), **more)


def test_no_registry(tmp_path: Path) -> None:
    """The error names the settings."""
    given = settings(tmp_path, url=None, events={"topics": ["p"], "format": "protobuf"})
    with pytest.raises(ConfigurationError, match="or set framing: none of the input"):
        record_format(given, None, ["p"])


@pytest.mark.parametrize(
    ("text", "references", "why"),
    [
        ("message {", {}, "line 1:9: Expected message name"),
        ('syntax = "proto3"; import "a.proto";', {}, "a.proto: File not found"),
        ("", {"../a.proto": ""}, "which is no .proto file"),
        ("", {"\0.proto": ""}, "cannot be written to a file: embedded null byte"),
        ("", {"a.proto": "\ud800"}, "'a.proto' cannot be written to a file"),
    ],
)
def test_what_is_no_schema(text: str, references: dict[str, str], why: str) -> None:
    """The compiler's words, with the place."""
    with pytest.raises(SchemaError) as refused:
        compiled_text(text, "subject 's', version 1", references)
    assert why in str(refused.value)
