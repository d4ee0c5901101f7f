"""Schemas of any kind under an id: what is legal is read, all else makes its records dead letters,
and nothing ends the job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import fastavro
import pytest

from spark_cep.codecs.avro.broken_records import decoding_fault, explain_undecodable
from spark_cep.codecs.avro.resolved import resolved
from spark_cep.codecs.avro.schema import parse
from spark_cep.codecs.avro.value_reader import ValueReader
from spark_cep.codecs.output.dead_letters import LONGEST_DETAIL, Reason
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.registry import resolved_schemas
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.codecs.registry.framing import frame, prefixed
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas
from spark_cep.errors import SchemaError
from spark_cep.event_times import KAFKA_TIMESTAMP
from spark_cep.pattern.expressions import ExpressionError, check_types
from spark_cep.pattern.expressions import parse as parse_expression
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions
from tests.codecs.registry.test_resolved_schemas import FakeRegistry, record
from tests.codecs.registry.test_resolved_schemas import resolved as at_start
from tests.pipeline.decode import schemas as known
from tests.pipeline.decode.mutated_schemas import ITSELF, mutated_event
from tests.pipeline.decode.reference import Kafka, Setting, read
from tests.pipeline.decode.test_decoder import CONDITIONS, planned, rule

MUTATIONS = 600


def with_field(kind: Any, **more: Any) -> dict[str, Any]:
    """The record E with a field of this type."""
    return record("E", "n") | {"fields": [{"name": "f", "type": kind, **more}]}


def learnt(reader: Any, *writers: Any) -> ResolvedSchemas:
    """With these schemas under the ids 1, 2, …, of records E that ``reader`` reads."""
    event_type = EventType(0, "i", "E", parse(reader, "reader"), ("t",), KAFKA_TIMESTAMP, "auto")
    schemas = ResolvedSchemas((event_type,))
    schemas.ask(FakeRegistry(dict(enumerate(writers, 1))), range(1, len(writers) + 1))
    return schemas


def outcomes(
    schemas: ResolvedSchemas, values: Sequence[bytes], *conditions: str
) -> dict[int, Fault]:
    """What the decoder of a plan with these conditions finds in records, by their places; those
    that no input reads are left out."""
    plan = planned([rule(f"r{n}", each, "true") for n, each in enumerate(conditions)])
    setting = Setting(plan, schemas, DecodeOptions(4, None, keep_all=True))
    records = [Kafka("t", 0, n, known.NOW_MS, None, value) for n, value in enumerate(values)]
    rows = read(setting.decoder, records).rows
    return {row["offset"]: Fault(row["fault"]) for row in rows.to_pylist()}


def value_of(schemas: ResolvedSchemas, schema_id: int, body: bytes) -> Any:
    """The event of a sound record, which the decoder takes."""
    (writer,) = schemas.writers[schema_id]
    (event_type,) = schemas.types
    (column,) = event_type.columns.fields
    found = outcomes(schemas, [frame(schema_id, body)], f"{column} IS NOT NULL")
    assert found == {0: Fault.NONE}
    return ValueReader(resolved(writer.schema, event_type.reader), writer.schema)(body)


UNREADABLE: dict[str, tuple[Any, str]] = {
    "a record of itself": (with_field(ITSELF), "Z contains itself without end"),
    "in an array": (with_field({"type": "array", "items": ITSELF}), "Z contains itself"),
    "in a union": (with_field(["null", {"type": "map", "values": ITSELF}]), "Z contains itself"),
    "by way of another": (
        with_field(record("A") | {"fields": [{"name": "e", "type": ["E"]}]}),
        "contains itself without end",
    ),
    "a name that is no text": (record("E") | {"name": 5}, "5 is not a name for a record"),
    "a name that is a list": (with_field({"type": "enum", "name": [], "symbols": []}), "[] is not"),
    "symbols that are none": (
        with_field({"type": "enum", "name": "X", "symbols": [["a"]]}),
        "Every symbol must match",
    ),
    "items without bytes": (with_field({"type": "array", "items": "null"}), "without bytes"),
}


@pytest.mark.parametrize(("writer", "part"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_has_no_values_or_no_meaning_is_unreadable(writer: Any, part: str) -> None:
    """With the reason; others are read on."""
    schemas = learnt(record("E"), writer, record("E", "n"))
    assert part in schemas.unreadable[1]
    assert [*schemas.writers] == [2]
    assert schemas.ids == {1, 2}


LEGAL: dict[str, tuple[Any, Any, Any]] = {
    "an array with a name": (
        ["null", {"type": "array", "name": "xs", "items": "int"}],
        ["null", {"type": "array", "items": "int"}],
        [1, 2],
    ),
    "a map with a name that is no text": (
        ["null", {"type": "map", "name": 5, "namespace": [], "values": "int"}],
        ["null", {"type": "map", "values": "int"}],
        {"a": 1},
    ),
    "a primitive with what others have": (
        ["null", {"type": "string", "name": {}, "items": 5, "symbols": 7, "aliases": 1}],
        ["null", "string"],
        "x",
    ),
    "a name of the reader": (
        ["null", {"type": "array", "items": "int"}],
        ["null", {"type": "array", "name": "xs", "items": "int"}],
        [3],
    ),
    "a logical type that is no text": ("int", {"type": "int", "logicalType": ["date"]}, 7),
    "a namespace that is no text": (
        ["null", {"type": "enum", "name": "X", "namespace": 5, "symbols": ["A"]}],
        ["null", {"type": "enum", "name": "X", "symbols": ["B", "A"]}],
        "A",
    ),
    "a map with items": ({"type": "map", "items": 5, "values": "int"}, known.EXTRA["sizes"] | {
        "values": "int"}, {"a": 1}),
}  # fmt: skip


@pytest.mark.parametrize(("written", "of", "value"), LEGAL.values(), ids=LEGAL)
def test_what_only_others_have_is_ignored(written: Any, of: Any, value: Any) -> None:
    """As the Java library does: the values are read."""
    schemas = learnt(with_field(of), with_field(written))
    assert not schemas.unreadable
    (writer,) = schemas.writers[1]
    body = BytesIO()
    fastavro.schemaless_writer(body, json.loads(writer.schema.text), {"f": value})
    assert value_of(schemas, 1, body.getvalue()) == {"f": value}
    assert decoding_fault(body.getvalue(), writer.schema, schemas.types[0].reader) is None


@pytest.mark.parametrize(
    ("of", "value"),
    [
        (["null", "E"], {"f": {"f": None}}),
        ({"type": "array", "items": "E"}, {"f": [{"f": []}, {"f": []}]}),
        ({"type": "map", "values": ["E", "int"]}, {"f": {"a": {"f": {}}, "b": 7}}),
    ],
)
def test_records_that_may_end_are_read(of: Any, value: Any) -> None:
    """A type that contains itself in an array, a map or a union, beside what the reader reads."""
    writer = with_field(of)
    writer["fields"].append({"name": "n", "type": "long"})
    inner = [value["f"], *(value["f"].values() if isinstance(value["f"], dict) else value["f"])]
    for each in (value, *inner):
        if isinstance(each, dict) and "f" in each:
            each["n"] = 7
    schemas = learnt(record("E", "n"), writer)
    body = BytesIO()
    fastavro.schemaless_writer(body, writer, value)
    assert value_of(schemas, 1, body.getvalue()) == {"n": 7}


def test_defaults_of_writers_do_not_matter(tmp_path: Path) -> None:
    """They are read. As a reader the version is passed over, and a broken record is explained."""
    wrong = with_field("string", default=None)
    good = with_field(["null", "string"], default=None)
    schemas = at_start(tmp_path, FakeRegistry({1: good, 2: wrong}, t_value=[1, 2]), i=["t"])
    assert not schemas.unreadable
    assert [*schemas.writers] == [1, 2]
    assert value_of(schemas, 2, b"\2x") == {"f": "x"}
    (event_type,) = schemas.types
    writer = schemas.writers[2][0].schema
    reason, detail = explain_undecodable(b"\6x", writer, event_type.reader)
    assert (reason, detail[:14]) == (Reason.UNDECODABLE, "the body ends ")
    with pytest.raises(SchemaError, match="t-value: Default value <None>"):
        at_start(tmp_path, FakeRegistry({2: wrong}, t_value=[2]), i=["t"])


@pytest.mark.parametrize(
    ("reader", "part"),
    [
        (with_field(ITSELF), r"t-value: .*Z contains itself without end"),
        (record("E") | {"name": 5}, "t-value: .*5 is not a name"),
        (with_field({"type": "enum", "name": "X", "symbols": [["a"]]}), "t-value: Every symbol"),
        (
            with_field("double", default=10**400),
            "t-value: the schema cannot be used: OverflowError: int too large",
        ),
    ],
)
def test_a_reader_is_refused_at_the_start(tmp_path: Path, reader: Any, part: str) -> None:
    """With the subject."""
    with pytest.raises(SchemaError, match=part):
        at_start(tmp_path, FakeRegistry({1: reader}, t_value=[1]), i=["t"])


UNREAD: dict[str, tuple[Any, Any, Any]] = {
    "too many digits": (known.decimal(64, 2), known.decimal(64, 2), 7),
    "of another scale": (known.decimal(64, 2), known.decimal(64, 3), 7),
    "no decimal": ({"type": "bytes", "logicalType": "decimal"}, "bytes", b"x"),
    "a record of itself": (["null", "E"], ["null", "E"], None),
    "an array of itself": ({"type": "array", "items": "E"}, "bytes", b"xyz"),
    "a map with such records": (
        {"type": "map", "values": {"type": "record", "name": "M", "fields": [
            {"name": "amount", "type": known.decimal(64, 2)}]}},
        "string",
        "text",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("read", "written", "value"), UNREAD.values(), ids=UNREAD)
def test_a_column_that_cannot_be_read(tmp_path: Path, read: Any, written: Any, value: Any) -> None:
    """The other columns can, whatever is written in that one."""
    reader, writer = with_field(read), with_field(written)
    for each in (reader, writer):
        each["fields"].append({"name": "n", "type": "long"})
    assert not at_start(tmp_path, FakeRegistry({1: reader}, t_value=[1]), i=["t"]).unreadable
    schemas = learnt(reader, writer)
    assert not schemas.unreadable
    body = BytesIO()
    value = Decimal(value) if isinstance(value, int) else value
    fastavro.schemaless_writer(body, writer, {"f": value, "n": 7})
    assert outcomes(schemas, [frame(1, body.getvalue())], "n = 7") == {0: Fault.NONE}
    damaged = outcomes(schemas, [frame(1, body.getvalue()[:-1])], "n = 7")
    assert damaged == {0: Fault.UNDECODABLE}
    (event_type,) = schemas.types
    for expression in ("f IS NULL", "f = n", "n = 7 AND f.f.n = 3"):
        with pytest.raises(ExpressionError, match=r"column f\S* cannot be read: .*(itself|beyond)"):
            check_types(parse_expression(expression), event_type.columns, {})


@pytest.mark.parametrize(
    ("of", "default"),
    [
        ("int", 2**31),
        ("long", -(2**63) - 1),
        ("string", "\ud800"),
        (known.PLACE, {"city": 5}),
        # Fastavro lets these pass.
        (["null", known.DAY], ["x"]),
        (record("P") | {"fields": [{"name": "c", "type": ["null", known.TAGS]}]}, {"c": "Bonn"}),
        (record("P") | {"fields": [{"name": "c", "type": known.TAGS}]}, {"c": "Bonn"}),
    ],
)
def test_a_default_that_cannot_be_used(of: Any, default: Any) -> None:
    """It concerns the writers that need it, and no others."""
    reader = {**record("E"), "fields": [{"name": "f", "type": of, "default": default}]}
    schemas = learnt(reader, record("E", "n"), with_field(of))
    assert [*schemas.writers] == [2]
    schemas.unreadable[1].encode()


def test_the_class_of_what_went_wrong_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what nobody foresaw, in one line that is not long."""

    def fails(*_: Any) -> str:
        raise RecursionError("no\nend" * 1_000)

    monkeypatch.setattr(resolved_schemas, "without_bytes", fails)
    schemas = learnt(record("E"), record("E"))
    told = schemas.unreadable[1]
    assert told.startswith("schema id 1 cannot be used: RecursionError: no\\nend")
    assert len(told) <= LONGEST_DETAIL + 1


