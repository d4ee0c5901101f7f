"""``spark-cep why`` as an author calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spark_cep.cli.main import app

RULE = """\
id: r
version: 1
key: user
within: 1 hour
pattern:
  - {step: a, where: "kind = 'a'"}
  - {step: b, after: followed_by, where: "kind = 'b'"}
"""
EVENTS = [("a", 0), ("a", 10), ("b", 20), ("a", 30)]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions of a rule, and events of ann."""
    monkeypatch.chdir(tmp_path)
    Path("one.yaml").write_text(RULE, "utf-8")
    two = RULE.replace("version: 1", "version: 2\nprevious_version: carry")
    Path("two.yaml").write_text(two.replace("'b'", "'c'"), "utf-8")
    Path("same.yaml").write_text(RULE.replace("'b'", "'c'"), "utf-8")
    Path("whole.yaml").write_text(RULE.replace("key: user\n", ""), "utf-8")
    lines = [
        json.dumps({"user": "ann", "kind": kind, "at": f"2026-01-01T09:00:{second:02}Z"})
        for kind, second in EVENTS
    ]
    Path("events.jsonl").write_text("\n".join(lines), "utf-8")


def asked(*options: str) -> Result:
    """The answer about the events."""
    given = ("--input", "events.jsonl", "--event-time", "at", *options)
    return CliRunner().invoke(app, ["why", *given])


def test_another_version() -> None:
    """What the first version had before the change, and the second behind it."""
    change = ("--replaced-by", "two.yaml", "--at", "2026-01-01T09:00:15Z")
    options = ("--rule", "one.yaml", "--key", "ann", *change)
    result = asked(*options, "--json")
    assert result.exit_code == 0, result.stderr
    first = json.loads(result.stdout)
    second = first.pop("replaced_by")
    assert (first["version"], second["version"]) == (1, 2)
    assert (first["matches"], second["matches"]) == ([], [])
    endings = [each["ending"] for each in first["partial_matches"]]
    assert [each["reason"] for each in endings] == ["replaced_version"] * 2
    assert {each["time"] for each in endings} == {"2026-01-01T09:00:15Z"}
    # Two that are carried over, and one that begins.
    assert [each["ending"] for each in second["partial_matches"]] == [None] * 3
    text = asked(*options).stdout
    assert "Rule r, version 1, key ann: 2 events, 0 matches" in text
    assert "\n\nRule r, version 2, key ann: 2 events, 0 matches" in text
    assert "2026-01-01T09:00:15Z  version 2 begins, and takes over 1, 2\n" in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--rule", "missing.yaml", "--key", "ann"), "--rule missing.yaml: there is no such file"),
        (("--rule", "r", "--key", "ann"), "if it is the id of a rule, give --rules or --config"),
        (("--rule", "one.yaml"), "rule r has a key: say which with --key"),
        (("--rule", "whole.yaml", "--key", "x"), "rule r has no key: leave --key out"),
        (
            ("--rule", "one.yaml", "--key", "ann", "--replaced-by", "two.yaml"),
            "--replaced-by FILE and --at TIME go together",
        ),
        (
            ("--rule", "one.yaml", "--key", "ann", "--replaced-by", "two.yaml", "--at", "noon"),
            "--at: 'noon' is no time",
        ),
        (
            ("--rule", "one.yaml", "--key", "ann", "--replaced-by", "same.yaml", "--at",
             "2026-01-01"),
            "version 1 of this rule runs, and means something else",
        ),
        (("--open",), "--open needs the settings of the job: give --config"),
    ],
)  # fmt: skip
def test_mistakes(options: tuple[str, ...], said: str) -> None:
    """Each says what is wrong."""
    result = asked(*options)
    assert result.exit_code != 0
    assert said in " ".join(result.stderr.split())


def test_text_that_is_no_event_time() -> None:
    """The option is named, beside the setting."""
    given = ["why", "--input", "events.jsonl", "--rule", "one.yaml", "--key", "ann"]
    result = CliRunner().invoke(app, [*given, "--event-time", "kind"])
    assert result.exit_code != 0
    assert "or give --event-time kind:UNIT: iso for text" in " ".join(result.stderr.split())
