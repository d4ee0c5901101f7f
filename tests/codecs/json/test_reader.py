"""Dead letters of JSON name the field, what was found, what is allowed, or the place."""

from __future__ import annotations

import json

import pytest

from spark_cep.codecs.avro.schema import parse
from spark_cep.codecs.json.reader import JsonFormat
from spark_cep.codecs.output.dead_letters import LONGEST_DETAIL, Reason
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.record_reader import RawRecord
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.vectors import Bytes
from spark_cep.pattern.types import SqlType, column_type, record_type
from tests.e2e.schemas import field, record

LINE = record("t.Line", sku="string")
SCHEMA = record(
    "t.Event",
    user="string",
    n=field(["null", "int"], default=None),
    amount=field(["null", "double"], default=None),
    ok=field(["null", "boolean"], default=None),
    at=field(["null", {"type": "long", "logicalType": "timestamp-millis"}], default=None),
    price=field(
        ["null", {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}],
        default=None,
    ),
    kind=field(["null", {"type": "enum", "name": "K", "symbols": ["a", "b"]}], default=None),
    lines=field({"type": "array", "items": LINE}, default=[]),
    counts=field(["null", {"type": "map", "values": "long"}], default=None),
    either=field(["null", "string", "long"], default=None),
)


def explained(value: bytes, topic: str = "t") -> tuple[Fault, Reason, str]:
    """The fault of a record, and its dead letter's reason and words."""
    schema = parse(json.dumps(SCHEMA), "event")
    types = (EventType(0, "events", "t.Event", schema, ("t",), "at", "millis"),)
    vectors, columns = ColumnVectors(), record_type(json.dumps(SCHEMA))
    wanted: dict[tuple[str, ...], tuple[int, SqlType]] = {}
    for name in columns.fields:
        of = column_type(columns, (name,))
        assert of is not None
        wanted[name,] = vectors.value((name,), of), of
    reader = JsonFormat(types, {0: "t-.*"}).reader([wanted], vectors)
    read = reader.read(topic, Bytes.of([value]), Bytes.of([None]))
    fault = Fault(int(read.faults[0]))
    return (fault, *reader.explain(RawRecord(topic, value), fault, int(read.types[0])))


WRONG = [
    (b"", "the value is empty, not a JSON object"),
    (b"  ", "the value is 2 bytes without text, not a JSON object"),
    (b"\0\0\0\0\7", "the value is 5 bytes without text, not a JSON object"),
    (b"[1]", "the value is an array of JSON; an event is an object"),
    (b"5", "the value is a single value of JSON; an event is an object"),
    (b'{"user": "a"', "not JSON: Expecting ',' delimiter at byte 12, where the value ends"),
    ('{"user": "ü", n}'.encode(), "property name enclosed in double quotes at byte 15: n}"),
    (b'\0\0\0\0\7{"user": x}', "the value is not JSON: Expecting value at byte 14: x}"),
    (b'{"user": NaN}', "NaN is no value of JSON"),
    (b"{}", "user: the field is missing; it needs a text (STRING)"),
    (b'{"user": null}', "user: found null; allowed: a text (STRING)"),
    (b'{"user": 5}', "user: found the number 5; allowed: a text (STRING)"),
    (b'{"user": "\xff"}', "user: found the text"),
    (b'{"user": "\\ud800"}', "allowed: text in UTF-8"),
    (b'{"user": "u", "n": "5"}', 'n: found the text "5"; allowed: a whole number of type INT'),
    (b'{"user": "u", "n": 1.5}', "n: found the number 1.5; allowed: a whole number of type INT"),
    (b'{"user": "u", "amount": "x"}', 'amount: found the text "x"; allowed: a number, '),
    (b'{"user": "u", "ok": 1}', "ok: found the number 1; allowed: true or false"),
    (b'{"user": "u", "at": "soon"}', "allowed: milliseconds since 1970, or text in ISO 8601"),
    (b'{"user": "u", "price": {}}', "a number, or text that is one, of type DECIMAL(5, 2)"),
    (b'{"user": "u", "kind": "c"}', 'kind: found the text "c"; allowed: "a", "b"'),
    (b'{"user": "u", "lines": {}}', "lines: found an object; allowed: an array"),
    (b'{"user": "u", "lines": [{"sku": "s"}, {}]}', "lines[].sku: the field is missing"),
    (b'{"user": "u", "counts": {"x": true}}', "counts.x: found true; allowed: a whole number"),
    (b'{"user": "u", "either": []}', "either: found an array; allowed: one of string, long"),
    (b'{"user": "u"} {}', "the value is not JSON: Extra data at byte 14: {}"),
    (b'\xef\xbb\xbf{"user": "u"}', "the value is not JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "words"), WRONG)
def test_what_is_wrong_is_said(value: bytes, words: str) -> None:
    """With field, found and allowed, or the byte."""
    fault, reason, why = explained(value)
    assert fault == Fault.UNDECODABLE
    assert reason == Reason.UNDECODABLE
    assert words in why
    assert len(why) <= LONGEST_DETAIL
    assert why.isprintable()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b'{"user": "u", "n": 2147483648}', "n: found the number 2147483648; allowed: "),
        (b'{"user": "u", "price": 1000}', "price: found the number 1000; allowed: "),
        (b'{"user": "u", "price": "0.001"}', "price: found the number 0.001; allowed: "),
        (b'{"user": "u", "at": 253402300800000}', "allowed: a time of the years 1 to 9999"),
        (b'{"user": "u", "at": "0001-01-01T00:00:00+01:00"}', "allowed: a time of the years"),
    ],
)
def test_what_is_out_of_range_has_its_reason(value: bytes, words: str) -> None:
    """As in Avro."""
    _, reason, why = explained(value)
    assert reason == Reason.VALUE_OUT_OF_RANGE
    assert words in why


def test_topics_of_a_pattern_are_read_when_they_come() -> None:
    """Others are not."""
    assert explained(b"{}", "t-new")[1] == Reason.UNDECODABLE
    schema = parse(json.dumps(SCHEMA), "event")
    types = (EventType(0, "events", "t.Event", schema, ("t",), "at", "millis"),)
    reader = JsonFormat(types).reader([{}], ColumnVectors())
    assert reader.read("other", Bytes.of([b"{}", None]), Bytes.of([None] * 2)).faults.tolist() == [
        Fault.NOT_READ,
        Fault.TOMBSTONE,
    ]


def test_deep_and_large_ones_are_explained() -> None:
    """By their limits."""
    deep = b'{"user": "u", "x": ' + b"[" * 300 + b"]" * 300 + b"}"
    fault, reason, why = explained(deep)
    assert (fault, reason) == (Fault.TOO_DEEP, Reason.UNDECODABLE)
    assert "more than 256 levels" in why
    large = b'{"user": 5, "x": "' + b"x" * (5 << 20) + b'"}'
    assert "too many to explain" in explained(large)[2]
