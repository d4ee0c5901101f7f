"""`spark-cep tap` makes a case of recorded events that `spark-cep test` runs."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner, Result

from spark_cep.cli.exit_codes import ExitCode
from spark_cep.cli.main import app
from tests.cases.files import written

RULE = """
    id: two
    events: logins
    key: user_id
    pattern:
      - step: a
        where: kind = 'a'
      - step: b
        after: followed_by
        where: kind = 'b' AND ip = LAST(a.ip)
    within: 1 minute
    emit:
      measures:
        ip: LAST(b.ip)
"""
EVENTS = [
    ("ann", "a", "10.0.0.7", "2026-03-01T08:00:00.250Z"),
    ("bob", "b", "10.0.0.9", "2026-03-01T08:00:01Z"),
    ("ann", "c", None, "2026-03-01T08:00:03Z"),
    ("ann", "b", "10.0.0.7", "2026-03-01T08:00:02Z"),
    ("ann", "a", "10.0.0.8", "2026-03-01T08:00:20Z"),
    ("ann", "a", "10.0.0.8", "2026-03-01T09:00:00Z"),
]


def tapped(folder: Path, *options: str) -> Result:
    """The command over a file of JSON lines."""
    rule = written(folder, "two.yaml", RULE)
    lines = [
        json.dumps({"user_id": user, "kind": kind, "ip": ip, "ts": at})
        for user, kind, ip, at in EVENTS
    ]
    events = written(folder, "events.jsonl", "\n".join(lines) + "\n")
    return CliRunner().invoke(
        app,
        ["tap", "--rule", "two", "--key", "ann", "--rules", str(rule), "--input", str(events),
         "--output", str(folder / "ann.cases.yaml"), *options],
    )  # fmt: skip


def test_a_case_of_a_key(tmp_path: Path) -> None:
    """Its events from the first on, in their order, and what was found; the case passes."""
    result = tapped(tmp_path, "--to", "2026-03-01T08:30:00Z")
    assert result.exit_code == 0, result.output
    assert "4 events, expects 1 match, 1 timeout" in result.stdout
    text = (tmp_path / "ann.cases.yaml").read_text("utf-8")
    assert "start: 2026-03-01T08:00:00Z" in text
    assert "allowed_disorder: 1 second" in text
    assert "bob" not in text
    assert "- {send: {user_id: ann, kind: a, ip: 10.0.0.7}, at: 250 ms}" in text
    assert "- {send: {user_id: ann, kind: c}, at: 3 seconds}" in text
    assert "- clock: 1 minute 20 seconds" in text
    done = CliRunner().invoke(app, ["test", str(tmp_path / "ann.cases.yaml")])
    assert done.exit_code == 0, done.output


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    """It is named, whichever file of it comes first."""
    result = tapped(tmp_path, "--output", str(tmp_path / "new" / "ann.cases.yaml"))
    assert result.exit_code == ExitCode.CONFIGURATION
    assert f"the folder {tmp_path / 'new'} does not exist" in result.stderr.replace("\n", "")


def test_masked_columns(tmp_path: Path) -> None:
    """No value of them is in the file, and the rule finds the same."""
    result = tapped(tmp_path, "--mask", "ip, user_id")
    assert result.exit_code == 0, result.output
    assert "5 events, expects 1 match, 2 timeouts" in result.stdout
    text = (tmp_path / "ann.cases.yaml").read_text("utf-8")
    assert "10.0.0" not in text
    assert "ann" not in text.replace("ann.logins.avsc", "")
    assert "ip: mask-1}, at: 250 ms" in text
    assert "measures: {ip: mask-1}" in text


def test_mistakes(tmp_path: Path) -> None:
    """A column, key or file that is not there is told; nothing is written over."""
    result = tapped(tmp_path, "--mask", "ipp")
    assert result.exit_code == ExitCode.CONFIGURATION
    assert "no event has a column 'ipp'; did you mean `ip`?" in result.stderr
    result = tapped(tmp_path, "--event", "events.jsonl/0/1")
    assert "give --key or --event, not both" in result.stderr
    result = tapped(tmp_path, "--key", "carl")
    assert "no event with the key 'carl'" in result.stderr
    assert tapped(tmp_path).exit_code == 0
    result = tapped(tmp_path)
    assert result.exit_code == ExitCode.CONFIGURATION
    assert "there is such a file already" in result.stderr


def test_a_case_of_an_event(tmp_path: Path) -> None:
    """The key and the time are the event's: the rule's window on both sides of it is taken."""
    rule = written(tmp_path, "two.yaml", RULE)
    lines = [
        json.dumps({"user_id": user, "kind": kind, "ip": ip, "ts": at})
        for user, kind, ip, at in EVENTS
    ]
    events = written(tmp_path, "events.jsonl", "\n".join([*lines, "{"]) + "\n")

    def tap(event: str) -> Result:
        case = str(tmp_path / f"case-{event[-1]}.cases.yaml")
        given = ["--rule", "two", "--rules", str(rule), "--input", str(events), "--output", case]
        return CliRunner().invoke(app, ["tap", *given, "--event", event])

    result = tap(f"{events}/0/4")
    assert result.exit_code == 0, result.output
    assert "4 events, expects 1 match, 1 timeout" in result.stdout
    assert f"--event {events}/0/9: rule two reads no such event" in tap(f"{events}/0/9").stderr
    assert "it is a dead letter: undecodable: " in tap(f"{events}/0/7").stderr
