"""What docs/explain.md shows of ``spark-cep why`` is what the command gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_cep.cli.main import app

PAGE = Path(__file__).parents[2] / "docs" / "explain.md"
_SESSION = re.compile(
    r"^\$ cat moved\.yaml\n(.*?)^\$ cat logins\.jsonl\n(.*?)^\$ spark-cep (why .*?)\n(.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


def test_the_account_is_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule and the events on the page give the text behind them."""
    found = _SESSION.search(PAGE.read_text("utf-8"))
    assert found
    monkeypatch.chdir(tmp_path)
    Path("moved.yaml").write_text(found[1], "utf-8")
    Path("logins.jsonl").write_text(found[2], "utf-8")
    result = CliRunner().invoke(app, found[3].split())
    assert result.exit_code == 0, result.stderr
    assert result.stdout == found[4]
