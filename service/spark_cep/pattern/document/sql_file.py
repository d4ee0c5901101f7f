"""A file with a rule in SQL: one statement, and before it the rule's other fields as a comment.

::

    -- id: v-shape
    -- version: 2
    SELECT … FROM ticks MATCH_RECOGNIZE ( … )

The comment is all lines that begin with ``--`` at the file's beginning; without the dashes they are
a mapping in YAML. Its fields and the statement are read as the document ``{id: …, sql: …}``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType

from spark_cep.documents.places import Mark, Path, Places
from spark_cep.documents.reading import Document, read_documents
from spark_cep.errors import Problem
from spark_cep.pattern.checks.sql_rule import FIELD, PATH
from spark_cep.pattern.document.allowed import COMMENT

SUFFIX = ".sql"

_DASHES = re.compile(r"(\s*)--(.*)", re.DOTALL)
_LINE_END = re.compile("\r\n|[\n\r]")
_ALLOWED = "`-- id: NAME`, and other fields of a rule in YAML, at the file's beginning"


def read_sql_file(text: str, source: str) -> Document:
    """The document in the text of a file."""
    lines = tuple(_LINE_END.split(text.removeprefix("\ufeff")))
    begins = _length_of_comment(lines)
    fields, places, problems = _read_comment(lines[:begins], source)
    statement = "\n".join(lines[begins:])
    places = replace(
        places,
        lines=lines,
        values=MappingProxyType(
            {
                (): Mark(0, 0, 0, len(lines[0])),
                **places.values,
                # As a block scalar that begins in the line before.
                PATH: Mark(begins - 1, 0, len(lines), 0, statement, "|"),
            }
        ),
    )
    if FIELD in fields:
        message, allowed = f"`{FIELD}` is the file itself", "the statement, behind the comment"
        problems[PATH] = places.problem(message, PATH, allowed=allowed, at="key")
    if "id" not in fields and not problems:
        problems["id",] = places.problem("`id` is missing", (), allowed=_ALLOWED)
    if not statement.strip():
        statement = ""
        allowed = "`SELECT … FROM … MATCH_RECOGNIZE ( … )`, behind the comment"
        problems[PATH] = places.problem("the file has no statement", (), allowed=allowed)
    return Document({**fields, FIELD: statement}, places, problems)


def divided(text: str) -> tuple[str, int]:
    """The fields in the comment at the beginning, as YAML whose characters stand where they do in
    the file, and the number of the line in which the statement begins."""
    lines = tuple(_LINE_END.split(text.removeprefix("\ufeff")))
    begins = _length_of_comment(lines)
    return _without_dashes(lines[:begins]), begins


def _without_dashes(lines: tuple[str, ...]) -> str:
    # Blanks for dashes, so that each character stays in its place.
    comment = (r"\1 #\2" if COMMENT.search(line) else r"\1  \2" for line in lines)
    return "\n".join(map(_DASHES.sub, comment, lines))


def _length_of_comment(lines: tuple[str, ...]) -> int:
    begins = next((n for n, line in enumerate(lines) if line.strip()), 0)
    others = (n for n in range(begins, len(lines)) if not _DASHES.fullmatch(lines[n]))
    return next(others, len(lines))


def _read_comment(
    lines: tuple[str, ...], source: str
) -> tuple[dict[str, object], Places, dict[Path, Problem]]:
    """The fields, where they stand, and what is wrong with them."""
    read = read_documents(_without_dashes(lines), source)
    if not read:
        return {}, Places(source, lines), {}
    document = read[0]
    problems = {
        path or ("id",): replace(p, excerpt=lines[p.span.line - 1]) if p.span is not None else p
        for path, p in document.problems.items()
    }
    if isinstance(document.data, dict):
        return document.data, document.places, problems
    places = replace(document.places, lines=lines)
    if not problems:
        message = "the comment at the file's beginning must be fields of a rule"
        problems["id",] = places.problem(message, (), allowed=_ALLOWED)
    return {}, places, problems
