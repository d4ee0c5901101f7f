"""A statement with every name resolved and every expression read: what is compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_cep.pattern.expressions import ColumnPath, Expression
from spark_cep.pattern.expressions.canonical import name
from spark_cep.pattern.sql.row_pattern import RowPattern, Span
from spark_cep.pattern.sql.statement import RowsPerMatch, SkipTo
from spark_cep.pattern.types import RecordType, SqlType


@dataclass(frozen=True, slots=True)
class Sort:
    """An item of ORDER BY: the event time is the first, the others order rows of equal time. NULLs
    stand last unless the statement says otherwise."""

    path: ColumnPath
    descending: bool = False
    nulls_first: bool = False
    span: Span = field(default=(0, 0), compare=False)

    def __str__(self) -> str:
        descending = " DESC" if self.descending else ""
        return f"{name(self.path)}{descending}{' NULLS FIRST' if self.nulls_first else ''}"


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure, its type where the events' is known, and where its expression begins."""

    name: str
    expression: Expression
    type: SqlType
    start: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Computed:
    """A value that SELECT computes of columns of the clause's result: of each that the expression
    reads, the column of the input, or the number of the measure. ``row`` has their types."""

    expression: Expression
    sources: tuple[tuple[ColumnPath, ColumnPath | int], ...]
    row: RecordType

    def __str__(self) -> str:
        return f"{self.expression.canonical} {self.sources}"


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of the result: a column of the input, the measure of that number, or what SELECT
    computes. ``span``: where the statement names it, if it does."""

    name: str
    type: SqlType
    source: ColumnPath | int | Computed
    span: Span = field(default=(0, 0), compare=False)

    @property
    def columns(self) -> tuple[ColumnPath, ...]:
        """The columns of the input that it is made of."""
        sources = (
            [source for _, source in self.source.sources]
            if isinstance(self.source, Computed)
            else [self.source]
        )
        return tuple(source for source in sources if isinstance(source, tuple))


@dataclass(frozen=True, slots=True)
class Query:
    """One rule in SQL. ``text`` is the statement, ``source`` names it in messages; how a statement
    is written takes no part in equality.

    ``variables`` are the pattern's primary variables in the order of the text; ``unions`` maps
    these, and each SUBSET, to primary variables. ``target``: the variables that AFTER MATCH SKIP
    goes to. ``within_ms``: from the first row of a match to its last, exclusive. ``event`` is the
    type of the input's events; without it, types are unknown, columns are as the statement spells
    them, and ``*`` of ALL ROWS has no columns but those that the clause names. ``where``: the
    condition that the input's events must meet to be rows, over the event alone.
    ``define_starts``, ``where_start``: where the text of conditions begins.
    """

    text: str = field(compare=False)
    source: str = field(compare=False)
    input: str
    partition: tuple[ColumnPath, ...]
    order: tuple[Sort, ...]
    measures: tuple[Measure, ...]
    rows: RowsPerMatch
    skip: SkipTo
    target: tuple[str, ...]
    pattern: RowPattern
    within_ms: int | None
    variables: tuple[str, ...]
    unions: Mapping[str, tuple[str, ...]]
    defines: Mapping[str, Expression]
    outputs: tuple[OutputColumn, ...]
    event: RecordType | None
    where: Expression | None = None
    input_span: Span = field(default=(0, 0), compare=False)
    partition_spans: tuple[Span, ...] = field(default=(), compare=False)
    define_starts: Mapping[str, int] = field(default_factory=dict, compare=False)
    where_start: int = field(default=0, compare=False)
