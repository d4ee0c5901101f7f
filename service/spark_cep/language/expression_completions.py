"""Completions at the cursor in an expression, or in a statement around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from spark_cep.language.answers import Completion, Edit, NameKind, TextRange
from spark_cep.language.documents import OpenDocument
from spark_cep.language.known.pages import ROW_FUNCTIONS, function_texts
from spark_cep.language.known.signatures import signature
from spark_cep.language.meanings import column_text, function_text
from spark_cep.language.places.names import NamesInScope
from spark_cep.language.places.place import CursorPlace, word_around
from spark_cep.language.places.statements import CLAUSES, SqlToken, StatementText, tokens
from spark_cep.pattern.expressions.functions import SPECIAL_CALLS
from spark_cep.pattern.expressions.functions.aggregation import (
    LOOK_BACK_ALIASES,
    LOOK_BACK_FUNCTIONS,
)
from spark_cep.pattern.expressions.intervals import UNITS
from spark_cep.pattern.types import RecordType

_WORDS: Final = (
    *("AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "IS NULL", "IS NOT NULL"),
    *("IS TRUE", "IS FALSE", "IS DISTINCT FROM", "NULL", "TRUE", "FALSE", "CASE", "WHEN", "THEN"),
    *("ELSE", "END", "CAST", "TRY_CAST", "INTERVAL", "TIMESTAMP", "DATE"),
)
_TYPES: Final = ("STRING", "INT", "BIGINT", "DOUBLE", "DECIMAL", "BOOLEAN", "TIMESTAMP", "DATE")
_INTERVAL: Final = re.compile(
    r"\bINTERVAL\s+(?:[+-]?\d+\s+[A-Za-z]+\s+)*(?:'[^']*'|[+-]?\d+)\s+\w*$", re.IGNORECASE
)
_CAST: Final = re.compile(r"\bCAST\s*\([^()]*\bAS\s+\w*$", re.IGNORECASE)
_EQUAL: Final = ("=", "<>", "!=", "<=>")
_SKIPS: Final = ("PAST LAST ROW", "TO NEXT ROW", "TO FIRST ", "TO LAST ")
_IN_AND_BRACKET: Final = 2
_EXPRESSIONS: Final = ("SELECT", "WHERE", "PARTITION", "ORDER", "MEASURES", "DEFINE")


def expression_completions(document: OpenDocument, place: CursorPlace) -> Iterator[Completion]:
    """Completions at a place in an expression or a statement."""
    names, cursor = place.names, place.cursor
    if names is None:
        return
    before = tokens(cursor.word)
    last = before[-1] if before else None
    if last is not None and last.kind == "comment":
        return
    word = word_around(document, place.position)
    if last is not None and last.kind == "word" and last.end == cursor.offset:
        before.pop()  # what is being written
    elif last is not None and last.kind == "text" and last.is_open:
        symbols = names.symbols_of(_compared(before[:-1]))
        yield from _listed(symbols, NameKind.VALUE, word, "symbol")
        return
    if _INTERVAL.search(cursor.word):
        yield from _listed((f"{unit}S" for unit in UNITS), NameKind.UNIT, word)
    elif _CAST.search(cursor.word):
        yield from _listed(_TYPES, NameKind.VALUE, word, "type")
    elif (dotted := _before_dot(before)) is not None:
        yield from _fields(document, names, dotted, word)
    elif place.statement is not None:
        yield from _in_statement(document, place.statement, names, before, word)
    else:
        yield from _expression(document, names, before, word)
        over_events = bool(names.steps) or cursor.path[:1] == ("emit",)
        yield from _functions(word, lambda name: _in_yaml(name, over_events=over_events))
        yield from _listed(_WORDS, NameKind.KEYWORD, word)


def _expression(
    document: OpenDocument, names: NamesInScope, before: list[SqlToken], word: TextRange
) -> Iterator[Completion]:
    """The values that there are: symbols of what is compared, columns, steps."""
    for symbol in names.symbols_of(_compared(before)):
        text = f"'{symbol}'"
        yield Completion(text, NameKind.VALUE, Edit(word, text), "symbol")
    yield from _fields(document, names, (), word)
    for step in names.steps:
        yield Completion(step, NameKind.STEP, Edit(word, f"{step}."), "step")


def _fields(
    document: OpenDocument, names: NamesInScope, path: tuple[str, ...], word: TextRange
) -> Iterator[Completion]:
    record = names.event if not path else _record(names, path)
    for name, kind in record.fields.items() if record is not None else ():
        here = (*path, name)
        written = name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"`{name}`"
        text = column_text(document, names, here)
        yield Completion(name, NameKind.COLUMN, Edit(word, written), str(kind), text)


def _record(names: NamesInScope, path: tuple[str, ...]) -> RecordType | None:
    if len(path) == 1 and path[0] in names.steps:
        return names.steps[path[0]]
    return names.record_of(path)


def _functions(word: TextRange, stands: Callable[[str], bool]) -> Iterator[Completion]:
    names = dict.fromkeys([*function_texts(), *SPECIAL_CALLS, *ROW_FUNCTIONS])
    for name in filter(stands, names):
        edit = Edit(word, f"{name}(")
        yield Completion(name, NameKind.FUNCTION, edit, signature(name), function_text(name))


def _in_yaml(name: str, *, over_events: bool) -> bool:
    """Return whether a rule of steps has a function."""
    if LOOK_BACK_ALIASES.get(name, name) in LOOK_BACK_FUNCTIONS:
        return over_events
    return name not in ROW_FUNCTIONS


def _in_statement(
    document: OpenDocument,
    statement: StatementText,
    names: NamesInScope,
    before: list[SqlToken],
    word: TextRange,
) -> Iterator[Completion]:
    clause = statement.clause
    if clause == "FROM":
        yield from _listed(document.input_names, NameKind.VALUE, word, "input")
    elif clause == "AFTER":
        yield from _listed(_SKIPS, NameKind.KEYWORD, word)
        yield from _listed(statement.variables, NameKind.STEP, word, "variable")
    elif statement.in_pattern:
        variables = dict.fromkeys((*statement.defined, *statement.variables))
        yield from _listed(variables, NameKind.STEP, word, "variable")
        return
    elif clause == "DEFINE" and _begins_definition(before):
        others = (each for each in statement.variables if each not in statement.defined)
        for name in others:
            yield Completion(name, NameKind.STEP, Edit(word, f"{name} AS "), "variable")
    elif clause in _EXPRESSIONS:
        yield from _expression(document, names, before, word)
        yield from _functions(word, lambda _: True)
        yield from _listed(_WORDS, NameKind.KEYWORD, word)
    order = [name for name, _ in CLAUSES]
    later = order.index(clause) if clause else -1
    for name, rest in CLAUSES[later + 1 :]:
        text = f"{name} {rest}".strip()
        yield Completion(text, NameKind.KEYWORD, Edit(word, text))


def _begins_definition(before: list[SqlToken]) -> bool:
    """Return whether what is being written is the name of a variable."""
    depth = 0
    for token in reversed(before):
        depth += {")": 1, "(": -1}.get(token.text, 0)
        if depth < 0 or (token.kind == "word" and token.text.upper() == "AS"):
            return False
        if depth == 0 and (token.text == "," or token.text.upper() == "DEFINE"):
            return True
    return False


def _before_dot(before: list[SqlToken]) -> tuple[str, ...] | None:
    """The dotted name before the dot at the end, if there is one."""
    rest = list(before)
    path: list[str] = []
    while rest and rest[-1].text == ".":
        rest.pop()
        if not rest or rest[-1].kind not in ("word", "quoted"):
            return None
        path.insert(0, rest.pop().text.strip('`"'))
    return tuple(path) or None


def _compared(before: list[SqlToken]) -> tuple[str, ...]:
    """The column that the value behind these pieces is compared with; empty for none."""
    rest = list(before)
    if rest and rest[-1].text in (",", "("):
        # In a list of IN.
        while rest and rest[-1].text != "(":
            rest.pop()
        if len(rest) < _IN_AND_BRACKET or rest[-2].text.upper() != "IN":
            return ()
        rest = rest[:-2]
        if rest and rest[-1].text.upper() == "NOT":
            rest.pop()
    else:
        signs = ""
        while rest and rest[-1].kind == "sign" and rest[-1].text in "=<>!":
            signs = rest.pop().text + signs
        if signs not in _EQUAL:
            return ()
    if rest and rest[-1].text == ")":
        # As that of a look-back.
        rest.pop()
    path: list[str] = []
    while rest and rest[-1].kind in ("word", "quoted"):
        path.insert(0, rest.pop().text.strip('`"'))
        if not rest or rest[-1].text != ".":
            break
        rest.pop()
    return tuple(path)


def _listed(
    texts: Iterable[str], kind: NameKind, word: TextRange, detail: str = ""
) -> Iterator[Completion]:
    for text in texts:
        yield Completion(text, kind, Edit(word, text), detail)
