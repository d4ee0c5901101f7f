"""A query compiled: immutable, without functions, so that it can be pickled and compared.

``str()`` is the plan's text, which tests compare and ``explain`` shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from service.compiler.row_pattern.distinction import Distinction, distinctions
from service.compiler.row_pattern.generation import generate
from service.compiler.row_pattern.program import Program
from service.pattern.expressions import ColumnPath, Expression
from service.pattern.expressions.nodes import ClassifierAt, ColumnAt, RowAggregate, RowValue
from service.pattern.sql.query import Query


@dataclass(frozen=True)
class RowPatternPlan:
    """What the matcher needs of a query.

    ``columns`` are those of the input that anything reads, in the order in which a row holds them.
    ``reach`` is how many rows before the first of a match may still be read.
    ``distinctions`` belong to the program's instructions.
    """

    query: Query
    program: Program
    distinctions: tuple[tuple[Distinction, ...], ...]
    columns: tuple[ColumnPath, ...]
    reach: int

    @cached_property
    def fingerprint(self) -> str:
        """What state of the plan belongs to: another one where a stored row or thread would mean
        something else."""
        text = f"{self}\n{self.columns}\n{self.query.unions}\n{self.query.partition}"
        return sha256(text.encode()).hexdigest()[:16]

    @property
    def heading(self) -> tuple[str, str]:
        """What is looked for, and what becomes of a match."""
        query = self.query
        within = "" if query.within_ms is None else f", within {query.within_ms} ms"
        target = f" {'|'.join(query.target)}" if query.target else ""
        after = f"{query.rows.lower()}, skip {query.skip.lower()}{target.lower()}"
        return f"row pattern {query.pattern}{within}", after

    def __str__(self) -> str:
        pattern, after = self.heading
        conditions = [f"{v}: {e.canonical}" for v, e in self.query.defines.items()]
        measures = [f"{each.name}: {each.expression.canonical}" for each in self.query.measures]
        return "\n  ".join([pattern, after, *conditions, *self.program.lines, *measures])


def plan_query(query: Query) -> RowPatternPlan:
    """The plan of a query."""
    program = generate(query.pattern, query.variables)
    expressions = [*query.defines.values(), *(each.expression for each in query.measures)]
    paths = [
        *query.partition,
        *(each.path for each in query.order),
        *(each.source for each in query.outputs if isinstance(each.source, tuple)),
        *(path for each in expressions for path in columns_of(each)),
    ]
    shifts = [
        value.position.shift
        for each in expressions
        for value in each.row_values
        if isinstance(value, (ColumnAt, ClassifierAt)) and value.position is not None
    ]
    return RowPatternPlan(
        query=query,
        program=program,
        distinctions=distinctions(program, query.defines),
        columns=tuple(dict.fromkeys(paths)),
        reach=-min([0, *shifts]),
    )


def columns_of(expression: Expression) -> Iterator[ColumnPath]:
    """The columns that an expression reads of any row."""
    yield from sorted(expression.columns)
    for value in expression.row_values:
        yield from _columns_at(value)


def _columns_at(value: RowValue) -> Iterator[ColumnPath]:
    if isinstance(value, ColumnAt):
        yield value.path
    if isinstance(value, RowAggregate):
        for argument in value.arguments:
            yield from columns_of(argument)
