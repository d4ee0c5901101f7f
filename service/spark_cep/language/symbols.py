"""The named parts of a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spark_cep.documents.places import Mark, Path, Places
from spark_cep.documents.reading import Document, read_documents
from spark_cep.language.answers import NameKind, Symbol, TextPosition, TextRange
from spark_cep.language.documents import Language, OpenDocument
from spark_cep.language.places.statements import definitions
from spark_cep.pattern.document.sql_file import divided, read_sql_file


def symbols(document: OpenDocument) -> list[Symbol]:
    """The rules of a text with their steps and measures, the cases, or the sections of the
    configuration, in the order of the text."""
    if document.language is Language.SQL:
        return _of_sql_file(document)
    read = read_documents(document.text, document.name)
    return [symbol for each in read for symbol in _of_document(document, each)]


def _of_sql_file(document: OpenDocument) -> list[Symbol]:
    """The rule of a file with a statement, and the variables that it defines."""
    read = read_sql_file(document.text, document.name)
    data, outline = read.data, _Outline(document, read.places)
    name = data.get("id") if isinstance(data, dict) else None
    whole = TextRange(TextPosition(0, 0), document.position(len(document.text)))
    _, begins = divided(document.text)
    start = document.offset(TextPosition(begins, 0))
    variables = []
    for each in definitions(document.text[start:]):
        at = document.position(start + each.start)
        around = TextRange(at, document.position(start + each.end))
        variables.append(Symbol(each.text, NameKind.STEP, around, around))
    named = outline.symbol(name if isinstance(name, str) else "?", NameKind.RULE, (), ("id",))
    return [Symbol(named.name, NameKind.RULE, whole, named.name_range, "", tuple(variables))]


def _of_document(document: OpenDocument, read: Document) -> Iterator[Symbol]:
    data, places = read.data, read.places
    if not isinstance(data, dict):
        return
    outline = _Outline(document, places)
    if document.language is Language.SETTINGS:
        for name, value in data.items():
            yield from outline.section((name,), value, deep=True)
    elif document.language is Language.CASES:
        yield from outline.cases(data)
    elif isinstance(data.get("id"), str):
        children = (*outline.steps(data.get("pattern"), ("pattern",)), *outline.measures(data))
        cases = tuple(outline.cases(data))
        yield outline.symbol(data["id"], NameKind.RULE, (), ("id",), (*children, *cases))


class _Outline:
    """The symbols of one document."""

    def __init__(self, document: OpenDocument, places: Places) -> None:
        self._document = document
        self._places = places

    def symbol(
        self, name: str, kind: NameKind, whole: Path, named: Path, children: tuple[Symbol, ...] = ()
    ) -> Symbol:
        """A symbol of the part at ``whole``, whose name stands at ``named``."""
        name_range = self._range(self._places.values.get(named) or self._places.keys.get(named))
        around = self._range(self._places.values.get(whole))
        start = min(around.start, name_range.start)
        end = max(around.end, name_range.end)
        return Symbol(name or "?", kind, TextRange(start, end), name_range, "", children)

    def steps(self, steps: object, path: Path) -> Iterator[Symbol]:
        """The steps of a list, with those of groups."""
        for number, step in enumerate(steps if isinstance(steps, list) else ()):
            if isinstance(step, dict) and isinstance(step.get("step"), str):
                here = (*path, number)
                inner = tuple(self.steps(step.get("group"), (*here, "group")))
                kind = NameKind.GROUP if "group" in step else NameKind.STEP
                yield self.symbol(step["step"], kind, here, (*here, "step"), inner)

    def measures(self, data: Mapping[str, Any]) -> Iterator[Symbol]:
        """The measures of a rule."""
        emit = data.get("emit")
        measures = emit.get("measures") if isinstance(emit, dict) else None
        for name in measures if isinstance(measures, dict) else ():
            path = ("emit", "measures", name)
            yield self._of_key(name, NameKind.MEASURE, path)

    def cases(self, data: Mapping[str, Any]) -> Iterator[Symbol]:
        """The test cases of a document."""
        cases: Sequence[object] = data["cases"] if isinstance(data.get("cases"), list) else ()
        for number, case in enumerate(cases):
            if isinstance(case, dict) and isinstance(case.get("case"), str):
                path = ("cases", number)
                yield self.symbol(case["case"], NameKind.CASE, path, (*path, "case"))

    def section(self, path: Path, value: object, *, deep: bool) -> Iterator[Symbol]:
        """A section of the configuration, with those directly in it."""
        inner = value.items() if deep and isinstance(value, dict) else ()
        children = [
            each for name, below in inner for each in self.section((*path, name), below, deep=False)
        ]
        yield self._of_key(str(path[-1]), NameKind.SECTION, path, tuple(children))

    def _of_key(
        self, name: str, kind: NameKind, path: Path, children: tuple[Symbol, ...] = ()
    ) -> Symbol:
        name_range = self._range(self._places.keys.get(path))
        end = max(self._range(self._places.values.get(path)).end, name_range.end)
        return Symbol(name or "?", kind, TextRange(name_range.start, end), name_range, "", children)

    def _range(self, mark: Mark | None) -> TextRange:
        if mark is None:
            return TextRange(TextPosition(0, 0), TextPosition(0, 0))
        start = self._position(mark.line, mark.column)
        return TextRange(start, max(start, self._position(mark.end_line, mark.end_column)))

    def _position(self, line: int, column: int) -> TextPosition:
        lines = self._document.lines
        if line >= len(lines):
            return TextPosition(len(lines) - 1, len(lines[-1]))
        return TextPosition(line, min(column, len(lines[line])))
