"""The decoder over framings of Avro and JSON: whatever says which schema wrote a record, the same
rows come of it, and a record without the right framing is a dead letter that says what it has."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest
from pyspark.serializers import CPickleSerializer

from spark_cep.codecs.avro.schema import parse
from spark_cep.codecs.formats import record_format
from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.record_reader import RawRecord, RecordFormat
from spark_cep.codecs.registry.framing import LARGEST_BODY, VALUE_HEADER
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas, WriterSchema
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.errors import ConfigurationError, SchemaError, SchemaNotFoundError
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions, decoder_for
from spark_cep.pipeline.decode.packing import Packing
from spark_cep.pipeline.wire.new_schemas import NewSchemasError, schemas_in
from spark_cep.runner.batch import Batch
from spark_cep.runner.runner import Runner
from tests.codecs.registry.glue_framing import frame_of_glue
from tests.codecs.test_formats import settings
from tests.e2e.schemas import record
from tests.pipeline.decode.lookups import lookup
from tests.pipeline.decode.reference import Kafka, kafka_records, read
from tests.pipeline.decode.test_decoder import planned
from tests.pipeline.decode.test_record_formats import (
    RULES,
    SCHEMA,
    SCHEMA_ID,
    avro_format,
    in_avro,
    in_json,
    some_events,
)

GUID = UUID("f2a1b7c8-0000-4000-8000-00000000abcd")
OTHER = UUID("00a1b7c8-0000-4000-8000-00000000abcd")
#: Without its last field, so that its bytes are not read as those of :data:`SCHEMA`.
OLDER = record("t.Event", **{f["name"]: f["type"] for f in SCHEMA["fields"] if f["name"] != "k"})


def headers(schema: bytes, *before: tuple[str, bytes]) -> str:
    """Headers of which one says the schema, as JSON."""
    several = [*before, (VALUE_HEADER, schema)]
    return json.dumps(
        [{"key": k, "value": base64.b64encode(v).decode("ascii")} for k, v in several]
    )


def rows(form: RecordFormat, records: Sequence[Kafka]) -> list[dict[str, Any]]:
    """The decoder's rows, but for the records' own bytes."""
    decoder = decoder_for(planned(RULES), form, DecodeOptions(16, None, keep_all=False))
    serializer: Any = CPickleSerializer()
    found = read(serializer.loads(serializer.dumps(decoder)), records)
    kept = found.rows.drop_columns(["value", "size", "headers"])
    listed: list[dict[str, Any]] = kept.to_pylist()
    return listed


def record_at(number: int, value: bytes | None, given: str | None = None) -> Kafka:
    """A record of the topic."""
    return Kafka("t", 0, number, 1_000_000, None, value, given)


def by_guid() -> ResolvedSchemas:
    """Schemas by their ids and GUIDs."""
    form = avro_format()
    (writer,) = form.writers[SCHEMA_ID]
    form.writers |= {guid: (WriterSchema(guid, writer.schema, None, 0),) for guid in (GUID, OTHER)}
    return form


def files(folder: Path, **schemas: Any) -> dict[str, Path]:
    """Schemas in files."""
    found = {name: folder / f"{name}.avsc" for name in schemas}
    for name, schema in schemas.items():
        found[name].write_text(json.dumps(schema), "utf-8")
    return found


def given(folder: Path, **source: Any) -> RecordFormat:
    """The format of an input that needs no registry."""
    event = {"topics": ["t"], "event_time": "at", "event_time_unit": "millis", **source}
    return record_format(settings(folder, url=None, events=event), None, ["t"])


def test_a_schema_in_a_header() -> None:
    """Its id or GUID in the header, or the GUID in front, are as good as the id in front; among
    other headers, and the last one counts."""
    events = some_events(Random(3), 40)
    framed = [in_avro(event) for event in events]
    wanted = rows(avro_format(), [record_at(*each) for each in enumerate(framed)])
    in_id = headers(b"\0" + SCHEMA_ID.to_bytes(4, "big"), (VALUE_HEADER, b"x"), ("trace", b""))
    mixed = []
    for number, value in enumerate(framed):
        body = value[5:]
        mixed.append(
            [
                record_at(number, body, in_id),
                record_at(number, body, headers(b"\1" + GUID.bytes, ("k", b"\xff" * 300))),
                record_at(number, b"\1" + OTHER.bytes + body),
                record_at(number, value, json.dumps([{"key": "__key_schema_id"}])),
            ][number % 4]
        )
    assert rows(by_guid(), mixed) == wanted
    assert len(wanted) > 10


def test_a_header_without_a_schema() -> None:
    """Is a dead letter that says what it has; the value is not looked at."""
    value = in_avro(some_events(Random(1), 1)[0])
    reader = by_guid().reader([{}], _no_vectors())
    for content, why in (
        (b"", "the schema header is empty"),
        (b"\2abc", "begins with byte 0x02, not with 0x00 (id) or 0x01 (GUID)"),
        (b"\0\0", "has 2 bytes; its kind has 5"),
    ):
        sent = record_at(0, value, headers(content))
        (row,) = rows(by_guid(), [sent])
        assert row["fault"] == Fault.NOT_FRAMED
        told = reader.explain(RawRecord("t", value, [(VALUE_HEADER, content)]), Fault.NOT_FRAMED, 0)
        assert told[0] == Reason.NOT_FRAMED
        assert why in told[1]


def _no_vectors() -> Any:
    return ColumnVectors()


def test_guids_are_learnt() -> None:
    """One that the registry may have is learnt by the driver before the batch runs again; one that
    it does not know is a dead letter."""
    form = avro_format()
    form.lookup = lookup(GUID)
    bodies = [in_avro(event)[5:] for event in some_events(Random(2), 30)]
    known = headers(b"\1" + GUID.bytes)
    records = [record_at(number, body, known) for number, body in enumerate(bodies)]
    records.append(record_at(99, b"\1" + OTHER.bytes + bodies[0]))

    def run() -> Any:
        runner = Runner(planned(RULES), Packing(form, DecodeOptions(16, None, keep_all=False)))
        return runner.apply(Batch(kafka_records(records), watermark=2_000_000))

    with pytest.raises(NewSchemasError) as caught:
        run()
    names = schemas_in(str(caught.value))
    assert names == (str(GUID),)
    (writer,) = form.writers[SCHEMA_ID]

    class Known:
        def get_schema(self, schema: object) -> Any:
            if schema != GUID:
                raise SchemaNotFoundError("no such schema")
            return writer.schema

    form.registry = Known()
    assert form.learn([*names, str(OTHER)]) == [str(OTHER)]
    assert form.known == f"{SCHEMA_ID},{GUID}"
    found = run()
    (letter,) = [each for each in found.outputs.dead_letters if each.at.offset == 99]
    assert (letter.reason, letter.detail) == (
        Reason.UNKNOWN_SCHEMA_ID,
        f"the registry has no schema with GUID {OTHER}",
    )
    assert found.outputs.matches


def test_the_framing_of_glue(tmp_path: Path) -> None:
    """Compressed or not, by the schema of the version, which is a file of the settings."""
    paths = files(tmp_path, event=SCHEMA, same=SCHEMA, older=OLDER)
    form = given(
        tmp_path, framing="glue", reader_schema={"file": paths["event"]},
        writer_schemas={str(GUID): paths["same"], str(OTHER): paths["older"]},
    )  # fmt: skip
    events = some_events(Random(4), 40)
    values = [in_avro(event) for event in events]
    wanted = rows(avro_format(), [record_at(*each) for each in enumerate(values)])
    glue = [
        frame_of_glue(GUID, value[5:], compressed=number % 3 == 0)
        for number, value in enumerate(values)
    ]
    assert rows(form, [record_at(*each) for each in enumerate(glue)]) == wanted
    plan = planned(RULES)
    older = parse(json.dumps(OLDER), "older")
    assert isinstance(form, ResolvedSchemas)
    assert form.writers[OTHER][0].schema.text == older.text
    reader = decoder_for(plan, form, DecodeOptions(16, None, keep_all=False)).reader
    body = values[0][5:]
    wrong = [
        (values[0], Reason.NOT_FRAMED, "not with 0x03 as in AWS Glue's framing (it looks"),
        (b'{"a": 1}', Reason.NOT_FRAMED, "(it looks like JSON)"),
        (b"\3\0abc", Reason.NOT_FRAMED, "has 5 bytes, fewer than the 18"),
        (b"\3\7" + GUID.bytes + body, Reason.NOT_FRAMED, "byte 0x07; allowed: 0x00 (none), 0x05"),
        (b"\3\5" + GUID.bytes + body, Reason.NOT_FRAMED, "cannot be decompressed by zlib"),
        (frame_of_glue(GUID, body, compressed=True)[:-4], Reason.NOT_FRAMED, "ends early"),
        (frame_of_glue(UUID(int=5), body), Reason.UNKNOWN_SCHEMA_ID,
         f"version {UUID(int=5)} is not in writer_schemas of inputs.events, which has {OTHER}"),
        (frame_of_glue(GUID, body[:3], compressed=True), Reason.UNDECODABLE, "ends early: 3 bytes"),
    ]  # fmt: skip
    for value, reason, why in wrong:
        (row,) = rows(form, [record_at(0, value)])
        told = reader.explain(RawRecord("t", value), Fault(row["fault"]), row["event_type"])
        assert (told[0], why in told[1]) == (reason, True), told


def test_a_body_that_grows_without_end(tmp_path: Path) -> None:
    """Few bytes that zlib makes more of than a record may have are a dead letter, and beside each
    other they are decoded one by one."""
    paths = files(tmp_path, event=SCHEMA)
    form = given(
        tmp_path, framing="glue", reader_schema={"file": paths["event"]},
        writer_schemas={str(GUID): paths["event"]},
    )  # fmt: skip
    decoder = decoder_for(planned(RULES), form, DecodeOptions(16, None, keep_all=False))
    value = frame_of_glue(GUID, bytes(LARGEST_BODY + 1), compressed=True)
    (row,) = rows(form, [record_at(0, value)])
    assert row["fault"] == Fault.NOT_FRAMED
    told = decoder.reader.explain(RawRecord("t", value), Fault.NOT_FRAMED, -1)
    assert f"more than {LARGEST_BODY:,} bytes" in told[1]


def test_no_framing(tmp_path: Path) -> None:
    """The value is the body, of the schema of the settings."""
    paths = files(tmp_path, event=SCHEMA)
    form = given(tmp_path, framing="none", reader_schema={"file": paths["event"]})
    values = [in_avro(event) for event in some_events(Random(5), 30)]
    wanted = rows(avro_format(), [record_at(*each) for each in enumerate(values)])
    bodies = [value[5:] for value in values]
    assert rows(form, [record_at(*each) for each in enumerate(bodies)]) == wanted
    reader = decoder_for(planned(RULES), form, DecodeOptions(16, None, keep_all=False)).reader
    reason, why = reader.explain(RawRecord("t", bodies[0][:3]), Fault.UNDECODABLE, 0)
    assert (reason, "ends early: 3 bytes" in why) == (Reason.UNDECODABLE, True)


def test_json_in_any_framing(tmp_path: Path) -> None:
    """A schema in a header, an id or GUID in front, Glue's framing, or nothing."""
    paths = files(tmp_path, event=SCHEMA)
    events = some_events(Random(6), 30)
    texts = [in_json(event) for event in events]
    wanted = rows(avro_format(), [record_at(n, in_avro(event)) for n, event in enumerate(events)])
    schema = {"format": "json", "reader_schema": {"file": paths["event"]}}
    registry, glue, none = (
        given(tmp_path, framing=framing, **schema) for framing in ("registry", "glue", "none")
    )
    with_header = headers(b"\1" + GUID.bytes)
    assert wanted == rows(registry, [record_at(n, t, with_header) for n, t in enumerate(texts)])
    in_front = [b"\1" + GUID.bytes + text for text in texts]
    assert wanted == rows(registry, [record_at(*each) for each in enumerate(in_front)])
    of_glue = [
        frame_of_glue(GUID, text, compressed=number % 2 == 0) for number, text in enumerate(texts)
    ]
    assert wanted == rows(glue, [record_at(*each) for each in enumerate(of_glue)])
    assert wanted == rows(none, [record_at(*each) for each in enumerate(texts)])
    (row,) = rows(glue, [record_at(0, texts[0])])
    reader = decoder_for(planned(RULES), glue, DecodeOptions(16, None, keep_all=False)).reader
    told = reader.explain(RawRecord("t", texts[0]), Fault(row["fault"]), 0)
    assert (told[0], "not with 0x03" in told[1]) == (Reason.NOT_FRAMED, True)
    (row,) = rows(none, [record_at(0, in_front[0])])
    assert row["fault"] == Fault.UNDECODABLE


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ({"framing": "none"}, "with framing: none, Avro is read as the schema of"),
        ({"framing": "glue"}, "writer_schemas has to name the files"),
        (
            {"writer_schemas": {str(GUID): "event"}},
            "only Avro and Protobuf with framing: glue have them",
        ),
    ],
)
def test_settings_that_do_not_say_enough(source: Any, why: str, tmp_path: Path) -> None:
    """Are refused when they are read."""
    paths = files(tmp_path, event=SCHEMA)
    if "writer_schemas" in source:
        source = {"writer_schemas": {str(GUID): paths["event"]}}
    with pytest.raises(ValueError, match=why):
        given(tmp_path, **source)


