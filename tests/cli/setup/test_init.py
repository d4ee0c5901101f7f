"""``spark-cep init``: what it writes passes ``check``, ``test``, ``fmt`` and ``config check`` at
once, whatever the events look like."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from spark_cep.cli.main import app
from spark_cep.cli.setup.first_rule import quoted
from spark_cep.cli.setup.sample import input_name

EVENTS: dict[str, list[dict[str, Any]]] = {
    # Two kinds, one after the other; a number as key.
    "payments": [
        {"at": f"2026-01-31T12:{n:02}:00Z", "card_id": n % 3, "status": status, "amount": n * 1.5}
        for n, status in enumerate(["declined", "approved", "declined", "it's"] * 6)
    ],
    # No kinds: the same key several times. Names that an expression cannot have as they are.
    "Sensor-Values": [
        {"time": f"2026-01-31T1{n % 10}:00:00Z", "select": f"s{n % 2}", "first": n, "value": n / 7}
        for n in range(20)
    ],
    # No key either.
    "ticks": [{"ts": f"2026-01-31T12:00:0{n}Z", "price": n + 0.5} for n in range(5)],
    # One event is enough for a rule.
    "single": [{"ts": "2026-01-31T12:00:00Z", "note": 'a "quote": #1'}],
}


def invoke(*words: str | Path) -> Result:
    """Run a command."""
    return CliRunner().invoke(app, [*map(str, words)])


def lines(events: list[dict[str, Any]]) -> str:
    """JSON lines."""
    return "".join(json.dumps(event) + "\n" for event in events)


def table(events: list[dict[str, Any]]) -> str:
    """CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(events[0]))
    writer.writeheader()
    writer.writerows(events)
    return text.getvalue()


def check_project(folder: Path) -> dict[str, Any]:
    """Run what a newcomer would, and return what the test case expects."""
    (schema,) = (folder / "schemas").glob("*.avsc")
    for words in (
        ("check", folder / "rules", "--schema", schema, "--strict"),
        ("test", folder / "rules"),
        ("fmt", "--check", folder / "rules" / "first-rule.yaml"),
        ("config", "check", "--config", folder / "config.yaml"),
    ):
        result = invoke(*words)
        assert result.exit_code == 0, (words, result.output)
    cases = yaml.safe_load((folder / "rules/first-rule.cases.yaml").read_text("utf-8"))
    expected: dict[str, Any] = cases["cases"][0]["expect"]
    assert expected["matches"], "the rule finds something"
    return expected


@pytest.mark.parametrize(
    ("name", "form"), [*((name, lines) for name in EVENTS), ("payments", table)]
)
def test_from_a_file(name: str, form: Any, tmp_path: Path) -> None:
    """Of any kind."""
    file = tmp_path / f"{name}.{'jsonl' if form is lines else 'csv'}"
    file.write_text(form(EVENTS[name]), "utf-8")
    result = invoke("init", tmp_path / "job", "--input", file)
    assert result.exit_code == 0, result.output
    check_project(tmp_path / "job")
    back = invoke("backtest", "--rules", tmp_path / "job" / "rules", "--input", file, "--json")
    assert json.loads(back.stdout)["rules"][0]["matches"] >= 1, back.output


def test_the_rule(tmp_path: Path) -> None:
    """Key and kinds are found by names and values."""
    file = tmp_path / "payments.jsonl"
    file.write_text(lines(EVENTS["payments"]), "utf-8")
    assert invoke("init", tmp_path / "job", "--input", file).exit_code == 0
    rule = yaml.safe_load((tmp_path / "job/rules/first-rule.yaml").read_text("utf-8"))
    assert (rule["events"], rule["key"]) == ("payments", "card_id")
    first, second = (step["where"] for step in rule["pattern"])
    assert first.startswith("status = '")
    assert first != second
    settings = yaml.safe_load((tmp_path / "job/config.yaml").read_text("utf-8"))
    assert settings["inputs"] == {
        "payments": {
            "topics": ["payments"], "format": "json", "event_time": "at",
            "reader_schema": {"file": "schemas/payments.avsc"},
        }
    }  # fmt: skip