def test_a_registry_that_fails_decides_nothing() -> None:
    """What is no fault of a schema is not taken for one."""

    class Broken(FakeRegistry):
        def get_schema(self, _schema: Any) -> Any:
            raise OSError("gone")

    schemas = ResolvedSchemas(())
    with pytest.raises(OSError, match="gone"):
        schemas.ask(Broken({}), [1])
    assert not schemas.ids


def test_no_schema_ends_the_job() -> None:
    """Schemas damaged at random are learnt, planned for, and their records decoded or explained."""
    random = Random(7)
    damaged = [mutated_event(random) for _ in range(MUTATIONS)]
    event_type = EventType(0, "i", "t.Event", known.reader(), ("t",), KAFKA_TIMESTAMP, "auto")
    schemas = ResolvedSchemas((event_type,))
    ids = range(1, MUTATIONS + 1)
    schemas.ask(FakeRegistry(dict(enumerate(damaged, 1))), ids)
    assert schemas.ids == {*ids}
    assert not schemas.writers.keys() & schemas.unreadable.keys()
    # Both occur often, or the test shows little.
    read_as_event = [i for i, of in schemas.writers.items() if of[0].type is not None]
    assert len(read_as_event) > MUTATIONS // 10
    assert len(schemas.unreadable) > MUTATIONS // 10
    for told in schemas.unreadable.values():
        assert told.encode().decode().isprintable()
        assert len(told) <= LONGEST_DETAIL + 1
    values = [frame(i, body) for i in ids for body in (b"", bytes(300), random.randbytes(60))]
    faults = outcomes(schemas, values, *CONDITIONS)
    for place, value in enumerate(values):
        schema_id, fault = prefixed(value).schema, faults.get(place)
        assert (fault is Fault.UNREADABLE_SCHEMA) == (schema_id in schemas.unreadable)
        if fault is Fault.UNDECODABLE:
            writer = schemas.writers[schema_id][0].schema
            explain_undecodable(value[5:], writer, event_type.reader)


def test_no_reader_ends_in_anything_else(tmp_path: Path) -> None:
    """The same as the only version of a subject: the job starts, or its error tells why."""
    random = Random(8)
    refused = 0
    for _ in range(MUTATIONS // 4):
        try:
            at_start(tmp_path, FakeRegistry({1: mutated_event(random)}, t_value=[1]), i=["t"])
        except SchemaError as error:
            refused += 1
            assert "t-value" in str(error)
    assert MUTATIONS // 40 < refused < MUTATIONS // 4
