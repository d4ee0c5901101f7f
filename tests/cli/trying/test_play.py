"""``spark-cep play``: what is wrong with its arguments. The page itself: tests/play."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_cep.cli.exit_codes import ExitCode
from spark_cep.cli.main import app


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.yaml"], "missing.yaml: cannot be read: No such file or directory"),
        (["--host", "0.0.0.0"], "--host 0.0.0.0: name the one address"),  # noqa: S104  refused
    ],
)
def test_arguments(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are refused before anything is served."""
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["play", "--no-browser", *arguments])
    assert result.exit_code == ExitCode.CONFIGURATION
    assert said in " ".join(result.output.split())
    assert list(tmp_path.iterdir()) == []
