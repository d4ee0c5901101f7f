"""The rows that names belong to in MATCH_RECOGNIZE: a row of the match, or one near it.

Every column is read at a position (``RowPosition``). Navigation and aggregates say for all columns
within them which; a *frame* holds that while their argument is read. A plain ``A.price`` is
``RUNNING LAST(A.price)``, a plain ``price`` the same over all rows of the match. In the condition
of a variable such a position is that of the row under test, which is then read as an event's column
is read everywhere else, so that a condition that looks at nothing but its row is event-only.

Names of variables and columns match without regard to case where they do not match exactly, unless
they are quoted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from spark_cep.documents.nearest import nearest
from spark_cep.pattern.expressions.canonical import name
from spark_cep.pattern.expressions.nodes import (
    ClassifierAt,
    Column,
    ColumnAt,
    ColumnPath,
    Literal,
    Node,
    RowPosition,
    RowReference,
    Span,
)
from spark_cep.pattern.expressions.problems import refused
from spark_cep.pattern.types import STRING, RecordType, is_of_kafka

_PART = re.compile(r'"(?:[^"]|"")*"|`(?:[^`]|``)*`|\w+')
#: Functions of a match that are called without arguments, and so easily written without brackets.
_CALLED = ("CLASSIFIER", "MATCH_NUMBER")


@dataclass(slots=True)
class Frame:
    """A navigation or an aggregate (without ``position``) whose argument is being read.

    ``named`` are the variables that it has named, ``""`` for none.
    """

    position: RowPosition | None
    named: list[str] = field(default_factory=list)


@dataclass(slots=True)
class RowPatternScope:
    """Resolves names. ``unions`` maps each variable, and each SUBSET, to its primary variables;
    ``defined`` is the variable whose condition it is, ``None`` in a measure. ``text`` is the
    expression as the author wrote it. ``respelt``: the columns, behind their variables, that it
    spells otherwise than the event, with the places of both."""

    unions: Mapping[str, tuple[str, ...]]
    defined: str | None = None
    event: RecordType | None = None
    text: str = ""
    frame: Frame | None = None
    respelt: list[tuple[Span, ColumnPath]] = field(default_factory=list)

    def variable(self, written: str, span: Span) -> str | None:
        """The variable or SUBSET of a name, which the text at ``span`` begins with."""
        quoted = quoted_parts(self.text[slice(*span)])
        names = (written,) if quoted and quoted[0] else (written, written.upper())
        return next((name for name in names if name in self.unions), None)

    def column(self, path: ColumnPath, span: Span) -> Node:
        """The column that a dotted name stands for; ``ExpressionError`` if there is none."""
        variable = self.variable(path[0], span) if len(path) > 1 else None
        quoted = quoted_parts(self.text[slice(*span)])
        written = path[1:] if variable else path
        found = column_of(self.event, written, quoted[1:] if variable else quoted)
        if found != written:
            self.respelt.append((span, found))
        known = (
            self.event is None or found[0] in self.event.fields or is_of_kafka(self.event, found)
        )
        if len(path) > 1 and not variable and not known:
            raise refused(self._unknown(path), span)
        if not known and self.variable(path[0], span):
            wrong = self._taken_for_column(path, variable)
            if wrong is not None:
                raise refused(wrong, span)
        if len(path) == 1 and (self.event is None or not known):
            self._check_plain(path[0], span)
        if self.frame is not None and self.frame.position is None:
            self.frame.named.append(variable or "")
            return Column(found, span)
        position = self.at(variable)
        if position == RowPosition() and self.defined is not None:
            return Column(found, span)
        return RowReference(ColumnAt(position, found), span)

    def classifier(self, variable: str | None, span: Span) -> Node:
        """CLASSIFIER at the position of a variable."""
        if self.frame is not None and self.frame.position is None:
            self.frame.named.append(variable or "")
            return RowReference(ClassifierAt(None), span)
        position = self.at(variable)
        if position == RowPosition() and self.defined is not None:
            return Literal(self.defined, STRING, span)
        return RowReference(ClassifierAt(position), span)

    def at(self, variable: str | None) -> RowPosition:
        """The position that the frame, if any, gives to what is read of a variable."""
        position = RowPosition()
        if self.frame is not None and self.frame.position is not None:
            self.frame.named.append(variable or "")
            position = self.frame.position
        under_test = position.pick == "LAST" and not position.offset and not position.final
        of = self.unions[variable] if variable else ()
        if under_test and self.defined is not None and self.defined in of:
            return position
        return replace(position, variables=of)

    def _taken_for_column(self, path: ColumnPath, variable: str | None) -> str | None:
        """Return the problem where a variable's name is used as a column, or a column's as a
        variable."""
        if variable is None:
            return (
                f"{path[0]} is a pattern variable, not a column: COUNT({path[0]}.*) counts its rows"
            )
        if self.event is not None and column_of(self.event, path)[0] in self.event.fields:
            written = name(path)
            return f"{written}: {path[0]} is the pattern variable here; write {variable}.{written}"
        return None

    def _check_plain(self, written: str, span: Span) -> None:
        """``ExpressionError`` where a name that may be no column is probably none."""
        if written.upper() in _CALLED and self.text[slice(*span)] == written:
            allowed = f"{written}(); a column of that name is quoted: `{written}`"
            raise refused(f"{written} is a function", span, allowed)
        if self.event is not None:
            check_quotes(written, self.text[slice(*span)], span, self.event)

    def _unknown(self, path: ColumnPath) -> str:
        columns = self.event.fields if self.event is not None else ()
        near = nearest(path[0], [*self.unions, *columns])
        hint = f"; did you mean {near}?" if near else ""
        return f"{name(path)}: {path[0]} is neither a pattern variable nor a column{hint}"


def quoted_parts(written: str) -> tuple[bool, ...]:
    """Return for each part of a dotted name, as the author wrote it, whether it is quoted."""
    return tuple(part[0][0] in '"`' for part in _PART.finditer(written))


def check_quotes(column: str, written: str, span: Span, record: RecordType) -> None:
    """``ExpressionError`` where a name in double quotes is no column: it may be meant as text."""
    if not written.startswith('"'):
        return
    alike = [field for field in record.fields if field.lower() == column.lower()]
    spelt = "".join(f'"{field}", as the event spells it; or ' for field in alike)
    message = f"{written} is a name, and the event has no column that is spelt so"
    raise refused(message, span, f"{spelt}a text in single quotes: '{column}'")


def column_of(
    record: RecordType | None, path: ColumnPath, quoted: Sequence[bool] = ()
) -> ColumnPath:
    """The path with each part spelt as the record spells it, where case alone makes the
    difference and the part is not ``quoted``."""
    found: list[str] = []
    for number, part in enumerate(path):
        spelt = part
        exact = number < len(quoted) and quoted[number]
        if isinstance(record, RecordType) and part not in record.fields and not exact:
            alike = [field for field in record.fields if field.lower() == part.lower()]
            spelt = alike[0] if len(alike) == 1 else part
        found.append(spelt)
        inner = record.fields.get(spelt) if isinstance(record, RecordType) else None
        record = inner if isinstance(inner, RecordType) else None
    return tuple(found)
