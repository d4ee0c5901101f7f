"""The decoder over any format: readers of Avro and of JSON give the same rows of equal events."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from io import BytesIO
from random import Random
from typing import Any

import fastavro
import pyarrow.compute as pc
import pytest
from pyspark.serializers import CPickleSerializer

from spark_cep.codecs.avro.schema import parse
from spark_cep.codecs.json.reader import JsonFormat
from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.codecs.protobuf.descriptors import MessageFiles, compiled_text
from spark_cep.codecs.protobuf.message_columns import columns_of
from spark_cep.codecs.protobuf.message_values import MessageParser
from spark_cep.codecs.protobuf.reader import ProtobufFormat
from spark_cep.codecs.protobuf.writers import WriterMessage
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.record_reader import RawRecord, RecordFormat
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.codecs.registry.framing import frame
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas, WriterSchema
from spark_cep.pipeline.decode.column_bytes import MOST_BYTES
from spark_cep.pipeline.decode.decoder import Decoder, pieces
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions, decoder_for
from spark_cep.pipeline.decode.packing import Packing
from spark_cep.pipeline.wire.reports import Count
from spark_cep.runner.batch import Batch, BatchResults
from spark_cep.runner.runner import Runner
from tests.e2e.schemas import field, record
from tests.pipeline.decode.reference import Kafka, kafka_records, read
from tests.pipeline.decode.test_decoder import planned, rule

SCHEMA = record(
    "t.Event",
    kind="string",
    k=field(["null", "string"], default=None),
    n=field(["null", "long"], default=None),
    x="double",
    ok="boolean",
    tags={"type": "array", "items": "string"},
    at="long",
)
SCHEMA_ID = 7


def json_format() -> JsonFormat:
    """Objects, as they are or with the registry's framing."""
    schema = parse(json.dumps(SCHEMA), "event")
    return JsonFormat((EventType(0, "events", "t.Event", schema, ("t",), "at", "millis"),))


def avro_format() -> ResolvedSchemas:
    """The same in Avro, with the registry's framing."""
    schema = parse(json.dumps(SCHEMA), "event")
    types = (EventType(0, "events", "t.Event", schema, ("t",), "at", "millis"),)
    return ResolvedSchemas(types, {SCHEMA_ID: (WriterSchema(SCHEMA_ID, schema, None, 0),)})


def in_json(event: dict[str, Any]) -> bytes:
    """An event."""
    return json.dumps(event).encode()


def in_framed_json(event: dict[str, Any]) -> bytes:
    """An event, with a schema id in front and its text without escapes."""
    return frame(SCHEMA_ID, json.dumps(event, ensure_ascii=False, indent=1).encode())


def in_avro(event: dict[str, Any]) -> bytes:
    """An event."""
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(SCHEMA), event)
    return frame(SCHEMA_ID, out.getvalue())


@cache
def proto_files() -> MessageFiles:
    """The file of the same events in Protobuf."""
    text = """
        syntax = "proto3"; package t;
        message Event {
          string kind = 1; optional string k = 2; optional int64 n = 3; double x = 4; bool ok = 5;
          repeated string tags = 6; int64 at = 7;
        }"""
    return compiled_text(text, "event", {})


def protobuf_format() -> ProtobufFormat:
    """The same in Protobuf, with the registry's framing."""
    schema = columns_of(proto_files().message("t.Event"), "event")
    types = (EventType(0, "events", "t.Event", schema, ("t",), "at", "millis"),)
    form = ProtobufFormat(types, parsers=(MessageParser(proto_files(), "t.Event"),))
    form.writers[SCHEMA_ID] = (WriterMessage(1, 0),)
    return form


def in_protobuf(event: dict[str, Any]) -> bytes:
    """An event."""
    message = proto_files().message_class("t.Event")(**event)
    return frame(SCHEMA_ID, b"\0" + message.SerializeToString())


