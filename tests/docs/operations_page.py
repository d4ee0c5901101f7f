"""The commands of docs/operations.md, by the heading that they stand below."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "operations.md"

ALERT = "SparkCep"
_PART = re.compile(r"^#{2,3} (.+?)$\n(.*?)(?=^#{2,3} |\Z)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands() -> dict[str, list[str]]:
    """The blocks of shell commands of each part that has any, but for those of alerts."""
    return {t: blocks for t, blocks in _found().items() if blocks and not t.startswith(ALERT)}


def commands_of_alerts() -> dict[str, list[str]]:
    """The blocks of shell commands of each alert."""
    return {t: blocks for t, blocks in _found().items() if t.startswith(ALERT)}


def _found() -> dict[str, list[str]]:
    return {title: _BLOCK.findall(text) for title, text in _PART.findall(PAGE.read_text("utf-8"))}
