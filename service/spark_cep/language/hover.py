"""Explanations of the word at a position."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from spark_cep.language.answers import Diagnostic, Hover, TextPosition, TextRange
from spark_cep.language.documents import OpenDocument
from spark_cep.language.known.keys import Key, key_at, keys_at
from spark_cep.language.known.pages import check_texts
from spark_cep.language.known.signatures import is_function, signature
from spark_cep.language.meanings import column_text, function_text
from spark_cep.language.places.names import NamesInScope
from spark_cep.language.places.place import CursorPlace, place_at, word_around
from spark_cep.language.places.statements import SqlToken, tokens
from spark_cep.pattern.check_codes import Code

_MEANINGS: Final = {code.value: code.means for code in Code}
_ALLOWING: Final = re.compile(r"(?:#|--)\s*spark-cep:\s*allow\s+[\w,\s-]*$")


def hover(
    document: OpenDocument, position: TextPosition, found: Sequence[Diagnostic] = ()
) -> Hover | None:
    """The type, meaning and example of what stands at a position: a column, a function, a step, a
    key, the code of a check. ``None`` where there is nothing to say. ``found``: the diagnostics of
    the text; what the code of one that is there means is said, too."""
    about = _about(document, position)
    for each in found:
        at = each.range.start <= position <= each.range.end
        text = check_texts().get(each.code or "") if at else None
        if text is not None:
            explained = f"**{each.code}**\n\n{text}"
            if about is None:
                return Hover(each.range, explained)
            return Hover(about.range, f"{about.text}\n\n---\n\n{explained}")
    return about


def _about(document: OpenDocument, position: TextPosition) -> Hover | None:
    line = document.lines[min(max(position.line, 0), len(document.lines) - 1)]
    code = word_around(document, position, "-")
    if _ALLOWING.search(line[: code.start.column]):
        name = line[code.start.column : code.end.column]
        text = check_texts().get(name)
        if text is None:
            return None
        return Hover(code, f"**{name}**: {_MEANINGS[name]}\n\n{text}")
    place = place_at(document, position)
    if place is None:
        return None
    if place.names is not None and not place.cursor.is_key:
        return _in_expression(document, place, place.names)
    return _of_key(document, place)


def _of_key(document: OpenDocument, place: CursorPlace) -> Hover | None:
    cursor = place.cursor
    path = (*cursor.path, cursor.text) if cursor.is_key else cursor.path
    while path and isinstance(path[-1], int):
        path = path[:-1]
    key = key_at(document.language, path)
    if key is None:
        return None
    return Hover(word_around(document, place.position, "-"), _key_text(key, document, path))


def _key_text(key: Key, document: OpenDocument, path: tuple[str | int, ...]) -> str:
    parts = [f"**{key.name}**", key.description]
    if key.values:
        parts.append("Values: " + ", ".join(f"`{value}`" for value in key.values))
    if key.default is not None:
        parts.append(f"Default: `{key.default}`")
    inner = keys_at(document.language, path)
    if inner:
        parts.append("Keys: " + ", ".join(f"`{each.name}`" for each in inner))
    return "\n\n".join(filter(None, parts))


def _in_expression(document: OpenDocument, place: CursorPlace, names: NamesInScope) -> Hover | None:
    cursor = place.cursor
    pieces = tokens(cursor.text)
    at = next(
        (n for n, each in enumerate(pieces) if each.start <= cursor.offset <= each.end
         and each.kind in ("word", "quoted")),
        None,
    )  # fmt: skip
    if at is None:
        return None
    token = pieces[at]
    word = _range(place.position, cursor.offset, token)
    following = pieces[at + 1].text if at + 1 < len(pieces) else ""
    path = _path(pieces, at)
    if len(path) == 1 and following == "(" and is_function(token.text):
        name = token.text.upper()
        return Hover(word, f"```sql\n{signature(name)}\n```\n\n{function_text(name)}".rstrip())
    if len(path) == 1 and path[0] in names.steps:
        return Hover(word, _step_text(place, path[0]))
    kind = names.type_of(path)
    if kind is None:
        return None
    text = column_text(document, names, path)
    return Hover(word, f"```sql\n{'.'.join(path)} {kind}\n```\n\n{text}".rstrip())


def _path(pieces: list[SqlToken], at: int) -> tuple[str, ...]:
    """The dotted name up to a word."""
    path = [pieces[at].text.strip('`"')]
    while at >= _DOT_AND_NAME and pieces[at - 1].text == "." and pieces[at - 2].kind != "sign":
        at -= 2
        path.insert(0, pieces[at].text.strip('`"'))
    return tuple(path)


_DOT_AND_NAME: Final = 2


def _range(position: TextPosition, offset: int, token: SqlToken) -> TextRange:
    start = position.column - (offset - token.start)
    end = start + len(token.text)
    return TextRange(
        TextPosition(position.line, max(start, 0)), TextPosition(position.line, max(end, 0))
    )


def _step_text(place: CursorPlace, name: str) -> str:
    if place.statement is not None:
        return f"Variable `{name}`: `{name}.column` is the column of its last row."
    return (
        f"Step `{name}`: `{name}.column` is the column of its last event, `FIRST({name}.column)` of"
        f" the first, `COUNT({name}.*)` their number."
    )