def test_from_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Into the working folder, with events of its own; a second time nothing is touched."""
    monkeypatch.chdir(tmp_path)
    result = invoke("init")
    assert result.exit_code == 0, result.output
    assert "wrote config.yaml\n" in result.stdout
    assert "spark-cep run --input logins.jsonl --config config.yaml\n" in result.stderr
    expected = check_project(tmp_path)
    assert [match["key"] for match in expected["matches"]] == ["bob"]
    for name in ("compose.yaml", ".github/workflows/rules.yaml"):
        assert yaml.safe_load((tmp_path / name).read_text("utf-8"))
    before = {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
    again = invoke("init")
    assert again.exit_code == 3
    assert "config.yaml, " in again.stderr
    assert before == {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
    assert invoke("init", "other", "-q").stderr == ""


def next_commands(result: Result) -> list[list[str]]:
    """The words of the commands that ``init`` says are next."""
    told = re.findall(r"^note: next: (.+)$", result.stderr, re.MULTILINE)
    return [shlex.split(line)[1:] for line in told]


def test_the_next_commands_work(tmp_path: Path) -> None:
    """Also where the event time is no timestamp, and had to be named; a record that cannot be read
    does not change what the columns are."""
    file = tmp_path / "beats.jsonl"
    beats = [
        {"at": 1_767_600_000 + 60 * n, "machine": f"m{n % 2}", "state": ("up", "down")[n // 2 % 2]}
        for n in range(8)
    ]
    file.write_text(lines(beats), "utf-8")
    result = invoke("init", tmp_path / "job", "--input", file, "--event-time", "at:seconds")
    assert result.exit_code == 0, result.output
    told = next_commands(result)
    assert [words[0] for words in told] == ["explain", "check", "test", "run"]
    for words in told:
        done = invoke(*words)
        assert done.exit_code == 0, (words, done.output)
    file.write_text(lines([*beats, {"at": "later", "machine": "m1"}]), "utf-8")
    done = invoke(*told[-1])
    assert done.exit_code == 0, done.output
    assert "2026-01-05 08:02:00  match        first-rule      m0" in done.stdout
    assert "dead letter" in done.stdout


@pytest.mark.parametrize(("form", "registry"), [("jsonl", False), ("csv", True)])
def test_json_needs_no_registry(form: str, registry: bool, tmp_path: Path) -> None:
    """Neither for events nor for results; event time moves on where nothing comes."""
    file = tmp_path / f"payments.{form}"
    file.write_text((table if registry else lines)(EVENTS["payments"]), "utf-8")
    assert invoke("init", tmp_path / "job", "--input", file).exit_code == 0
    settings = yaml.safe_load((tmp_path / "job/config.yaml").read_text("utf-8"))
    assert ("registry" in settings) == registry
    assert settings["outputs"].get("format") == (None if registry else "json")
    assert settings["outputs"]["topics"]["matches"] == "payments.matches"
    assert settings["time"] == {"advance_when_idle": "10 seconds"}
    compose = yaml.safe_load((tmp_path / "job/compose.yaml").read_text("utf-8"))
    assert ("registry" in compose["services"]) == registry


def test_what_cannot_be_read(tmp_path: Path) -> None:
    """Nothing is written."""
    file = tmp_path / "events.jsonl"
    file.write_text('{"a": 1}\n', "utf-8")
    result = invoke("init", tmp_path / "job", "--input", file)
    assert result.exit_code == 3
    assert "--event-time" in result.stderr
    assert not (tmp_path / "job").exists()
    assert invoke("init", "--topic", "t", "--input", file).exit_code == 2


def test_names() -> None:
    """Of inputs, and of columns in expressions."""
    assert [input_name(each) for each in ("Card.Payments-v2", "7up", "", "ü")] == [
        "card_payments_v2", "events_7up", "events", "events",
    ]  # fmt: skip
    assert [quoted(each) for each in ("user_id", "select", "a b")] == [
        "user_id", "`select`", "`a b`",
    ]  # fmt: skip
