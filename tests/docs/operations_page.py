"""The commands of docs/operations.md, by the heading that they stand below."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "operations.md"

_PART = re.compile(r"^#{2,3} (.+?)$\n(.*?)(?=^#{2,3} |\Z)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands() -> dict[str, list[str]]:
    """The blocks of shell commands of each part that has any."""
    found = {title: _BLOCK.findall(text) for title, text in _PART.findall(PAGE.read_text("utf-8"))}
    return {title: blocks for title, blocks in found.items() if blocks}
