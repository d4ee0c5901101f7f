"""Commands and settings that the pages for readers name are there, as they are written."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from spark_cep.cli.main import app
from spark_cep.config import Settings

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "faq.md", DOCS / "comparison.md", *sorted((DOCS / "coming-from").glob("*.md"))]
_CODE = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^(?:SPARK_CEP__\S+ )?spark-cep (.+)$", re.MULTILINE)
_INLINE = re.compile(r"(?<!`)`spark-cep ([^`]+)`")
_SETTING = re.compile(r"`([a-z_]+)\.([a-z_]+)(?:: [^`]*)?`")


def _commands(page: Path) -> list[str]:
    """Return the commands, without programs before and after them."""
    text = page.read_text("utf-8")
    code = "\n".join(_CODE.findall(text)).replace("&& ", "\n")
    return [" ".join(each.split()) for each in _COMMAND.findall(code) + _INLINE.findall(text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_and_options_are_there(page: Path) -> None:
    """Each command of a page has the options that it is shown with."""
    for line in _commands(page):
        command: Any = typer.main.get_command(app)
        words = shlex.split(line, comments=True)
        while hasattr(command, "commands"):
            assert words[0] in command.commands, line
            command = command.commands[words.pop(0)]
        options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
        assert {word for word in words if word.startswith("-")} <= options, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_settings_are_there(page: Path) -> None:
    """What is written as a setting of a section of the configuration is one."""
    for section, name in _SETTING.findall(page.read_text("utf-8")):
        if section in Settings.model_fields:
            kind = Settings.model_fields[section].annotation
            assert name in getattr(kind, "model_fields", {}), f"{section}.{name}"


def test_there_are_commands() -> None:
    """They have been found."""
    assert len(_commands(DOCS / "faq.md")) > 15
