"""The commands of docs/tutorial.md that need no broker, run in order in one folder, print what the
page shows. ``REWRITE_GOLDEN=1`` writes what they print into the page; the wheel's tests run the
rest."""

from __future__ import annotations

import html
import os
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_cep.cli.main import app
from tests.docs.tutorial_page import PAGE, Commands, File, steps

_PARTS = range(2, 8)
_SECONDS = re.compile(r"\bin \d+\.\d s")
#: A machine that has not compiled before says so.
_COMPILING = re.compile(r"^(compiling for|compiled in) .*\n", re.MULTILINE)


def _printed(line: str) -> str:
    """The output of one command; times are left out."""
    program, *words = shlex.split(line)
    if program == "mv":
        source, target = map(Path, words)
        source.replace(target)
        return ""
    assert program == "spark-cep", line
    result = CliRunner().invoke(app, words)
    assert result.exit_code == (4 if "error:" in result.output else 0), result.output
    return _COMPILING.sub("", _SECONDS.sub("in 0.1 s", result.output))


@pytest.mark.slow
def test_the_commands_print_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All parts between the install and the broker are one session."""
    monkeypatch.chdir(tmp_path)
    Path("rules").mkdir()
    Path("next").mkdir()
    page = PAGE.read_text("utf-8")
    shown = []
    for step in (step for part in _PARTS for step in steps(part)):
        match step:
            case File(name, text):
                Path(name).write_text(text, "utf-8")
            case Commands(lines, output):
                joined = "\n".join(lines).replace("\\\n", "")
                printed = "".join(map(_printed, joined.splitlines()))
                if os.environ.get("REWRITE_GOLDEN"):
                    written = "\n".join(lines)
                    page = page.replace(
                        f"```sh\n{written}\n```\n\n```text\n{output}```",
                        f"```sh\n{written}\n```\n\n```text\n{printed}```",
                    )
                else:
                    assert printed == (output or ""), lines
                shown.append(output)
    if os.environ.get("REWRITE_GOLDEN"):
        PAGE.write_text(page, "utf-8")
    assert sum(output is not None for output in shown) == 7


def test_the_picture_shows_the_same() -> None:
    """docs/terminal.svg has the tutorial's rule and its results; a script draws it again."""
    (run,) = (step for step in steps(4) if isinstance(step, Commands))
    (rule,) = (step for step in steps(3) if isinstance(step, File))
    shown = [*rule.text.splitlines(), run.lines[0]]
    shown += [line for line in (run.output or "").splitlines() if not line.startswith("note:")]
    drawn = html.unescape(re.sub(r"<[^>]*>", "", PAGE.with_name("terminal.svg").read_text("utf-8")))
    without_spaces = "".join(drawn.split())
    for line in shown:
        assert "".join(line.split()) in without_spaces, (
            f"{line}: make it again: python docs/site/terminal_picture.py"
        )
