"""What docs/test-cases.md shows is what the commands give; cases of the examples pass."""

from __future__ import annotations

import os
import re
from pathlib import Path
from shutil import copy
from textwrap import dedent

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner

from spark_cep.cases.document.shape import (
    CaseFileShape,
    CaseShape,
    CaseStepShape,
    DeadLetterShape,
    ExpectShape,
    PartialMatchShape,
    RowShape,
    TimeoutShape,
)
from spark_cep.cli.main import app

PROJECT = Path(__file__).parents[2]
EXAMPLES = PROJECT / "examples"
PAGE = (PROJECT / "docs" / "test-cases.md").read_text("utf-8")
#: Files of examples that the page does not show: what is wrong in each is part of the output.
WRITTEN = {
    "wrong.cases.yaml": """
        rules: brute-force.yaml
        cases:
          - case: a login
            events:
              - {send: {user_id: ann, event_type: login_ok}, after: 5 s}
            expect: {matches: [{key: ann, at: soon}]}
        """,
    "late-login.cases.yaml": """
        rules: brute-force.yaml
        cases:
          - case: four failures, then a login
            events:
              - {send: {user_id: ann, event_type: login_fail}, name: fail, times: 4, every: 15 s}
              - {send: {user_id: ann, event_type: login_ok}, at: 65 s, name: ok}
            expect:
              matches:
                - key: ann
                  steps: {fail: [fail-1, fail-2, fail-3, fail-4], ok: ok}
                  measures: {failures: 4}
        """,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of the page, to work in."""
    copy(EXAMPLES / "rules" / "brute-force.yaml", tmp_path)
    for text, name in re.findall(r"^```yaml\n(# (\S+)\n.*?)^```$", PAGE, re.DOTALL | re.MULTILINE):
        (tmp_path / name).write_text(text, "utf-8")
    for name, text in WRITTEN.items():
        (tmp_path / name).write_text(dedent(text).lstrip("\n"), "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def given(command: str) -> str:
    """What a command prints, without its time."""
    result = CliRunner().invoke(app, command.split())
    return re.sub(r"in \d+\.\d s", "in 0.1 s", result.output).rstrip() + "\n"


COMMANDS = re.findall(
    r"^```text\n\$ spark-cep ([^\n]*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE
)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("command", "shown"), COMMANDS)
def test_output(command: str, shown: str) -> None:
    """Each command's output is on the page."""
    assert given(command) == shown


def test_all_commands_are_found() -> None:
    """The page has them in the form that the test looks for."""
    assert len(COMMANDS) == PAGE.count("$ spark-cep ") == 5


@pytest.mark.parametrize(
    "shape",
    [CaseFileShape, CaseShape, CaseStepShape, ExpectShape, TimeoutShape, RowShape, DeadLetterShape,
     PartialMatchShape],
)  # fmt: skip
def test_every_key_is_on_the_page(shape: type[BaseModel]) -> None:
    """The page's tables have the keys of a case file."""
    missing = [name for name in shape.model_fields if not re.search(rf"`{name}\b", PAGE)]
    assert missing == []


@pytest.mark.parametrize("name", ["rules", "sql", "ververica"])
def test_cases_of_examples(name: str) -> None:
    """They pass."""
    result = CliRunner().invoke(app, ["test", os.fspath(EXAMPLES / name)])
    assert result.exit_code == 0, result.output
    assert ", 0 failed" in result.output


def test_every_example_has_cases() -> None:
    """Beside each rule stand its cases."""
    for name in ("rules", "sql", "ververica"):
        for file in (EXAMPLES / name).iterdir():
            if ".cases" not in file.name:
                assert file.with_name(f"{file.stem}.cases.yaml").exists()
