"""The page on Ververica shows what the commands give, and lists what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_cep.cli.main import app
from spark_cep.pattern.ververica.aviator_functions import FUNCTIONS

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "coming-from" / "ververica.md").read_text("utf-8")
EXAMPLE = PROJECT / "examples" / "ververica" / "card-testing.yaml"


def test_the_example_is_up_to_date() -> None:
    """The rule on the page is the file, and is explained as on the page."""
    assert f"```yaml\n{EXAMPLE.read_text('utf-8')}```\n" in PAGE
    result = CliRunner().invoke(app, ["explain", str(EXAMPLE)])
    assert result.exit_code == 0, result.stderr
    shown, _ = result.stdout.split("\nStates and edges")
    assert f"$ spark-cep explain examples/ververica/card-testing.yaml\n{shown}\n" in PAGE


def test_the_refused_rule_is_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mistakes of the rule on the page are told as on the page."""
    shown = r"\$ cat wrong.yaml\n(.*?)\$ spark-cep check wrong.yaml\n(.*?)```"
    found = re.search(shown, PAGE, re.DOTALL)
    assert found
    (tmp_path / "wrong.yaml").write_text(found[1], "utf-8")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["check", "wrong.yaml"])
    assert result.stderr == found[2]


def test_all_functions_are_listed() -> None:
    """The page names each function of Aviator that is supported."""
    assert [name for name in FUNCTIONS if f"`{name}`" not in PAGE] == []
