"""Events of every column type, and every way in which their records can be broken."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from io import BytesIO
from typing import Any, NamedTuple

import fastavro

from spark_cep.codecs.registry.framing import frame
from tests.e2e.schemas import MICROS, MILLIS, field, record
from tests.e2e.stream import at, sequence
from tests.kafka_access import Sent

DAY = 86_400_000
UNKNOWN_ID = 987_654
YEAR_10000 = 253_402_300_800_000
YEAR_1 = -62_135_596_800_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def decimal(precision: int) -> dict[str, Any]:
    """Decimals of two digits behind the point."""
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 2}


COLUMNS: dict[str, Any] = {
    "ts": ["null", MILLIS],
    "k": ["null", "string"],
    "name": "string",
    "v": "double",
    "n": "int",
    "amount": decimal(9),
    "wide": decimal(30),
    "seen": ["null", MICROS],
    "day": {"type": "int", "logicalType": "date"},
    "mood": {"type": "enum", "name": "Mood", "symbols": ["GOOD", "BAD"]},
    "tags": {"type": "array", "items": "string"},
    "attributes": {"type": "map", "values": "string"},
}
EVENT = record("e2e.Event", **COLUMNS)

#: A writer that knows one field more, of a type that contains itself; no rule reads it.
NODE = record("e2e.Node", next=["null", "e2e.Node"])
NESTED = record("e2e.Event", tree=field(["null", NODE], default=None), **COLUMNS)


def number(value: int) -> bytes:
    """An int, long, length, count or index as Avro writes it."""
    value = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while value >> 7:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def text(value: bytes) -> bytes:
    """Bytes or text as Avro writes it."""
    return number(len(value)) + value


def body(values: Mapping[str, Any], **raw: bytes) -> bytes:
    """An event's Avro body; ``raw`` columns are put in as they are."""
    parts = BytesIO()
    for name in COLUMNS:
        if name in raw:
            parts.write(raw[name])
        else:
            fastavro.schemaless_writer(parts, _KINDS[name], values[name])
    return parts.getvalue()


_KINDS = {
    name: fastavro.parse_schema(json.loads(json.dumps(kind))) for name, kind in COLUMNS.items()
}


def without_logical_types(schema: Any) -> Any:
    """A schema for values as they stand in the bytes."""

    def plain(node: Any) -> Any:
        if isinstance(node, dict):
            return {name: plain(part) for name, part in node.items() if name != "logicalType"}
        return [plain(part) for part in node] if isinstance(node, list) else node

    return fastavro.parse_schema(plain(schema))


def values(key: str, name: str, time_ms: int, v: float = 0.0, **more: Any) -> dict[str, Any]:
    """A sound event, as the columns of a rule see it."""
    return {
        "ts": EPOCH + timedelta(milliseconds=time_ms),
        "k": key,
        "name": name,
        "v": v,
        "n": 1,
        "amount": Decimal("12.34"),
        "wide": Decimal("-1234567890123456789012.34"),
        "seen": None,
        "day": date(2026, 1, 31),
        "mood": "GOOD",
        "tags": ["é", ""],
        "attributes": {"": "", "a": "ü"},
        **more,
    }


def rules() -> list[dict[str, Any]]:
    """Rules that read columns of every type, in Spark, compiled and in Python."""
    plain = sequence("plain", "a", "followed_by b", within="5 minutes")
    columns = ["tags", "attributes", "seen", "day", "wide", "mood", "n"]
    plain["emit"] = {"events": columns}
    rising = sequence("rising", "a", "followed_by c", within="5 minutes")
    rising["pattern"][1]["where"] = "name = 'c' AND v >= a.v"
    exact = sequence("exact", "b", "followed_by d", within="5 minutes")
    exact["pattern"][1]["where"] = "name = 'd' AND amount + 0 >= FIRST(b.amount) AND day = b.day"
    strict = sequence("strict", "a", "next b", within="1 minute")
    return [plain, rising, exact, strict]


class Broken(NamedTuple):
    """One broken record and the reason of its dead letter."""

    what: str
    sent: Sent
    reason: str


