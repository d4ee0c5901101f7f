"""The streams of the benchmark of formats."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from google.protobuf.json_format import MessageToDict

from bench.events import logins
from bench.formats import LOGINS, PAYMENTS, in_json, in_protobuf
from bench.payments import Amount, payments
from spark_cep.codecs.protobuf.descriptors import compiled_file


def test_the_same_events_in_json() -> None:
    """With their keys, and without framing; times are texts with an offset."""
    for stream, key, time in ((logins, "user_id", 0), (payments, "card", "+00:00")):
        given, made = list(stream(3).events), in_json(stream(3))
        found = list(made.events)
        assert not made.framed
        assert [each for each, _ in found] == [each for each, _ in given]
        for text in (*(body for _, body in found), made.closing(0)[1]):
            event = json.loads(text)
            assert {each["name"] for each in made.schema["fields"]} == event.keys()
            assert key in event
            assert isinstance(event["ts"], int) or str(event["ts"]).endswith(str(time))


def test_the_same_events_in_protobuf() -> None:
    """Field by field as Protobuf's parser reads them, behind the index of the first message."""
    for stream, (file, message) in (
        (logins, LOGINS),
        (lambda count: payments(count, Amount.DOUBLE), PAYMENTS),
    ):
        given, made = list(in_json(stream(3)).events), in_protobuf(stream(3), file, message)
        files = compiled_file(file)
        assert next(each.full_name for _, each in files.messages()) == message
        assert (made.framed, made.schema.schema_type) == (True, "PROTOBUF")
        for (key, text), (own_key, body) in zip(given, made.events, strict=True):
            assert (own_key, body[:1]) == (key, b"\0")
            event, found = json.loads(text), files.message_class(message).FromString(body[1:])
            at = datetime.fromisoformat(event.pop("ts"))
            assert found.ts.ToDatetime(UTC) == at
            told = MessageToDict(found, preserving_proto_field_name=True)
            del told["ts"]
            assert told == without_nulls(event)


def without_nulls(value: Any) -> Any:
    """A value, without what is not there and what has no bytes in Protobuf."""
    if not isinstance(value, dict):
        return value
    kept = {name: without_nulls(inner) for name, inner in value.items()}
    return {name: inner for name, inner in kept.items() if inner not in (None, "EUR", 0)}
