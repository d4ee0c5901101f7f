"""Documentation of functions and of the codes of ``spark-cep check``.

``pages.json`` has it; ``python -m spark_cep.language.known.pages docs`` makes that of the pages.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

_ROW: Final = re.compile(r"^\| (`[^|]*?) \|(.*)\|$", re.MULTILINE)
_CELLS: Final = re.compile(r"(?<!\\)\|")
_NAME: Final = re.compile(r"`([A-Z][A-Z0-9_]*)`")
_SECTION: Final = re.compile(r"^### (\S+)\n(.*?)(?=^###? |\Z)", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]+\)")


@dataclass(frozen=True, slots=True)
class FunctionText:
    """A function: its name, the number of its arguments in words (of one over the events of a
    step: none), its meaning, and an example with its value."""

    name: str
    arguments: str
    meaning: str
    example: str


def _of_rows(signature: str, meaning: str, example: str) -> FunctionText:
    return FunctionText(signature, "", meaning, f"`{example}`")


_NONE: Final = "NULL where there is none."
#: Functions over the rows of a match, which rules in SQL have, and what picks one event of a step.
ROW_FUNCTIONS: Final[Mapping[str, FunctionText]] = MappingProxyType(
    {
        "PREV": _of_rows(
            "PREV(column[, n])",
            f"The column of the row before, or of the one `n` rows before; {_NONE}",
            "price < PREV(price)",
        ),
        "NEXT": _of_rows(
            "NEXT(column[, n])",
            f"The column of the row behind, or of the one `n` rows behind; {_NONE}",
            "price > NEXT(price)",
        ),
        "FIRST": _of_rows(
            "FIRST(step.column[, n])",
            f"The column of a step's first event, or of the one `n` events behind it; {_NONE}",
            "price > FIRST(low.price)",
        ),
        "LAST": _of_rows(
            "LAST(step.column[, n])",
            f"The column of a step's last event, or of the one `n` events before it; {_NONE}"
            " `step.column` is the same as `LAST(step.column)`.",
            "price > LAST(low.price)",
        ),
        "CLASSIFIER": _of_rows(
            "CLASSIFIER([variable])",
            "The variable that the row was matched as.",
            "CLASSIFIER() AS kind",
        ),
        "MATCH_NUMBER": _of_rows(
            "MATCH_NUMBER()",
            "The number of the match in its partition, from 1.",
            "MATCH_NUMBER() AS number",
        ),
    }
)


@cache
def function_texts() -> Mapping[str, FunctionText]:
    """The functions of the page on expressions, by each of their names."""
    found = _pages()["functions"]
    return MappingProxyType({name: FunctionText(*parts) for name, parts in found.items()})


@cache
def check_texts() -> Mapping[str, str]:
    """The sections of the page on checks, in Markdown, by their codes."""
    return MappingProxyType(_pages()["checks"])


def _pages() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((files(__package__) / "pages.json").read_text("utf-8"))
    return found


def read_pages(folder: Path) -> dict[str, Any]:
    """The content of the pages in a folder, in the form of ``pages.json``."""
    expressions, checks = (
        (folder / name).read_text("utf-8") for name in ("expressions.md", "checks.md")
    )
    listed = expressions.partition("\n## Functions\n")[2].partition("**Refused**")[0]
    functions: dict[str, list[str]] = {}
    for row in _ROW.finditer(listed):
        cells = [each.strip().replace("\\|", "|") for each in _CELLS.split(row[2])]
        *arguments, meaning, example = cells
        names = _NAME.findall(row[1])
        for name in names:
            functions.setdefault(name, [names[0], "".join(arguments), meaning, example])
    sections = {code: _LINK.sub(r"\1", text.strip()) for code, text in _SECTION.findall(checks)}
    return {"functions": functions, "checks": sections}


def written(pages: Mapping[str, Any]) -> str:
    """The text of ``pages.json``."""
    return json.dumps(pages, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(written(read_pages(Path(sys.argv[1]))))
