"""Columns of Kafka's own, as rules use them: `_kafka.offset` and others."""

from __future__ import annotations

import datetime as dt
import json
from base64 import b64encode
from typing import Any

import pytest

from spark_cep.codecs.avro.schema import parse
from spark_cep.codecs.json.reader import JsonFormat
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.pattern.types import KAFKA_COLUMNS, column_type, record_type
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions, record_types
from spark_cep.pipeline.decode.packing import Packing
from spark_cep.runner.batch import Batch, BatchResults
from spark_cep.runner.runner import Runner
from tests.e2e.schemas import record
from tests.pipeline.decode.reference import Kafka, kafka_records
from tests.pipeline.decode.test_decoder import planned, rule

SCHEMA = record("t.Event", n="long")
FIRST = 1_700_000_000_000


def results(rules: list[dict[str, Any]]) -> BatchResults:
    """What becomes of five records, whose event time is that of Kafka."""
    schema = parse(json.dumps(SCHEMA), "e")
    types = (EventType(0, "events", "t.Event", schema, ("t",), "_kafka.timestamp", "auto"),)
    kinds = ["a", "b", None, "ü", "a"]
    keys = [b"k", b"k", b"k", b"\xff", None]
    records = [
        Kafka(
            "t", 3, 100 + number, FIRST + number, keys[number],
            json.dumps({"n": number, "_kafka": "own"}).encode(),
            kind if kind is None else json.dumps([{"key": "kind", "value": b64(kind)}]),
        )
        for number, kind in enumerate(kinds)
    ]  # fmt: skip
    form = JsonFormat(types)
    packing = Packing(form, DecodeOptions(16, None, keep_all=False))
    batch = Batch(kafka_records(records), watermark=FIRST + 10_000_000)
    plan = compile_rules((each.rule for each in planned(rules).plans), record_types(form))
    return Runner(plan, packing).apply(batch)


def b64(text: str) -> str:
    """In base64."""
    return b64encode(text.encode()).decode()


def test_in_conditions_keys_time_measures_and_emitted_columns() -> None:
    """Whatever is Kafka's; a key that is no text is NULL, and so is a header that is not there."""
    measures = {
        "first": "FIRST(one._kafka.offset)", "at": "LAST(two._kafka.timestamp)",
        "where": "LAST(two._kafka.topic)",
    }  # fmt: skip
    given = rule(
        "r", "_kafka.headers['kind'] = 'a' AND _kafka.partition = 3",
        "_kafka.offset = LAST(one._kafka.offset) + 2 AND _kafka.headers['kind'] IS NULL",
        key="_kafka.key", emit={"measures": measures, "events": ["_kafka.key", "n"]},
    )  # fmt: skip
    found = results([given])
    (match,) = found.outputs.matches
    assert (match.key, match.time, match.start) == ("k", FIRST + 2, FIRST)
    assert match.measures == {
        "first": 100,
        "at": dt.datetime.fromtimestamp(FIRST / 1000, dt.UTC) + dt.timedelta(milliseconds=2),
        "where": "t",
    }
    (event,) = match.steps["two"]
    assert event.columns == {"_kafka.key": "k", "n": 2}
    # The event whose key is not there would be taken by the first step.
    assert [(letter.at.offset, letter.reason) for letter in found.outputs.dead_letters] == [
        (104, "missing_key")
    ]


def test_in_rules_in_sql() -> None:
    """In the key, in conditions, in measures with navigation and aggregates, and in each row."""
    sql = """
        SELECT * FROM events MATCH_RECOGNIZE (
          PARTITION BY _kafka.partition ORDER BY _kafka.timestamp
          MEASURES FIRST(a._kafka.offset) AS first, LAST(b._kafka.topic) AS topic,
            LAST(b._kafka.timestamp) AS at, SUM(b._kafka.offset) AS total,
            a._kafka.headers['kind'] AS kind, LAST(b._kafka.key) AS key
          {rows} AFTER MATCH SKIP PAST LAST ROW PATTERN (a b{{3}})
          DEFINE a AS a._kafka.headers['kind'] = 'a' AND a.n = 0,
            b AS b._kafka.offset > PREV(b._kafka.offset) AND b._kafka.key IS NOT NULL
              OR b._kafka.headers['kind'] = 'ü')"""
    found = results([{"id": "one", "sql": sql.format(rows="ONE ROW PER MATCH")}])
    (match,) = found.outputs.matches
    assert (match.key, match.start, match.time) == ("3", FIRST, FIRST + 3)
    assert match.measures == {
        "partition": 3, "first": 100, "topic": "t", "total": 306, "kind": "a", "key": None,
        "at": dt.datetime.fromtimestamp(FIRST / 1000, dt.UTC) + dt.timedelta(milliseconds=3),
    }  # fmt: skip
    assert found.outputs.dead_letters == []
    found = results([{"id": "all", "sql": sql.format(rows="ALL ROWS PER MATCH")}])
    rows = found.outputs.as_objects().rows
    assert [row.columns["n"] for row in rows] == [0, 1, 2, 3]
    assert all("_kafka" not in name for row in rows for name in row.columns)


def test_texts_of_kafka_are_compared() -> None:
    """Topic and key, also beyond ASCII."""
    given = rule("r", "_kafka.topic = 't' AND n = 0", "_kafka.headers['kind'] = 'ü'")
    assert [match.time for match in results([given]).outputs.matches] == [FIRST + 3]


def test_an_event_with_such_a_column_keeps_it() -> None:
    """A column `_kafka` of the event's own comes first."""
    own = record("t.Event", n="long", _kafka="string")
    assert str(column_type(record_type(json.dumps(own)), ("_kafka",))) == "STRING"
    assert column_type(record_type(json.dumps(own)), ("_kafka", "offset")) is None


@pytest.mark.parametrize("name", KAFKA_COLUMNS.fields)
def test_each_is_a_column(name: str) -> None:
    """Of every record type; all together are none."""
    columns = record_type(json.dumps(SCHEMA))
    assert column_type(columns, ("_kafka", name)) is not None
    assert column_type(columns, ("_kafka",)) is None
    assert column_type(columns, ("_kafka", "size")) is None
    assert "_kafka" not in columns.fields
