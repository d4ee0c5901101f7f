"""What docs/why.md shows of ``spark-cep why`` is what the command gives."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_cep.cli.main import app

PAGE = Path(__file__).parents[2] / "docs" / "why.md"
_SESSION = re.compile(r"^```\n(\$ cat .*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_account_is_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are made as they are shown, and the commands give the text behind them."""
    monkeypatch.chdir(tmp_path)
    accounts = 0
    for session in _SESSION.findall(PAGE.read_text("utf-8")):
        for command in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
            line, _, shown = command.partition("\n")
            program, *arguments = shlex.split(line)
            if program == "cat":
                Path(arguments[0]).write_text(shown, "utf-8")
                continue
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code == 0, result.stderr
            assert result.stdout == shown
            accounts += 1
    assert accounts == 2
