"""The commands of the pages in docs/operations, by the heading that they stand below."""

from __future__ import annotations

import re
from pathlib import Path

PAGES = Path(__file__).parents[2] / "docs" / "operations"

_PART = re.compile(r"^#{2,3} (.+?)$\n(.*?)(?=^#{2,3} |\Z)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def procedures() -> dict[str, list[str]]:
    """The blocks of shell commands of each procedure on a machine that has any."""
    return _found("procedures.md")


def procedures_on_kubernetes() -> dict[str, list[str]]:
    """The blocks of shell commands of each procedure on Kubernetes."""
    return _found("kubernetes.md")


def commands_of_alerts() -> dict[str, list[str]]:
    """The blocks of shell commands of each alert."""
    return _found("alerts.md")


def _found(page: str) -> dict[str, list[str]]:
    parts = _PART.findall((PAGES / page).read_text("utf-8"))
    found = {title: _BLOCK.findall(text) for title, text in parts}
    return {title: blocks for title, blocks in found.items() if blocks}
