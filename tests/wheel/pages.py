"""The fenced blocks of README and documentation."""

from __future__ import annotations

import re
from pathlib import Path

from tests.wheel.installed import ROOT

README = ROOT / "README.md"
DOCS = ROOT / "docs"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of a page in one language, in their order."""
    return [text for kind, text in _BLOCK.findall(page.read_text("utf-8")) if kind == language]


def commands(page: Path) -> list[list[str]]:
    """The words of each line of a page's shell blocks that runs ``spark-cep``."""
    lines = [line for text in blocks(page, "sh") for line in text.splitlines()]
    told = [line.partition("#")[0].split() for line in lines]
    return [words for words in told if words[:1] == ["spark-cep"]]
