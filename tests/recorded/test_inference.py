"""Schemas found out from records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_cep.cli.main import app
from spark_cep.codecs.schema_files import schema_of_file
from spark_cep.errors import SchemaError
from spark_cep.pattern.types import record_type
from spark_cep.recorded.inference import schema_of_values

EVENTS = [
    {"user": "ann", "n": 1, "amount": 2, "at": "2026-01-31T12:00:00.5Z", "tags": ["a"]},
    {"user": "bob", "amount": 2.5, "at": "2026-01-31T12:00:01Z", "inner": {"x": True}},
]
COLUMNS = {
    "user": "STRING", "n": "BIGINT", "amount": "DOUBLE", "at": "TIMESTAMP", "tags": "ARRAY<STRING>",
    "inner": "STRUCT<x: BOOLEAN>",
}  # fmt: skip


def test_values_with_and_without_a_schema_id() -> None:
    """On several lines, too; what is no JSON is passed over."""
    values = [json.dumps(EVENTS[0], indent=2).encode(), b"no JSON"]
    values.append(b"\0\0\0\0\7" + json.dumps(EVENTS[1]).encode())
    found = schema_of_values(values, "t", "t.Login")
    assert {n: str(of) for n, of in record_type(found.schema.text).fields.items()} == COLUMNS
    assert found.schema.root == "t.Login"
    with pytest.raises(SchemaError, match="none of 1 records is JSON"):
        schema_of_values([b"x"], "t", "Event")


def test_the_command_writes_a_schema(tmp_path: Path) -> None:
    """To standard output, or a file that an input reads its records with."""
    file, schema = tmp_path / "events.jsonl", tmp_path / "event.avsc"
    lines = [*map(json.dumps, EVENTS), json.dumps({"user-id": 1})]
    file.write_text("\n".join(lines), "utf-8")
    run = CliRunner().invoke(app, ["schema", "infer", str(file), "--output", str(schema)])
    assert run.exit_code == 0
    assert "left out: 'user-id'" in run.stderr
    written = schema_of_file(schema)
    assert {n: str(of) for n, of in record_type(written.text).fields.items()} == COLUMNS
    shown = CliRunner().invoke(app, ["schema", "infer", str(file), "--record", "t.Login"])
    assert json.loads(shown.stdout)["name"] == "t.Login"


def test_a_topic_needs_settings() -> None:
    """And a file has to be there."""
    run = CliRunner().invoke(app, ["schema", "infer", "no-such"])
    assert run.exit_code != 0
    assert "to read the topic no-such, give the settings with --config" in run.stderr
