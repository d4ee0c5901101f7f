"""``spark-cep run --input``: the results that a job would write, without Kafka and Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spark_cep.cli.main import app

RULE = """id: pair
events: logins
key: user
pattern:
  - {step: a, where: kind = 'fail'}
  - {step: b, after: followed_by, where: kind = 'ok'}
within: 1 minute
after_match: skip_past_last_event
"""
#: A match of ann; bob times out; a line that is none; an event that is late.
EVENTS = """{"ts": "2026-01-31T12:00:00Z", "user": "ann", "kind": "fail"}
{"ts": "2026-01-31T12:00:20Z", "user": "ann", "kind": "ok"}
{"ts": "2026-01-31T12:00:30Z", "user": "bob", "kind": "fail"}
{"ts": "2026-01-31T12:05:00Z", "user": "cleo", "kind": "other"}
nothing
{"ts": "2026-01-31T12:00:00Z", "user": "cleo", "kind": "fail"}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A rule, events, and the settings of a job that waits for more at the end."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "pair.yaml").write_text(RULE, "utf-8")
    (tmp_path / "logins.jsonl").write_text(EVENTS, "utf-8")
    (tmp_path / "config.yaml").write_text(
        "kafka: {bootstrap_servers: 'b:1'}\n"
        "inputs: {logins: {topics: [logins], event_time: ts}}\n"
        "state: {checkpoint: c}\n",
        "utf-8",
    )
    return tmp_path


def run(*words: str | Path) -> Result:
    """Run the command."""
    return CliRunner().invoke(app, ["run", *map(str, words)])


def test_for_people(folder: Path) -> None:
    """Results by time, as ``tail`` shows them; what was read, on standard error."""
    result = run("--input", folder / "logins.jsonl", "--rules", folder / "rules")
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    dead, match, timeout, late = lines
    assert late.startswith("2026-01-31 12:00:00 late ")
    assert late.endswith(" 12:00:00 came 4 minutes 59 seconds after the watermark: offset=6")
    assert dead.startswith("dead letter ")
    assert "logins.jsonl - undecodable (partition 0, offset 5): the value is not JSON" in dead
    assert match == "2026-01-31 12:00:20 match pair ann a 12:00:00, b 12:00:20"
    assert timeout == "2026-01-31 12:01:30 timeout pair bob a 12:00:30, not complete by 12:01:30"
    assert "6 records. matches: 1," in result.stderr


def test_for_programs_and_by_settings(folder: Path) -> None:
    """One object a line; rules and the end of time are those of the settings."""
    result = run(
        "--input", folder / "logins.jsonl", "--config", folder / "config.yaml", "--json", "-q"
    )
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [each["kind"] for each in found] == ["dead_letter", "match", "timeout", "late"]
    assert found[1]["key"] == "ann"
    assert found[1]["value"]["time"] == "2026-01-31T12:00:20Z"


def test_wrong_use(folder: Path) -> None:
    """Options of files go with files; a job needs its settings."""
    assert run("--config", folder / "config.yaml", "--rules", folder / "rules").exit_code == 2
    assert run().exit_code == 2
    assert run("--input", folder / "logins.jsonl").exit_code == 3
