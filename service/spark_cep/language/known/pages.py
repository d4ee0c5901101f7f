"""What the documentation says of functions and of the codes of ``spark-cep check``.

The pages themselves are beside this module, so there is one text of each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

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
    """The functions of the page on rules, by each of their names."""
    page = _page("rules.md").partition("\n### Functions\n")[2].partition("**Refused**")[0]
    found = {}
    for row in _ROW.finditer(page):
        cells = [each.strip().replace("\\|", "|") for each in _CELLS.split(row[2])]
        *arguments, meaning, example = cells
        names = _NAME.findall(row[1])
        for name in names:
            found.setdefault(name, FunctionText(names[0], "".join(arguments), meaning, example))
    return MappingProxyType(found)


@cache
def check_texts() -> Mapping[str, str]:
    """The sections of the page on checks, in Markdown, by their codes."""
    sections = _SECTION.findall(_page("checks.md"))
    return MappingProxyType({code: _LINK.sub(r"\1", text.strip()) for code, text in sections})


def _page(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")
