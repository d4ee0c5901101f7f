"""Columns of every type: what the decoder reads of rows is what it reads of an Avro file."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_cep.recorded.opening import open_events
from tests.recorded.logins import run

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
TYPES: dict[str, Any] = {
    "ts": MILLIS,
    "text": "string",
    "small": "int",
    "large": ["null", "long"],
    "single": "float",
    "double": ["double", "null"],
    "flag": ["null", "boolean"],
    "raw": "bytes",
    "day": ["null", {"type": "int", "logicalType": "date"}],
    "micros": {"type": "long", "logicalType": "timestamp-micros"},
    "price": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2},
    "mode": {"type": "enum", "name": "Mode", "symbols": ["ON", "OFF"]},
    "tags": {"type": "array", "items": "string"},
    "by_name": {"type": "map", "values": "long"},
    "inner": {
        "type": "record",
        "name": "Inner",
        "fields": [{"name": "a", "type": ["null", "int"]}, {"name": "b", "type": "string"}],
    },
    "several": ["null", "string", "long"],
}
SCHEMA = {
    "type": "record",
    "name": "t.All",
    "fields": [
        *({"name": name, "type": of} for name, of in TYPES.items()),
        {"name": "added", "type": "string", "default": "as ever"},
    ],
}
AT = datetime(2026, 1, 31, 12, 0, 0, 123_000, UTC)
FULL: dict[str, Any] = {
    "ts": AT,
    "text": 'héllo\n"wörld"',
    "small": -5,
    "large": 1 << 40,
    "single": 0.5,
    "double": -1e300,
    "flag": True,
    "raw": b"\x00\xff",
    "day": date(1969, 12, 31),
    "micros": AT.replace(microsecond=123_456),
    "price": Decimal("-12345678901234567.89"),
    "mode": "OFF",
    "tags": ["a", "", "ü"],
    "by_name": {"x": 1, "y": -1},
    "inner": {"a": None, "b": "β"},
    "several": 7,
}
EMPTY = {
    **FULL, "large": None, "double": None, "flag": None, "day": None, "several": None,
    "tags": [], "by_name": {}, "inner": {"a": 3, "b": ""}, "text": "",
}  # fmt: skip
RULE = (
    "id: all\npattern: [{step: a}]\nemit: {measures: {"
    + ", ".join(f"{name}: LAST(a.{name})" for name in (*TYPES, "added"))
    + "}}\n"
)


def measures(file: Path, *schema: str) -> list[dict[str, Any]]:
    """All columns of all events, and nothing else is found."""
    found, letters = run(open_events([], [str(file)], None, schema, ["ts"]), RULE)
    assert letters == found.outputs.dead_letters == []
    return [dict(match.measures) for match in found.outputs.matches]


@pytest.fixture
def expected(tmp_path: Path) -> list[dict[str, Any]]:
    """The columns as they are read of an Avro container."""
    rows = [{**each, "added": "as ever"} for each in (FULL, EMPTY)]
    with (tmp_path / "all.avro").open("wb") as out:
        fastavro.writer(out, fastavro.parse_schema(json.loads(json.dumps(SCHEMA))), rows)
    (tmp_path / "all.avsc").write_text(json.dumps(SCHEMA), "utf-8")
    found = measures(tmp_path / "all.avro")
    assert len(found) == 2
    assert found[0]["price"] == FULL["price"]
    return found


def test_json_lines(expected: list[dict[str, Any]], tmp_path: Path) -> None:
    """Times and days as text or numbers, decimals as text, bytes in base64."""
    file = tmp_path / "all.jsonl"
    as_text = [
        {
            **each,
            "ts": each["ts"].isoformat(),
            "micros": each["micros"].isoformat(),
            "day": each["day"] and each["day"].isoformat(),
            "price": str(each["price"]),
            "raw": b64encode(each["raw"]).decode(),
        }
        for each in (FULL, EMPTY)
    ]
    file.write_text("".join(json.dumps(each) + "\n" for each in as_text), "utf-8")
    assert measures(file, str(tmp_path / "all.avsc")) == expected


def test_parquet(expected: list[dict[str, Any]], tmp_path: Path) -> None:
    """With the declared schema; without it, all that Arrow has a type for."""
    file = tmp_path / "all.parquet"
    kinds = {
        "ts": pa.timestamp("ns"), "micros": pa.timestamp("ns", "Europe/Berlin"),
        "small": pa.int16(), "single": pa.float32(), "price": pa.decimal128(20, 2),
        "mode": pa.dictionary(pa.int8(), pa.string()), "by_name": pa.map_(pa.string(), pa.int64()),
        "raw": pa.binary(2), "text": pa.large_string(), "several": pa.int64(),
    }  # fmt: skip
    rows = [{**each, "ts": each["ts"].replace(tzinfo=None)} for each in (FULL, EMPTY)]
    table = pa.Table.from_pylist(rows)
    columns = {
        name: pa.array([row[name] for row in rows], kinds.get(name, table.schema.field(name).type))
        for name in TYPES
    }
    pq.write_table(pa.table(columns), file)
    assert measures(file, str(tmp_path / "all.avsc")) == expected
    found, letters = run(
        open_events([], [str(file)], None, (), ["ts"]), "id: r\npattern: [{step: a}]\n"
    )
    assert (len(found.outputs.matches), letters) == (2, [])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"small": 1 << 40}, "small"),
        ({"mode": "IN"}, 'mode: found the text "IN"; allowed: "ON", "OFF"'),
        ({"raw": "!"}, 'raw: found the text "!"; allowed: a text in base64'),
        ({"micros": "noon"}, 'micros: found the text "noon"; allowed: microseconds since 1970'),
        ({"inner": {"a": 1}}, "inner.b: the field is missing"),
        ({"text": None}, "text: found null; allowed: a text"),
    ],
)
def test_values_that_do_not_fit(change: dict[str, Any], why: str, tmp_path: Path) -> None:
    """A dead letter names the column and what was found, as in the job."""
    (tmp_path / "all.avsc").write_text(json.dumps(SCHEMA), "utf-8")
    sound = {
        **FULL, "ts": AT.isoformat(), "micros": AT.isoformat(), "day": "2026-01-31",
        "price": "1.00", "raw": "",
    }  # fmt: skip
    file = tmp_path / "a.jsonl"
    lines = [json.dumps(sound), json.dumps({**sound, **change})]
    file.write_text("\n".join(lines), "utf-8")
    events = open_events([], [str(file)], None, [str(tmp_path / "all.avsc")], ["ts"])
    found, letters = run(events, RULE)
    assert (len(found.outputs.matches), letters) == (1, [])
    (letter,) = found.outputs.dead_letters
    assert letter.at.offset == 2
    assert why in letter.detail
