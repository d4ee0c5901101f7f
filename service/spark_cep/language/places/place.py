"""The place of a position: the part of the document, and the names that may stand there."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from spark_cep.documents.places import Path
from spark_cep.language.answers import TextPosition, TextRange
from spark_cep.language.documents import Language, OpenDocument
from spark_cep.language.places.cursor import Cursor, cursor_at
from spark_cep.language.places.names import NamesInScope, names_in_document, names_in_statement
from spark_cep.language.places.statements import StatementText, statement_at
from spark_cep.pattern.checks.sql_rule import PATH as STATEMENT
from spark_cep.pattern.document.sql_file import divided

_DOCUMENT: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_CONDITIONS: Final = ("where", "until")


@dataclass(frozen=True)
class CursorPlace:
    """The surroundings of a position. ``around``: the text of the YAML document, or of the file
    with a statement, that it is in; ``names``: of the expression that it is in, ``statement``: the
    statement; ``None`` where it is in none."""

    position: TextPosition
    cursor: Cursor
    around: str
    names: NamesInScope | None = None
    statement: StatementText | None = None


def place_at(document: OpenDocument, position: TextPosition) -> CursorPlace | None:
    """The place of a position; ``None`` where it is in no value and no key."""
    if document.language is Language.SQL:
        return _in_sql_file(document, position)
    offset = document.offset(position)
    around = document_around(document.text, offset)
    return _in_yaml(document, position, document.text, offset, around)


def document_around(text: str, offset: int) -> str:
    """The text of the YAML document that a place is in."""
    breaks = [found.start() for found in _DOCUMENT.finditer(text)]
    begin = max((each for each in breaks if each <= offset), default=0)
    end = min((each for each in breaks if each > offset), default=len(text))
    return text[begin:end]


def _in_yaml(
    document: OpenDocument, position: TextPosition, text: str, offset: int, around: str
) -> CursorPlace | None:
    cursor = cursor_at(text, offset)
    if cursor is None:
        return None
    place = CursorPlace(position, cursor, around)
    if cursor.is_key or document.language in (Language.CASES, Language.SETTINGS):
        return place
    if cursor.path == STATEMENT:
        statement = statement_at(cursor.text, cursor.offset)
        return replace(place, names=names_in_statement(document, statement), statement=statement)
    if is_expression(cursor.path):
        names = names_in_document(document, around, cursor.path, cursor.values)
        return replace(place, names=names)
    return place


def _in_sql_file(document: OpenDocument, position: TextPosition) -> CursorPlace | None:
    fields, begins = divided(document.text)
    if position.line < begins:
        line = document.lines[min(position.line, len(document.lines) - 1)]
        if position.column < len(line) - len(line.lstrip()) + len("--"):
            return None
        inside = replace(document, text=fields)
        return _in_yaml(document, position, fields, inside.offset(position), document.text)
    start = document.offset(TextPosition(begins, 0))
    text, offset = document.text[start:], document.offset(position) - start
    statement = statement_at(text, offset)
    cursor = Cursor(STATEMENT, False, False, text, offset, {}, ())
    names = names_in_statement(document, statement)
    return CursorPlace(position, cursor, document.text, names, statement)


def is_expression(path: Path) -> bool:
    """Return whether the value at a path of a rule is an expression in SQL."""
    of_step = path[:1] == ("pattern",) and path[-1] in _CONDITIONS
    return of_step or path[:1] == ("key",) or path[:-1] == ("emit", "measures")


def word_around(document: OpenDocument, position: TextPosition, more: str = "") -> TextRange:
    """The word that a position is in or touches: letters, digits, ``_`` and ``more``."""
    line = document.lines[min(max(position.line, 0), len(document.lines) - 1)]
    start = end = min(max(position.column, 0), len(line))
    while start and _is_of_word(line[start - 1], more):
        start -= 1
    while end < len(line) and _is_of_word(line[end], more):
        end += 1
    number = min(max(position.line, 0), len(document.lines) - 1)
    return TextRange(TextPosition(number, start), TextPosition(number, end))


def _is_of_word(character: str, more: str) -> bool:
    return character.isalnum() or character == "_" or character in more
