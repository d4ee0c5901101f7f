"""Output records in JSON, as people and programs read them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spark_cep.codecs.output.json_results import JsonResults
from spark_cep.codecs.output.outputs import ByContract
from spark_cep.errors import OutputError
from spark_cep.model import Coordinates, DeadLetter, Match, TakenEvent

NOW = 1_767_268_800_005
AT = Coordinates("logins", 3, 7)


def match(measures: dict[str, Any]) -> Match:
    """A match of one event."""
    event = TakenEvent(AT, 1_767_268_800_000, None, b"\0\xff", "t.Login")
    return Match(
        match_id="0" * 32, rule_id="r", rule_version=2, key="ü", steps={"s": (event,)},
        start=1_767_268_800_000, time=1_767_268_800_001, measures=measures,
    )  # fmt: skip


def test_a_match() -> None:
    """Times are ISO 8601, bytes base64; what JSON has no word for is a text."""
    measures = {
        "n": 5,
        "x": 0.5,
        "nan": float("nan"),
        "tags": ["a", None],
        "raw": b"\1",
        "no": None,
    }
    value = JsonResults().value("match", match(measures), NOW, "a match")
    assert json.loads(value) == {
        "match_id": "0" * 32, "rule_id": "r", "rule_version": 2, "key": "ü",
        "start": "2026-01-01T12:00:00.000Z", "time": "2026-01-01T12:00:00.001Z",
        "emitted_at": "2026-01-01T12:00:00.005Z",
        "measures": {
            "n": 5, "x": 0.5, "nan": "NaN", "tags": ["a", None], "raw": "AQ==", "no": None,
        },
        "annotations": None,
        "steps": [{"step": "s", "events": [{
            "topic": "logins", "partition": 3, "offset": 7, "time": "2026-01-01T12:00:00.000Z",
            "type": "t.Login", "columns": None, "payload": "AP8=",
        }]}],
    }  # fmt: skip
    assert "ü".encode() in value
    with pytest.raises(OutputError, match="a value of type object cannot be written"):
        JsonResults().value("match", match({"x": object()}), NOW, "a match")


def test_a_dead_letter() -> None:
    """With the record's bytes."""
    letter = DeadLetter(AT, "undecodable", "why", b"k", b'{"a"')
    found = json.loads(JsonResults().value("dead-letter", letter, NOW, "a dead letter"))
    assert found["record_value"] == "eyJhIg=="
    assert (found["record_key"], found["rule_id"], found["offset"]) == ("aw==", None, 7)
    assert found["failed_at"] == "2026-01-01T12:00:00.005Z"


def test_each_kind_has_its_encoder() -> None:
    """By the settings."""

    class Marked:
        def value(self, *given: Any) -> bytes:
            return b"marked"

        def values(self, *given: Any) -> Any:
            raise NotImplementedError

    both = ByContract({"match": Marked(), "dead-letter": JsonResults()})
    assert both.value("match", match({}), NOW, "") == b"marked"
    letter = DeadLetter(AT, "undecodable", "why", b"k", b"v")
    assert both.value("dead-letter", letter, NOW, "").startswith(b'{"topic":"logins"')
