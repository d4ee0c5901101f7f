"""Completions at the cursor: keys, values, columns, steps, functions, units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from spark_cep.durations import ALLOWED as DURATION
from spark_cep.language.answers import Completion, Edit, NameKind, TextPosition, TextRange
from spark_cep.language.documents import Language, OpenDocument
from spark_cep.language.expression_completions import expression_completions
from spark_cep.language.known.keys import (
    Key,
    description_at,
    fitting,
    keys_at,
    values_at,
)
from spark_cep.language.named_values import named_keys, named_values
from spark_cep.language.places.place import CursorPlace, place_at, word_around
from spark_cep.pattern.check_codes import Code

_ALLOWING: Final = re.compile(r"(?:#|--)\s*spark-cep:\s*allow\s+(?:[\w-]+\s*,\s*)*[\w-]*$")
_NUMBER: Final = re.compile(r"(?:^|\s)\d+(?:\.\d+)?\s+\w*$")
#: What the descriptions of durations have.
_OF_DURATIONS: Final = (DURATION, "a duration")
_UNITS: Final = ("ms", "seconds", "minutes", "hours", "days", "weeks")
_EXAMPLES: Final = ("10 seconds", "5 minutes", "1 hour", "1 day")
_NO_NAME: Final = re.compile(r"[^\w.-]")


def completions(document: OpenDocument, position: TextPosition) -> list[Completion]:
    """Completions at a position, the likeliest first; each replaces the word that stands there.
    Editors leave out what does not fit the word."""
    line = document.lines[min(max(position.line, 0), len(document.lines) - 1)]
    if _ALLOWING.search(line[: max(position.column, 0)]):
        word = word_around(document, position, "-")
        return [
            Completion(code.value, NameKind.VALUE, Edit(word, code.value), code.means)
            for code in Code
        ]
    place = place_at(document, position)
    if place is None:
        return []
    return list(dict.fromkeys(_at_place(document, place)))


def _at_place(document: OpenDocument, place: CursorPlace) -> Iterator[Completion]:
    cursor = place.cursor
    if not cursor.is_key:
        if place.names is not None:
            yield from expression_completions(document, place)
        else:
            yield from _values(document, place)
    if cursor.may_be_key:
        yield from _keys(document, place)


def _keys(document: OpenDocument, place: CursorPlace) -> Iterator[Completion]:
    cursor = place.cursor
    word = word_around(document, place.position, "-")
    known = fitting(
        keys_at(document.language, cursor.path),
        document.language,
        cursor.path,
        set(cursor.keys) - {cursor.text},
    )
    for key in sorted(known, key=lambda each: not each.is_required):
        edit = Edit(word, _key_text(document, word, key.name, is_block=key.is_block))
        yield Completion(key.name, NameKind.KEY, edit, _detail(key), key.description)
    for named in named_keys(document, place):
        if named.label not in cursor.keys or named.label == cursor.text:
            text = _key_text(document, word, named.label, is_block=False)
            yield Completion(named.label, named.kind, Edit(word, text), named.detail)


def _detail(key: Key) -> str:
    if key.is_required:
        return "required"
    return "" if key.default is None else f"default {key.default}"


def _key_text(document: OpenDocument, word: TextRange, name: str, *, is_block: bool) -> str:
    """The key with what stands behind it, where that is not there yet."""
    line = document.lines[word.start.line]
    before, behind = line[: word.start.column], line[word.end.column :].lstrip()
    if before.endswith(('"', "'")):
        return name
    if document.text.lstrip()[:1] in ("{", "["):
        name = f'"{name}"'
    elif _NO_NAME.search(name):
        name = f"'{name}'"
    if behind.startswith(":"):
        return name
    return f"{name}:" if is_block else f"{name}: "


def _values(document: OpenDocument, place: CursorPlace) -> Iterator[Completion]:
    path, word = place.cursor.path, word_around(document, place.position, ".-")
    described = description_at(document.language, path)
    for value in values_at(document.language, path):
        yield Completion(value, NameKind.VALUE, Edit(word, value), "", described)
    for named in named_values(document, place):
        yield Completion(named.label, named.kind, Edit(word, named.label), named.detail)
    is_duration = any(text in described for text in _OF_DURATIONS)
    if is_duration or document.language is Language.SETTINGS:
        yield from _durations(document, place, is_known=is_duration)


def _durations(
    document: OpenDocument, place: CursorPlace, *, is_known: bool
) -> Iterator[Completion]:
    word = place.cursor.word
    if _NUMBER.search(word):
        unit = word_around(document, place.position)
        yield from _listed(_UNITS, NameKind.UNIT, unit)
    elif is_known and not word.strip():
        yield from _listed(_EXAMPLES, NameKind.VALUE, word_around(document, place.position))


def _listed(texts: Iterable[str], kind: NameKind, word: TextRange) -> Iterator[Completion]:
    for text in texts:
        yield Completion(text, kind, Edit(word, text))