def broken_kinds(flat: int, nested: int) -> list[Broken]:
    """Every kind, once. ``flat`` and ``nested``: ids of the two schemas.

    Each would complete a match, or move the clock, if it were taken for an event.
    """
    good = values("k1", "b", at(5))
    whole = frame(flat, body(good))
    now = int(time.time() * 1000)

    def made(**raw: bytes) -> bytes:
        return frame(flat, body(good, **raw))

    def timed(time_ms: int) -> bytes:
        return made(ts=number(1) + number(time_ms))

    def unscaled(value: int) -> bytes:
        return text(value.to_bytes((value.bit_length() + 8) // 8, "big", signed=True))

    garbage = random.Random(7).randbytes(64)
    kinds: dict[str, dict[str, bytes]] = {
        "not_framed": {
            "empty": b"",
            "shorter than an id": b"\x00\x00\x01",
            "wrong magic byte": b"\x07" + whole[1:],
            "random bytes": b"\x99" + garbage,
            "JSON": b'{"k": "k1", "name": "b"}',
        },
        "unknown_schema_id": {
            "unknown id": frame(UNKNOWN_ID, whole[5:]),
            "unknown id and garbage": frame(UNKNOWN_ID, garbage),
            "id 0": frame(0, b""),
            "the largest id": frame(2**31 - 1, b""),
            "more than an id can be": frame(2**32 - 1, b""),
        },
        "undecodable": {
            "no body": whole[:5],
            "cut early": whole[:9],
            "cut by one byte": whole[:-1],
            "garbage behind the id": frame(flat, b"\xff" * 24),
            "key is not UTF-8": made(k=number(1) + text(b"k\xff")),
            "name is not UTF-8": made(name=text(b"b\xc3")),
            "half a surrogate pair": made(name=text(b"\xed\xa0\x80")),
            "overlong UTF-8": made(name=text(b"\xc0\xa2")),
            "tag is not UTF-8": made(tags=number(1) + text(b"\xfe") + number(0)),
            "attribute is not UTF-8": made(attributes=number(1) + text(b"a") + text(b"\x80\x00")),
            "name of an attribute is not UTF-8": made(
                attributes=number(1) + text(b"\xf8") + text(b"a") + number(0)
            ),
            "text of negative length": made(name=number(-5) + b"abcde"),
            "text of 1 GiB": made(name=number(2**30) + b"b"),
            "text of 2 GiB": made(name=number(2**31 - 10) + b"b"),
            "text of 4 EiB": made(name=number(2**62) + b"b"),
            "bytes of 2 GiB": made(amount=number(2**31 - 10) + b"b"),
            "2^30 tags": made(tags=number(2**30)),
            "2^31 tags in a block with its size": made(tags=number(-(2**31) + 1) + number(9)),
            "2^62 tags": made(tags=number(2**62)),
            "2^30 attributes": made(attributes=number(2**30)),
            "symbol 9 of 2": made(mood=number(9)),
            "symbol -1": made(mood=number(-1)),
            "branch 5 of 2": made(k=number(5)),
            "branch -1": made(k=number(-1) + text(b"k1")),
            "int of 40 bits": made(n=number(2**40)),
            "number without end": made(n=b"\xff" * 30),
            "nested 400,000 deep": frame(
                nested, number(1) + number(1) * 400_000 + number(0) + body(good)
            ),
            "cut, and not UTF-8": made(name=text(b"\xff"))[:-1],
        },
        "value_out_of_range": {
            "decimal of 10 digits for 9": made(amount=unscaled(10**9)),
            "decimal of 65 bits for 9 digits": made(amount=unscaled(2**64 + 5)),
            "negative decimal of 65 bits": made(amount=unscaled(-(2**64) - 5)),
            "decimal of 31 digits for 30": made(wide=unscaled(10**30)),
            "decimal of 600 digits": made(wide=unscaled(10**600)),
            "decimal without bytes": made(amount=text(b"")),
            "date in the year 10000": made(day=number(2_932_897)),
            "the last date of all": made(day=number(2**31 - 1)),
            "moment in the year 10000": made(seen=number(1) + number(YEAR_10000 * 1000)),
            "the last moment of all": made(seen=number(1) + number(2**63 - 1)),
            "event time in the year 10000": timed(YEAR_10000),
            "event time in the year 0": timed(YEAR_1 - 1),
            "event time long.max": timed(2**63 - 1),
            "event time long.min": timed(-(2**63)),
        },
        "missing_key": {"null key": made(k=number(0))},
        "missing_event_time": {
            "null time": made(ts=number(0)),
            "null key and time": made(ts=number(0), k=number(0)),
        },
        "event_time_out_of_bounds": {
            "year 9999": timed(YEAR_10000 - 1),
            "two days ahead": timed(now + 2 * DAY),
            "year 9999 and null key": made(k=number(0), ts=number(1) + number(YEAR_10000 - 1)),
        },
    }
    made_all = [
        Broken(what, Sent(value, key=f"key {what}".encode()), reason)
        for reason, group in kinds.items()
        for what, value in group.items()
    ]
    # A wrong clock dates the record and its event: the bound is the clock's own then.
    ahead = Sent(timed(now + DAY + 1_500_000), timestamp=now + 3_000_000)
    return [*made_all, Broken("ahead of the clock alone", ahead, "event_time_out_of_bounds")]