def some_events(random: Random, count: int) -> list[dict[str, Any]]:
    """Events with NULLs, texts that are not ASCII, and values of all kinds."""
    return [
        {
            "kind": random.choice(["a", "b", "ключ", ""]),
            "k": random.choice([None, "ü", "key", "a"]),
            "n": random.choice([None, 0, -5, 2**60]),
            "x": random.choice([0.5, -1.25, 1e300]),
            "ok": random.random() < 0.5,
            "tags": random.sample(["ü", "x", "a"], random.randrange(3)),
            "at": 1_000_000 + number,
        }
        for number in range(count)
    ]


RULES = [
    rule("plain", "kind = 'a' AND n > -10", "x < 1 OR ok", key="k", emit={"events": ["kind", "x"]}),
    rule("other", "kind IN ('ключ', 'b')", "SIZE(tags) > 1", key=["kind", "n"],
         emit={"events": ["tags", "n", "ok"]}),
    rule("computed", "UPPER(kind) = 'A' AND tags[0] = 'ü'", "k = kind", key="UPPER(kind)"),
]  # fmt: skip


def rows_of(form: RecordFormat, values: Sequence[bytes | None]) -> list[dict[str, Any]]:
    """The decoder's rows, but for the records' own bytes and the texts of dead letters."""
    options = DecodeOptions(16, None, keep_all=False)
    made: Decoder = decoder_for(planned(RULES), form, options)
    serializer: Any = CPickleSerializer()
    decoder = serializer.loads(serializer.dumps(made))
    records = [
        Kafka("t", 0, number, 1_000_000, None, value, None) for number, value in enumerate(values)
    ]
    found = read(decoder, records)
    assert found.failures == []
    rows: list[dict[str, Any]] = found.rows.drop_columns(["value", "size"]).to_pylist()
    return rows


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("written", [in_json, in_framed_json, in_protobuf])
def test_the_same_bits_keys_and_columns(seed: int, written: Callable[[Any], bytes]) -> None:
    """Whatever the format; records without value, and broken ones, are faults in both."""
    events = some_events(Random(seed), 300)
    lines = [written(event) for event in events]
    form = protobuf_format() if written is in_protobuf else json_format()
    of_json = rows_of(form, [*lines, None, lines[0][:-3]])
    avro = [in_avro(event) for event in events]
    of_avro = rows_of(avro_format(), [*avro, None, avro[0][:-3]])
    assert of_json == of_avro
    assert of_json[-1]["fault"] == Fault.UNDECODABLE
    assert len({(row["key_0"], row["conditions_0"]) for row in of_json}) > 5


def test_a_format_without_registry_end_to_end() -> None:
    """Its events are matched by the batch runner as those of Avro, with the same ids, and what
    cannot be read is explained by its reader; it has no schemas to learn."""
    events = some_events(Random(7), 400)
    lines: list[bytes | None] = [json.dumps(event).encode() for event in events]
    avro: list[bytes | None] = [in_avro(event) for event in events]
    of_json = results_of(json_format(), [*lines, None, b'{"kind": "a"'])
    of_avro = results_of(avro_format(), [*avro, None, in_avro(events[0])[:-3]])
    matches = [match.match_id for match in of_json.outputs.matches]
    assert len(matches) > 20
    assert matches == [match.match_id for match in of_avro.outputs.matches]
    assert of_json.counts[Count.TOMBSTONES, "t"] == of_avro.counts[Count.TOMBSTONES, "t"] == 1
    refused = [
        {(letter.at.offset, letter.reason): letter.detail for letter in found.outputs.dead_letters}
        for found in (of_json, of_avro)
    ]
    assert refused[0].keys() == refused[1].keys()
    told = [of_format.pop((401, "undecodable")) for of_format in refused]
    assert [each.split(":")[0] for each in told] == ["the value is not JSON", "the body ends early"]
    # Events without key.
    assert refused[0] == refused[1] != {}


def results_of(form: RecordFormat, values: Sequence[bytes | None]) -> BatchResults:
    """What the batch runner makes of records of a format."""
    assert form.snapshot().known == form.known
    records = [
        Kafka("t", 0, number, 1_000_000, None, value, None) for number, value in enumerate(values)
    ]
    packing = Packing(form, DecodeOptions(16, None, keep_all=False))
    return Runner(planned(RULES), packing).apply(Batch(kafka_records(records), watermark=2_000_000))


