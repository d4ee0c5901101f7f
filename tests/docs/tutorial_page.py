"""The steps of docs/tutorial.md: files to save, commands to run, and their output."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial.md"

_BLOCK = re.compile(
    r"(?P<before>[^\n]*)\n\n```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_NAME = re.compile(r"`([\w./-]+)`[^`]*:$")


@dataclass
class File:
    """A block that readers save under the name before it."""

    name: str
    text: str


@dataclass
class Commands:
    """A block of commands, and what they print, if the page shows it."""

    lines: list[str]
    output: str | None = None


def steps(part: int, page: Path = PAGE) -> list[File | Commands]:
    """The blocks of a numbered part of the page, in order; part 0 is what is before the first."""
    begin = rf"^## {part}\. " if part else r"\A"
    (text,) = re.findall(
        rf"{begin}.*?(?=^## |\Z)", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    found: list[File | Commands] = []
    for block in _BLOCK.finditer(text):
        if block["kind"] == "sh":
            found.append(Commands(block["text"].splitlines()))
        elif block["kind"] == "text":
            assert isinstance(found[-1], Commands), block["text"]
            found[-1].output = block["text"]
        else:
            name = _NAME.search(block["before"])
            assert name, f"no name to save under: {block['before']}"
            found.append(File(name[1], block["text"]))
    return found
