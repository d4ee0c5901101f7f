"""What docs/backtest.md shows is what the commands give."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_cep.backtest.replay import NOT_SIMULATED
from spark_cep.cli.main import app

PAGE = Path(__file__).parents[2] / "docs" / "backtest.md"
#: What differs from run to run: seconds, rates, shares.
_MEASURED = re.compile(r"\d+\.\d+ s\b|[\d,]+ records/s|\d+ %")


def _session() -> Iterator[tuple[str, str]]:
    """The commands of all blocks, and what each shows."""
    blocks = re.findall(
        r"^```console\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    for block in blocks:
        for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, shown = command.partition("\n")
            yield line, shown


def _plain(text: str) -> list[str]:
    """The text without what is measured, nor the width of columns."""
    return [" ".join(_MEASURED.sub("…", line).split()) for line in text.rstrip("\n").split("\n")]


def test_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are made as they are shown, commands are run, in the order of the page."""
    monkeypatch.chdir(tmp_path)
    commands = 0
    for line, shown in _session():
        program, *arguments = shlex.split(line)
        if program == "cat" and Path(arguments[0]).exists():
            assert Path(arguments[0]).read_text("utf-8") == shown
        elif program == "cat":
            Path(arguments[0]).write_text(shown, "utf-8")
        else:
            assert _plain(CliRunner().invoke(app, arguments).output) == _plain(shown), line
            commands += 1
    assert commands == 5


def test_what_is_not_simulated() -> None:
    """The list has what the report says."""
    told = PAGE.read_text("utf-8").rpartition("## What is not simulated")[2].lower()
    for what in NOT_SIMULATED:
        assert what.lower() in told
