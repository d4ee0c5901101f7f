"""What docs/explain.md shows of ``spark-cep explain`` is what the command gives."""

from __future__ import annotations

import re
from pathlib import Path

from typer.testing import CliRunner

from spark_cep.cli.main import app

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs" / "explain.md"


def _explained(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, ["explain", *map(str, arguments)])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_the_explained_rule_is_up_to_date(tmp_path: Path) -> None:
    """The rule on the page gives the text behind it."""
    found = re.search(
        r"^\$ cat same-address\.yaml\n(.*?)^\$ spark-cep explain same-address\.yaml\n(.*?)^```$",
        PAGE.read_text("utf-8"),
        re.DOTALL | re.MULTILINE,
    )
    assert found
    rule = tmp_path / "same-address.yaml"
    rule.write_text(found[1], "utf-8")
    assert _explained(rule) == found[2]


def test_the_drawn_rule_is_up_to_date() -> None:
    """The figure is that of the example."""
    rule = PROJECT / "examples" / "rules" / "brute-force.yaml"
    assert f"```mermaid\n{_explained(rule, '--format', 'mermaid')}```\n" in PAGE.read_text("utf-8")