LARGE = 120_000


@pytest.mark.parametrize(
    ("key", "count"),
    [
        pytest.param("k", 20_000, marks=pytest.mark.slow),
        ("UPPER(k)", 2_000),
        (["k", "kind"], 2_000),
    ],
)
def test_a_large_constant_of_many_records(key: Any, count: int) -> None:
    """A default of the reader schema that the records' few bytes do not have: up to 2.4 GB."""
    reader = record("t.Event", at="long", kind="string", k=field("string", default="x" * LARGE))
    writer = record("t.Event", at="long", kind="string")
    schemas = [parse(json.dumps(each), "event") for each in (reader, writer)]
    types = (EventType(0, "events", "t.Event", schemas[0], ("t",), "at", "millis"),)
    form = ResolvedSchemas(types, {SCHEMA_ID: (WriterSchema(SCHEMA_ID, schemas[1], None, 0),)})
    rules = [rule("large", "kind = 'a'", "kind = 'a'", key=key, emit={"events": ["k"]})]
    decoder = decoder_for(planned(rules), form, DecodeOptions(16, None, keep_all=False))
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(writer), {"at": 1, "kind": "a"})
    value = frame(SCHEMA_ID, out.getvalue())
    records = [Kafka("t", 0, number, 1, None, value, None) for number in range(count)]
    (together,) = kafka_records(records, count)
    rows, groups, letters = 0, set(), set()
    for piece in pieces(decoder, together, None):
        assert piece.failures == []
        assert all(column.nbytes <= MOST_BYTES * 2 for column in piece.rows.columns)
        assert piece.rows.column("offset").to_pylist() == [*range(rows, rows + piece.rows.num_rows)]
        rows += piece.rows.num_rows
        assert sum(tally.records for tally in piece.tallies) == piece.rows.num_rows
        groups |= set(piece.rows.column("group_0").to_pylist())
        letters |= set(pc.binary_length(piece.rows.column("slot_0_0")).to_pylist())
    assert (rows, len(groups), letters) == (count, 1, {LARGE})


def test_items_with_more_defaults_than_bytes() -> None:
    """Records of two bytes an item, of which five thousand times as many are made: they are decoded
    one by one, and one that is too large by itself is a dead letter."""
    more = {f"d{number}": field("string", default="y" * 5_000) for number in range(2)}
    schemas = []
    for fields in (more, {}):
        item = record("t.Item", x=["null", "int"], **fields)
        event = record("t.Event", at="long", xs={"type": "array", "items": item})
        schemas.append(parse(json.dumps(event), "event"))
    types = (EventType(0, "events", "t.Event", schemas[0], ("t",), "at", "millis"),)
    form = ResolvedSchemas(types, {SCHEMA_ID: (WriterSchema(SCHEMA_ID, schemas[1], None, 0),)})
    rules = [rule("many", "SIZE(xs) > 3", "xs[0].d1 = 'z'", key="at")]
    decoder = decoder_for(planned(rules), form, DecodeOptions(16, None, keep_all=False))
    values = []
    for items in (2, 4_000, 4_000, 4_000, 10_000):
        out = BytesIO()
        datum = {"at": 1, "xs": [{"x": 5}] * items}
        fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(schemas[1].text)), datum)
        values.append(frame(SCHEMA_ID, out.getvalue()))
    records = [Kafka("t", 0, number, 1, None, value, None) for number, value in enumerate(values)]
    (together,) = kafka_records(records, len(records))
    found = [piece.rows for piece in pieces(decoder, together, None)]
    events = [[row["offset"] for row in rows.to_pylist() if row["fault"] == 0] for rows in found]
    assert [offsets for offsets in events if offsets] == [[1], [2], [3]]
    (letter,) = [row for rows in found for row in rows.to_pylist() if row["fault"]]
    assert (letter["offset"], letter["fault"]) == (4, Fault.TOO_LARGE)
    reason, why = decoder.reader.explain(RawRecord("t", letter["value"]), Fault.TOO_LARGE, 0)
    assert reason == Reason.UNDECODABLE
    assert "fields without bytes" in why
