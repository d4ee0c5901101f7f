"""The streams of the cliffs: log-ins and payments with columns of every type behind their own.

All of these columns follow from one number that is drawn for each event, the level, from 0 to 999.
Two events of a hundred are low (a level below 20), ten are high (900 or more). So a condition on
any of the columns can choose exactly the events that a condition on another one chooses.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from bench import avro_pieces as avro
from bench.events import logins
from bench.feed import Encoded, Stream
from bench.payments import Amount, payments

LEVELS, LOW, HIGH = 1_000, 20, 900
#: Of the columns ``day`` and ``moment`` at level 0; each level is a day later.
FIRST_DAY = datetime(2020, 1, 1, tzinfo=UTC)
_MICROS_A_DAY = 86_400_000_000
_TYPES_OF_UNION = ("Early", "Late")


def grade(level: int) -> str:
    """``low``, ``middle`` or ``high``."""
    return "low" if level < LOW else "middle" if level < HIGH else "high"


@dataclass(frozen=True)
class Columns:
    """Columns behind those of an event: fields, and their values by level. ``before`` is what
    stands in front of the event, by level."""

    fields: list[dict[str, Any]] = field(default_factory=list)
    behind: list[bytes] = field(default_factory=list)
    before: list[bytes] = field(default_factory=lambda: [b""] * LEVELS)


def all_types() -> Columns:
    """Columns of every type."""
    fields = [{"name": name, "type": of} for name, (of, _) in _COLUMNS.items()]
    values = [value for _, value in _COLUMNS.values()]
    return Columns(fields, [b"".join(value(n) for value in values) for n in range(LEVELS)])


def _decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def _part(name: str) -> dict[str, Any]:
    fields = [{"name": "grade", "type": "string"}, {"name": "number", "type": "int"}]
    return {"type": "record", "name": name, "fields": fields}


def _text(of: Callable[[int], str]) -> Callable[[int], bytes]:
    return lambda level: avro.text(of(level))


def _part_of(level: int) -> bytes:
    return avro.text(grade(level)) + avro.long(level)


def _perhaps(level: int) -> bytes:
    missing = LOW <= level < HIGH and level % 2
    return avro.long(0) if missing else avro.long(1) + _part_of(level)


def _moment(level: int) -> bytes:
    """At one o'clock where low, at eleven p.m. where high, and in between otherwise."""
    hour = {"low": 1, "middle": 2 + level % 20, "high": 23}[grade(level)]
    micros = (FIRST_DAY + timedelta(days=level, hours=hour)).timestamp() * 1_000_000
    return avro.long(round(micros))


_FIRST_DAY_NUMBER = round(FIRST_DAY.timestamp() * 1_000_000) // _MICROS_A_DAY
_BANDS = ("LOW", "MIDDLE", "HIGH")
_COLUMNS: dict[str, tuple[Any, Callable[[int], bytes]]] = {
    "number": ("int", avro.long),
    "big": ("long", lambda level: avro.long(level * 10**10)),
    # A quarter is exact in binary.
    "single": ("float", lambda level: avro.single(level + 0.25)),
    "real": ("double", lambda level: avro.double(level + 0.25)),
    "exact": (_decimal(12, 2), lambda level: avro.decimal(level * 100 + 25)),
    "wide": (_decimal(38, 10), lambda level: avro.decimal(level * 10**25 + 1)),
    "is_low": ("boolean", lambda level: avro.boolean(level < LOW)),
    "is_high": ("boolean", lambda level: avro.boolean(level >= HIGH)),
    "grade": ("string", _text(grade)),
    "padded": ("string", _text(lambda level: f"  {grade(level)} ")),
    "rank": ("string", _text(lambda level: f"rank-{level:04}")),
    "higher_rank": ("string", _text(lambda level: f"rank-{level + HIGH - LOW:04}")),
    "digits": ("string", _text(str)),
    "marks": ("string", _text(lambda level: "x" * (1 + _BANDS.index(grade(level).upper())))),
    "label": ("string", _text(lambda level: f"pay-{grade(level)}-{level:04}-eu")),
    "region": ("string", _text(lambda _: "eu")),
    "band": (
        {"type": "enum", "name": "Band", "symbols": list(_BANDS)},
        lambda level: avro.long(_BANDS.index(grade(level).upper())),
    ),
    "day": (
        {"type": "int", "logicalType": "date"},
        lambda level: avro.long(_FIRST_DAY_NUMBER + level),
    ),
    "moment": ({"type": "long", "logicalType": "timestamp-micros"}, _moment),
    "part": (_part("Part"), _part_of),
    "perhaps": (["null", _part("Perhaps")], _perhaps),
    "tags": (
        {"type": "array", "items": "string"},
        lambda level: avro.array([avro.text(grade(level)), avro.text("x")]),
    ),
    "attributes": (
        {"type": "map", "values": "string"},
        lambda level: avro.array(
            [avro.text("k") + avro.text(grade(level)), avro.text("l") + avro.text("de")]
        ),
    ),
    "raw": ("bytes", lambda level: avro.binary(grade(level).encode())),
    "raw_low": ("bytes", lambda _: avro.binary(b"low")),
    "raw_high": ("bytes", lambda _: avro.binary(b"high")),
}


def cliff_logins(count: int, columns: Columns) -> Stream:
    """Log-ins with ``columns``."""
    plain = logins(count)
    source = random.Random(11)

    def with_columns(event: Encoded, level: int) -> Encoded:
        return event[0], columns.before[level] + event[1] + columns.behind[level]

    schema = {**plain.schema, "fields": [*plain.schema["fields"], *columns.fields]}
    return Stream(
        schema,
        (with_columns(event, source.randrange(LEVELS)) for event in plain.events),
        lambda partition: with_columns(plain.closing(partition), LEVELS // 2),
    )


def cliff_payments(count: int, columns: Columns) -> Stream:
    """Payments with ``columns``."""
    pieces = list(zip(columns.before, columns.behind, strict=True))
    return payments(count, Amount.DECIMAL, more=columns.fields, pieces=pieces)


def of_two_types(make: Callable[[int, Columns], Stream], count: int) -> Stream:
    """The same events as records of two types in one topic: ``Early`` up to the middle level, then
    ``Late``."""
    columns = all_types()
    branches = [avro.long(level // (LEVELS // 2)) for level in range(LEVELS)]
    stream = make(count, Columns(columns.fields, columns.behind, branches))
    return Stream(_union(stream.schema), stream.events, stream.closing)


def _union(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The record under two names. Types in it can be defined once only."""
    first, second = _TYPES_OF_UNION
    fields = [{**one, "type": _by_name(one["type"])} for one in record["fields"]]
    return [{**record, "name": first}, {**record, "name": second, "fields": fields}]


def _by_name(of: Any) -> Any:
    if isinstance(of, list):
        return [_by_name(branch) for branch in of]
    return of["name"] if isinstance(of, dict) and "name" in of else of
