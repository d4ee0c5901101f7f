"""Names over one row by itself: a row of the input in WHERE, or of the result in SELECT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from spark_cep.documents.nearest import instead
from spark_cep.pattern.expressions.canonical import name
from spark_cep.pattern.expressions.functions.aggregation import ROW_AGGREGATE_ALIASES
from spark_cep.pattern.expressions.nodes import Column, ColumnPath, Node, Span
from spark_cep.pattern.expressions.problems import refused
from spark_cep.pattern.expressions.reading.reader import Called, ExpressionReader
from spark_cep.pattern.expressions.reading.row_scope import (
    check_quotes,
    column_of,
    quoted_parts,
)
from spark_cep.pattern.expressions.reading.row_values import MatchRows
from spark_cep.pattern.types import RecordType, is_of_kafka


@dataclass(slots=True)
class PlainRow:
    """A row of the type ``record`` (``None``: not known). ``qualifiers`` are the names that may
    stand before a column; ``matches`` says where what reads several rows belongs. ``result``: the
    row is one of the clause's result, whose columns are known by name. ``text`` and ``respelt`` as
    in :class:`~spark_cep.pattern.expressions.reading.row_scope.RowPatternScope`."""

    functions: ClassVar[frozenset[str]] = MatchRows.functions
    aliases: ClassVar[Mapping[str, str]] = ROW_AGGREGATE_ALIASES
    counted: ClassVar[str] = "A.*"

    record: RecordType | None
    qualifiers: tuple[str, ...]
    matches: str
    text: str
    result: bool = False
    respelt: list[tuple[Span, ColumnPath]] = field(default_factory=list)

    def column(self, path: ColumnPath, span: Span) -> Node:
        """The column that a dotted name stands for; ``ExpressionError`` if there is none."""
        quoted = quoted_parts(self.text[slice(*span)])
        of_record = self.record is not None and path[0] in self.record.fields
        if len(path) > 1 and path[0].lower() in self.qualifiers and not of_record:
            path, quoted = path[1:], quoted[1:]
        found = column_of(self.record, path, quoted)
        if found != path:
            self.respelt.append((span, found))
        is_known = self.record is None or found[0] in self.record.fields
        if self.record is not None and not is_known and not is_of_kafka(self.record, found):
            allowed = instead(found[0], self.record.fields, "columns")
            if self.result:
                raise refused(f"the result has no column `{name(path)}`", span, allowed)
            if len(found) > 1:
                message = f"{name(path)}: {path[0]} is neither the input nor a column"
                raise refused(message, span, allowed)
            check_quotes(found[0], self.text[slice(*span)], span, self.record)
        return Column(found, span)

    def call(self, reader: ExpressionReader, called: Called) -> Node:
        """No value: a row by itself has no other rows to read."""
        del reader
        raise refused(f"{called.written} reads rows of a match", called.span, self.matches)
