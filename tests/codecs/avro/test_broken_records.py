"""The reason of a broken record, for people: always one sentence, never an error."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.codecs.avro.broken_records import (
    LARGEST_EXPLAINED,
    decoding_fault,
    explain_undecodable,
)
from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.output.dead_letters import LONGEST_DETAIL, Reason


def record(*fields: tuple[str, Any], name: str = "R") -> AvroSchema:
    """A record schema from fields."""
    return parse(
        {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]},
        "schema",
    )


WRITER = record(("name", "string"), ("size", "long"))
RECURSIVE = record(("next", ["null", "R"]))
ZERO_WIDTH = record(("nothing", {"type": "array", "items": "null"}))
EMPTY_RECORDS = record(
    ("nothing", {"type": "array", "items": {"type": "record", "name": "N", "fields": []}})
)
EMPTY_FIXED = record(
    ("nothing", {"type": "array", "items": {"type": "fixed", "name": "N", "size": 0}})
)
WIDE = record(
    ("e", {"type": "enum", "name": "E", "symbols": ["X"]}),
    ("d", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}),
    ("t", {"type": "long", "logicalType": "timestamp-micros"}),
    ("i", {"type": "int", "logicalType": "date"}),
    ("u", ["null", {"type": "string", "logicalType": "uuid"}]),
    ("m", {"type": "map", "values": {"type": "array", "items": "double"}}),
    ("f", {"type": "fixed", "name": "F", "size": 3}),
)


def encode(datum: dict[str, Any]) -> bytes:
    """A good record of WRITER."""
    body = io.BytesIO()
    fastavro.schemaless_writer(body, WRITER.json, datum)
    return body.getvalue()


GOOD = encode({"name": "abc", "size": 5})
INTS, LONGS = (record(("ns", {"type": "array", "items": kind})) for kind in ("int", "long"))
#: One item, which only a long holds.
HUGE = b"\x02" + bytes.fromhex("80a0abfef962") + b"\x00"


def test_items_with_many_fields_are_not_decoded_again() -> None:
    """Bytes that would be thousands of times as large as values."""
    fields = [{"name": f"d{number}", "type": "string", "default": "y"} for number in range(50)]
    few = {"type": "record", "name": "I", "fields": [{"name": "x", "type": ["null", "int"]}]}
    many = few | {"fields": [*few["fields"], *fields]}
    writer, reader = (record(("xs", {"type": "array", "items": items})) for items in (few, many))
    # A million items of a byte each are announced, and there are fewer.
    body = b"\x80\x89\x7a" + bytes(100_000)
    assert "ends early" in explain_undecodable(body, writer, writer)[1]
    reason, why = explain_undecodable(body, writer, reader)
    assert reason == Reason.UNDECODABLE
    assert why.startswith("the body has 100003 bytes, too many to decode again with arrays or maps")


@pytest.mark.parametrize(
    ("value", "writer", "reader", "part"),
    [
        (GOOD, WRITER, WRITER, "out of its range"),
        (HUGE, INTS, INTS, "schema: ns[]: 1700000000000 is no int, which has 32 bits"),
        (HUGE, INTS, LONGS, "schema: ns[]: 1700000000000 is no int, which has 32 bits"),
        (GOOD[:-1], WRITER, WRITER, "ends early"),
        (b"\x02\xff\x02", WRITER, WRITER, "utf-8"),
        (b"\x02\xff\x02", WRITER, WRITER, "does not fit the writer schema"),
        (GOOD, WRITER, record(("other", "int")), "cannot be read with the reader schema"),
        (GOOD, RECURSIVE, RECURSIVE, "recursive"),
        (GOOD, ZERO_WIDTH, ZERO_WIDTH, "without bytes"),
        (GOOD, EMPTY_RECORDS, WRITER, "without bytes"),
        (GOOD, EMPTY_FIXED, WRITER, "without bytes"),
        (bytes(LARGEST_EXPLAINED + 1), WRITER, WRITER, "too many"),
    ],
)
def test_explanations(value: bytes, writer: AvroSchema, reader: AvroSchema, part: str) -> None:
    """Each kind of damage is told apart, and costly work is declined."""
    reason, detail = explain_undecodable(value, writer, reader)
    assert reason is Reason.UNDECODABLE
    assert part in detail


def test_what_follows_is_ignored() -> None:
    """Every Avro decoder passes over it."""
    assert decoding_fault(GOOD, WRITER, WRITER) is None
    assert decoding_fault(GOOD + b"xx", WRITER, WRITER) is None
    assert decoding_fault(GOOD[5:], WRITER, WRITER) is not None


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}


@pytest.mark.parametrize(
    ("kind", "datum", "part"),
    [
        (DECIMAL, (9_999).to_bytes(2, "big"), None),
        (DECIMAL, (-9_999).to_bytes(12, "big", signed=True), None),
        (DECIMAL, (10_000).to_bytes(2, "big"), "c: 2 bytes hold more than the 4 digits"),
        (DECIMAL, (2**64 + 5).to_bytes(9, "big"), "c: 9 bytes hold more than the 4 digits"),
        (DECIMAL, b"", "c: a decimal of no bytes"),
        (["null", DECIMAL], b"", "c: a decimal of no bytes"),
        ({"type": "array", "items": DECIMAL}, [b"\x01", b""], "c[]: a decimal of no bytes"),
        ({"type": "map", "values": DECIMAL}, {"k": b""}, "c[]: a decimal of no bytes"),
        ({"type": "long", "logicalType": "timestamp-millis"}, -62_135_596_800_000, None),
        ({"type": "long", "logicalType": "timestamp-millis"}, -62_135_596_800_001, "years 1 to"),
        ({"type": "long", "logicalType": "timestamp-micros"}, 253_402_300_799_999_999, None),
        ({"type": "long", "logicalType": "timestamp-micros"}, 253_402_300_800_000_000, "years 1"),
        ({"type": "int", "logicalType": "date"}, -719_162, None),
        ({"type": "int", "logicalType": "date"}, 2_932_897, "c: 2932897 as date is outside"),
    ],
)
def test_values_beyond_their_type(kind: Any, datum: Any, part: str | None) -> None:
    """What can be decoded, but is more than its type holds, is named by its column."""
    schema = record(("c", kind))
    body = io.BytesIO()
    plain = json.loads(schema.text.replace('"logicalType"', '"was"'))
    fastavro.schemaless_writer(body, fastavro.parse_schema(plain), {"c": datum})
    fault = decoding_fault(body.getvalue(), schema, schema)
    if part is None:
        assert fault is None
    else:
        assert fault is not None
        assert fault[0] is Reason.VALUE_OUT_OF_RANGE
        assert part in fault[1]


@given(st.binary(max_size=200), st.sampled_from([WRITER, WIDE, RECURSIVE, ZERO_WIDTH]))
def test_never_raises(value: bytes, writer: AvroSchema) -> None:
    """Any bytes end in a sentence of bounded length."""
    assert 0 < len(explain_undecodable(value, writer, WRITER)[1]) <= LONGEST_DETAIL


def test_reasons_have_meanings() -> None:
    """Each reason is one word with a sentence."""
    for reason in Reason:
        assert reason == reason.value
        assert reason.meaning.endswith(".")
