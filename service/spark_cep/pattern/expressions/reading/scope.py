"""The events that names belong to: the one under test, or those that a step has taken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from spark_cep.pattern.expressions.canonical import expression
from spark_cep.pattern.expressions.nodes import (
    ALL_STEPS,
    Column,
    ColumnPath,
    LookBack,
    Member,
    Node,
    Reference,
    Span,
    Variable,
)


@dataclass(slots=True)
class Scope:
    """Resolves names. ``inside`` collects the steps named within the current look-back call.

    ``variables`` are the parameters of the lambdas around, which no look-back can see.
    """

    COUNTED: ClassVar[str] = "step.*"

    steps: frozenset[str]
    measure: bool
    inside: list[str] | None = field(default=None)
    variables: tuple[str, ...] = ()

    def column(self, path: ColumnPath, span: Span) -> Node | str:
        """The column or look-back that a dotted name stands for, or what is wrong with it."""
        if path[0] in self.variables:
            node: Node = Variable(path[0], span)
            for name in path[1:]:
                node = Member(node, name, span)
            return node
        step = path[0] if len(path) > 1 and path[0] in self.steps else None
        if self.inside is not None:
            self.inside.append(step or ALL_STEPS)
            return Column(path[1:] if step else path, span)
        if step is None and not self.measure:
            return Column(path, span)
        bare = Column(path[1:] if step else path, span)
        return Reference(LookBack("LAST", step or ALL_STEPS, expression(bare)), span)