def test_one_version_of_two_inputs(tmp_path: Path) -> None:
    """Its files may be two, and have to say the same."""
    paths = files(tmp_path, event=SCHEMA, same=SCHEMA, older=OLDER)

    def both(second: str) -> RecordFormat:
        inputs = {
            name: {
                "topics": [name], "event_time": "at", "event_time_unit": "millis",
                "framing": "glue", "reader_schema": {"file": paths["event"]},
                "writer_schemas": {str(GUID): paths[file]},
            }
            for name, file in (("a", "event"), ("b", second))
        }  # fmt: skip
        return record_format(settings(tmp_path, url=None, **inputs), None, ["a", "b"])

    form = both("same")
    assert isinstance(form, ResolvedSchemas)
    assert [writer.type for writer in form.writers[GUID]] == [0, 1]
    said = rf"inputs\.b\.writer_schemas: .* {GUID} is .*older.*, and that .*event.*, which differs"
    with pytest.raises(SchemaError, match=said):
        both("older")


def test_a_file_that_is_no_writer(tmp_path: Path) -> None:
    """It is refused at the start: none of its records would be read."""
    paths = files(tmp_path, event=SCHEMA, other=record("t.Other", at="long"))
    with pytest.raises(SchemaError, match=r"has no record type that is read as t\.Event"):
        given(
            tmp_path, framing="glue", reader_schema={"file": paths["event"]},
            writer_schemas={str(GUID): paths["other"]},
        )  # fmt: skip
    two = {"topics": ["t"], "format": "avro", "reader_schema": {"file": paths["event"]}}
    both = settings(tmp_path, a={**two, "framing": "none"}, b={"topics": ["t"]})
    with pytest.raises(ConfigurationError, match="topic t as avro/none and as avro;"):
        record_format(both, None, ["t"])
