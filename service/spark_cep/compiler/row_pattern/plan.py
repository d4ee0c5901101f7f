"""A query compiled: immutable, without functions, so that it can be compared.

``str()`` is the plan's text, which tests compare and ``explain`` shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from spark_cep.compiler.formula import TRUE, Atom, Formula
from spark_cep.compiler.plan import EventAtom
from spark_cep.compiler.row_pattern.distinction import Distinction, distinctions
from spark_cep.compiler.row_pattern.generation import generate
from spark_cep.compiler.row_pattern.program import RowPatternProgram, Start
from spark_cep.pattern.expressions import And, ColumnPath, Expression, Leaf, Or, boolean_structure
from spark_cep.pattern.expressions.nodes import (
    ClassifierAt,
    ColumnAt,
    MatchNumber,
    RowAggregate,
    RowValue,
)
from spark_cep.pattern.sql.query import Computed, Query
from spark_cep.pattern.tree import Rule


@dataclass(frozen=True)
class RowPatternPlan:
    """The plan of a rule in SQL.

    ``columns`` are those of the input that anything reads, in the order in which a row holds them.
    ``reach`` is how many rows before the first of a match may still be read.
    ``distinctions`` belong to the program's instructions. ``event_atoms`` are the parts of
    conditions that read the row under test alone, numbered from 0. Every row of a key counts, so
    none is filtered out (``strict``) but those that WHERE rules out: they are no rows
    (``relevant``).
    """

    rule: Rule
    query: Query
    program: RowPatternProgram
    distinctions: tuple[tuple[Distinction, ...], ...]
    columns: tuple[ColumnPath, ...]
    reach: int
    event_atoms: tuple[EventAtom, ...]
    relevant: Formula = TRUE
    strict: bool = True

    @cached_property
    def fingerprint(self) -> str:
        """Return a digest that changes when a stored row or thread would mean something else."""
        rule = self.rule
        text = f"{rule.id}\n{rule.version}\n{', '.join(rule.events)}\n{self}\n{self.columns}"
        results = [
            (each.name, str(each.source) if isinstance(each.source, Computed) else each.source)
            for each in self.query.outputs
        ]
        text += f"\n{self.query.unions}\n{self.query.partition}\n{results}"
        text += "".join(f"\n{item}" for item in self.query.order[1:])
        return sha256(text.encode()).hexdigest()[:16]

    @property
    def steps(self) -> tuple[str, ...]:
        """The pattern's variables."""
        return self.query.variables

    @property
    def closed(self) -> int:
        """A bit beside those of the atoms: no match may start at the row."""
        return 1 << len(self.event_atoms)

    @cached_property
    def remembers(self) -> bool:
        """Return whether something of a key counts when no match is under way: how many there were,
        whether it has begun, or rows that are no more in reach of a match."""
        begins = any(isinstance(each, Start) for each in self.program.instructions)
        values = (value for each in _expressions(self.query) for value in _values(each))
        return begins or self.reach > 0 or any(isinstance(each, MatchNumber) for each in values)

    @property
    def heading(self) -> tuple[str, str]:
        """Return the pattern and what happens after a match, as two lines of text."""
        query = self.query
        within = "" if query.within_ms is None else f", within {query.within_ms} ms"
        target = f" {'|'.join(query.target)}" if query.target else ""
        after = f"{query.rows.lower()}, skip {query.skip.lower()}{target.lower()}"
        return f"row pattern {query.pattern}{within}", after

    def __str__(self) -> str:
        pattern, after = self.heading
        conditions = [f"{v}: {e.canonical}" for v, e in self.query.defines.items()]
        measures = [f"{each.name}: {each.expression.canonical}" for each in self.query.measures]
        if self.query.where is not None:
            conditions.insert(0, f"where {self.query.where.canonical}")
        return "\n  ".join([pattern, after, *conditions, *self.program.lines, *measures])


def plan_query(query: Query) -> RowPatternPlan:
    """The plan of a query by itself."""
    return plan_rule(Rule("query", 1, events=(query.input,), query=query), query)


def plan_rule(rule: Rule, query: Query) -> RowPatternPlan:
    """The plan of a rule in SQL with its query, in which names stand for columns of its input."""
    program = generate(query.pattern, query.variables)
    expressions = _expressions(query)
    paths = [
        *query.partition,
        *(each.path for each in query.order),
        *(path for each in query.outputs for path in each.columns),
        *(path for each in expressions for path in columns_of(each)),
    ]
    shifts = [
        value.position.shift
        for each in expressions
        for value in each.row_values
        if isinstance(value, (ColumnAt, ClassifierAt)) and value.position is not None
    ]
    atoms: dict[Expression, EventAtom] = {}
    for variable, condition in query.defines.items():
        for leaf in _event_leaves(boolean_structure(condition)):
            atoms.setdefault(leaf, EventAtom(leaf, None, variable))
    relevant: Formula = TRUE
    if query.where is not None:
        atoms.setdefault(query.where, EventAtom(query.where, None, "WHERE"))
        relevant = Atom(list(atoms).index(query.where))
    return RowPatternPlan(
        rule=rule,
        query=query,
        program=program,
        distinctions=distinctions(program, query.defines),
        columns=tuple(dict.fromkeys(paths)),
        reach=-min([0, *shifts]),
        event_atoms=tuple(atoms.values()),
        relevant=relevant,
        strict=query.where is None,
    )


def _expressions(query: Query) -> list[Expression]:
    return [*query.defines.values(), *(each.expression for each in query.measures)]


def _values(expression: Expression) -> Iterator[RowValue]:
    """Yield the values of a match's rows that an expression reads, also inside aggregates."""
    for value in expression.row_values:
        yield value
        if isinstance(value, RowAggregate):
            for argument in value.arguments:
                yield from _values(argument)


def _event_leaves(part: Leaf | And | Or) -> Iterator[Expression]:
    if not isinstance(part, Leaf):
        for each in part.parts:
            yield from _event_leaves(each)
    elif part.expression.is_event_only:
        yield part.expression


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
