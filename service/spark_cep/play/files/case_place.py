"""Test cases in the text of a rule's file: where they stand, taken out, and put in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from spark_cep.documents.places import Path, Places, split_lines
from spark_cep.documents.reading import Document, read_documents
from spark_cep.errors import ConfigurationError
from spark_cep.pattern.checks.sql_rule import PATH as STATEMENT
from spark_cep.pattern.document.loading import CASES
from spark_cep.pattern.document.sql_file import read_sql_file

_ROOT: Final[Path] = ()


@dataclass(frozen=True)
class _Block:
    """The lines ``start`` up to ``end`` of a document's cases; without any, both are where they
    would stand. ``margin``: what stands before each of its lines."""

    start: int
    end: int
    margin: str


def without_cases(text: str, *, in_sql: bool) -> str:
    """The text of a file without the test cases of its rules."""
    lines = list(split_lines(text))
    for document in reversed(_documents(text, in_sql=in_sql)):
        block = _block(document, lines, in_sql=in_sql)
        if block is not None:
            del lines[block.start : block.end]
    return "\n".join(lines)


def with_cases(text: str, rule: str, case_lines: Sequence[str], *, in_sql: bool) -> str:
    """The text of a file, which has no cases, with those of a rule, as lines that begin with
    `cases:`. Raises ConfigurationError where they have no place."""
    lines = list(split_lines(text.rstrip("\n")))
    for document in _documents("\n".join(lines), in_sql=in_sql):
        if not isinstance(document.data, dict) or document.data.get("id") != rule:
            continue
        block = _block(document, lines, in_sql=in_sql)
        if block is not None:
            lines[block.start : block.end] = [block.margin + line for line in case_lines]
            return "\n".join(lines).rstrip("\n") + "\n"
    raise ConfigurationError(f"rule {rule}: the text has no place for test cases")


def _documents(text: str, *, in_sql: bool) -> list[Document]:
    return [read_sql_file(text, "")] if in_sql else read_documents(text, "")


def _block(document: Document, lines: Sequence[str], *, in_sql: bool) -> _Block | None:
    """The block of a document's cases; ``None`` for one in braces, which has no lines of its
    own."""
    places = document.places
    if not isinstance(document.data, dict) or _is_in_braces(places, lines):
        return None
    first = min((places.keys[path] for path in _keys(places)), key=lambda mark: mark.line)
    margin = lines[first.line][: first.column]
    end = _end(document, lines, in_sql=in_sql)
    here = places.keys.get((CASES,))
    if here is None:
        return _Block(end, end, margin)
    behind = [places.keys[path].line for path in _keys(places)]
    behind = [line for line in behind if line > here.line]
    return _Block(here.line, min(behind, default=end), margin)


def _keys(places: Places) -> Iterator[Path]:
    return (path for path in places.keys if len(path) == 1)


def _is_in_braces(places: Places, lines: Sequence[str]) -> bool:
    root = places.values[_ROOT]
    return lines[root.line][root.column :].startswith("{")


def _end(document: Document, lines: Sequence[str], *, in_sql: bool) -> int:
    """The line behind a document's last one that is not blank."""
    places = document.places
    if in_sql:
        return places.values[STATEMENT].line + 1
    root = places.values[_ROOT]
    end = min(root.end_line + (root.end_column > 0), len(lines))
    while end > 0 and not lines[end - 1].strip():
        end -= 1
    return end
