"""One topic, three writer schemas at once, named in front or in headers: every event is read as the
newest, whatever wrote it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from spark_cep.codecs.protobuf.descriptors import compiled_text
from spark_cep.codecs.registry.framing import VALUE_HEADER, frame
from tests.e2e.outputs import Outputs, found
from tests.e2e.scenario import Scenario
from tests.e2e.schemas import MICROS, MILLIS, field, record
from tests.e2e.stream import at
from tests.kafka_access import Sent

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def _status(*symbols: str) -> dict[str, object]:
    return {"type": "enum", "name": "Status", "namespace": "e2e", "symbols": [*symbols]}


INNER = record("e2e.Inner", c=["null", "int"])
PLACE = record("e2e.Place", b=INNER)
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
DATE = {"type": "int", "logicalType": "date"}
TEXT_UUID = {"type": "string", "logicalType": "uuid"}
FIRST = record(
    "e2e.Event", ts=MILLIS, old_id="string", price="int", status=_status("NEW"), note="string"
)
SECOND = record(
    "e2e.Event", ts=MILLIS, id="string", price="long", status=_status("NEW", "PAID"),
    note=["null", "string"],
)  # fmt: skip
THIRD = record(
    "e2e.Event",
    ts=MILLIS,
    id=field("string", aliases=["old_id"]),
    price="long",
    status=_status("NEW", "PAID", "SHIPPED"),
    note=["null", "string"],
    region=field("string", default="eu"),
    amount=field(["null", "int", "string"], default=None),
    a=field(PLACE, default={"b": {"c": None}}),
    tags=field({"type": "array", "items": "string"}, default=[]),
    attrs=field({"type": "map", "values": "long"}, default={}),
    seen=field(["null", MICROS], default=None),
    day=field(["null", DATE], default=None),
    total=field(["null", DECIMAL], default=None),
    ref=field(["null", TEXT_UUID], default=None),
)
WHOLE = {
    "id": "k", "price": 5_000_000_000, "status": "SHIPPED", "note": "n3", "region": "us",
    "amount": 42, "a": {"b": {"c": 7}}, "tags": ["hot", "new"], "attrs": {"weight": 3},
    "seen": datetime(2024, 2, 29, 12, 0, 0, 123456, tzinfo=UTC), "day": date(2024, 2, 29),
    "total": Decimal("12.34"), "ref": UUID("12345678-1234-5678-1234-567812345678"),
}  # fmt: skip

PROTO = """
syntax = "proto3";
package e2e;
message Other { string id = 1; }
message Message { string id = 1; int64 ts = 2; repeated string tags = 3; }
"""

CONDITIONS = {
    "id = 'k'": (0, 1, 2, 3, 4),
    "region = 'eu'": (0, 1, 4),
    "region = 'us'": (2, 3),
    "price > 4000000000": (1, 2, 3),
    "price = 7": (0, 4),
    "status = 'NEW'": (0, 4),
    "status IN ('PAID', 'SHIPPED')": (1, 2, 3),
    "note IS NULL": (1,),
    "note = 'n1'": (0, 4),
    "amount.member0 > 41": (2,),
    "amount.member1 = 'many'": (3,),
    "a.b.c = 7": (2, 3),
    "a.b.c IS NULL": (0, 1, 4),
    "array_contains(tags, 'hot')": (2, 3),
    "size(tags) = 0": (0, 1, 4),
    "tags[1] = 'new'": (2, 3),
    "attrs['weight'] = 3": (2, 3),
    "seen > TIMESTAMP '2024-02-29 12:00:00.123455'": (2, 3),
    "seen > TIMESTAMP '2024-02-29 12:00:00.123456'": (),
    "ts < TIMESTAMP '2023-11-14 22:13:22'": (0, 1),
    "day = DATE '2024-02-29'": (2, 3),
    "total = 12.34": (2, 3),
    "total > 12.34": (),
    "ref = '12345678-1234-5678-1234-567812345678'": (2, 3),
}
#: Of an event and the one right before it: true of those at these offsets.
LOOK_BACKS = {
    "seen = LAST(s.seen)": (3,),
    "day = LAST(s.day) AND day < seen": (3,),
    "ref = LAST(s.ref)": (3,),
    "total = LAST(s.total)": (3,),
    "a.b.c = LAST(s.a.b.c)": (3,),
    "note = LAST(s.note)": (3,),
    "price < LAST(s.price)": (4,),
    "price = LAST(s.price)": (2, 3),
    "price * 1.5D > LAST(s.price)": (1, 2, 3),
    "status <> LAST(s.status)": (1, 2, 4),
    "ts > LAST(s.ts)": (1, 2, 3, 4),
    "LAST(s.region) IS NULL": (),
}


@pytest.fixture(scope="module")
def outputs(new_scenario: Callable[[], Scenario]) -> Outputs:
    """One rule a condition, over events of three writers in turn."""
    scenario = new_scenario()
    scenario.input("events")
    scenario.input("micros")
    first, second, third = (scenario.register("events", s) for s in (FIRST, SECOND, THIRD))
    old = {"old_id": "k", "price": 7, "status": "NEW", "note": "n1"}
    middle = {"id": "k", "price": 5_000_000_000, "status": "PAID", "note": None}
    events = [
        (first, old),
        (second, middle),
        (third, WHOLE),
        (third, {**WHOLE, "amount": "many"}),
        (first, old),
    ]
    all_over = {"id": "end", "ts": at(1000)}
    scenario.send(
        "events",
        *(
            _sent(scenario.avro(w, {**e, "ts": at(n)}), in_header=n % 2 == 0)
            for n, (w, e) in enumerate(events)
        ),
        Sent(scenario.avro(third, {**WHOLE, **all_over})),
    )
    micros = scenario.register("micros", record("e2e.Micros", id="string", ts=MICROS))
    for number in range(2):
        datum = {"id": "m", "ts": at(number) * 1000 + 999}
        scenario.send("micros", Sent(scenario.avro(micros, datum)))
    scenario.send("micros", Sent(scenario.avro(micros, {"id": "end", "ts": at(1000) * 1000})))
    schema = scenario.folder / "line.avsc"
    schema.write_text(json.dumps(record("e2e.Line", id="string", ts=MICROS, n="long")), "utf-8")
    scenario.input("lines", format="json", reader_schema={"file": str(schema)})
    lines = [
        b'{"id": "j", "ts": %d, "n": 1, "more": [{}]}' % (at(0) * 1000 + 999),
        # Under an id that no registry has.
        frame(987_654, b'{"n": 2, "id": "\\u006a", "ts": "2023-11-14T22:13:21.000999Z"}'),
        b'{"id": "end", "ts": %d, "n": 3}' % (at(1000) * 1000),
    ]
    scenario.send("lines", *map(Sent, lines))
    scenario.rule(_rule("lines", "lines", where="n < 3"))
    scenario.input("messages", format="protobuf", record="Message")
    # Those in front, and in the header, have the index of the second message.
    in_front = frame(scenario.register_text("messages", PROTO, "PROTOBUF"), b"\2\2")
    message = compiled_text(PROTO, "messages", {}).message_class("e2e.Message")
    bodies = [message(id="p", ts=at(n), tags=["a"] * n).SerializeToString() for n in range(3)]
    end = message(id="end", ts=at(1000)).SerializeToString()
    header: list[tuple[str, str | bytes | None]] = [(VALUE_HEADER, in_front)]
    scenario.send(
        "messages",
        Sent(in_front + bodies[0]),
        *(Sent(body, headers=header) for body in bodies[1:]),
        Sent(in_front + end),
    )
    scenario.rule(_rule("messages", "messages", where="SIZE(tags) <> 1 AND id = 'p'"))
    for number, condition in enumerate(CONDITIONS):
        scenario.rule(_rule(f"condition-{number}", "events", where=condition))
    for number, condition in enumerate(LOOK_BACKS):
        pair = [{"step": "s"}, {"step": "t", "after": "next", "where": condition}]
        scenario.rule({**_rule(f"look-back-{number}", "events"), "pattern": pair})
    rule = _rule("values", "events", where="price > 4000000000")
    columns = ["seen", "day", "total", "ref", "a.b.c", "tags", "attrs", "status"]
    scenario.rule({**rule, "emit": {"events": columns}})
    scenario.rule(_rule("micros", "micros"))
    return scenario.run()


def test_messages_of_protobuf(outputs: Outputs) -> None:
    """By the registry, with schema and index in front or in the header."""
    assert outputs.of("messages")[0] == [found("messages", "p", at(n), s=n) for n in (0, 2)]


def _sent(framed: bytes, *, in_header: bool) -> Sent:
    """A record with its schema id in front, or in a header."""
    if in_header:
        return Sent(framed[5:], headers=[(VALUE_HEADER, framed[:5])])
    return Sent(framed)


def _rule(rule_id: str, events: str, **step: str) -> dict[str, object]:
    pattern = [{"step": "s", **step}]
    return {"id": rule_id, "version": 1, "events": events, "key": "id", "pattern": pattern}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_is_true_of_exactly_these(outputs: Outputs, condition: str) -> None:
    """Defaults, aliases, widened types, enums, unions, nested and logical types in conditions."""
    rule = f"condition-{list(CONDITIONS).index(condition)}"
    matches, timeouts = outputs.of(rule)
    assert matches == [found(rule, "k", at(n), s=n) for n in CONDITIONS[condition]]
    assert timeouts == []


@pytest.mark.parametrize("condition", LOOK_BACKS)
def test_a_condition_that_looks_back_is_true_of_exactly_these(
    outputs: Outputs, condition: str
) -> None:
    """Columns of every type against those of the event before, compiled or called."""
    rule = f"look-back-{list(LOOK_BACKS).index(condition)}"
    expected = [found(rule, "k", at(n), s=n - 1, t=n) for n in LOOK_BACKS[condition]]
    assert outputs.of(rule) == (expected, [])


def test_values_are_emitted_in_their_public_form(outputs: Outputs) -> None:
    """Logical types travel as text in a fixed form, arrays as arrays, what is absent as null."""
    emitted = [
        match.body["steps"][0]["events"][0]["columns"]
        for match in outputs.matches
        if match.body["rule_id"] == "values"
    ]
    whole = {
        "seen": "2024-02-29T12:00:00.123456Z", "day": "2024-02-29", "total": "12.34",
        "ref": "12345678-1234-5678-1234-567812345678", "a.b.c": 7, "tags": ["hot", "new"],
        "attrs": '{"weight":3}', "status": "SHIPPED",
    }  # fmt: skip
    bare: dict[str, Any] = {**dict.fromkeys(whole), "tags": [], "attrs": "{}", "status": "PAID"}
    assert sorted(emitted, key=str) == sorted([bare, whole, whole], key=str)


def test_event_time_in_micros_is_cut_to_millis(outputs: Outputs) -> None:
    """The time of an event with microseconds is the millisecond that it falls into."""
    assert outputs.of("micros")[0] == [found("micros", "m", at(n), s=n) for n in range(2)]


def test_a_topic_of_json_beside_those_of_avro(outputs: Outputs) -> None:
    """With a schema id in front, or without; in the same job."""
    assert outputs.of("lines")[0] == [found("lines", "j", at(n), s=n) for n in range(2)]


def test_no_event_is_a_dead_letter(outputs: Outputs) -> None:
    """Every event of every writer can be read."""
    assert outputs.dead_letters == []
