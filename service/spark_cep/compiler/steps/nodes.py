"""States under construction: their edges may still be added and narrowed."""

from __future__ import annotations

from dataclasses import dataclass, field

from spark_cep.compiler.formula import Formula
from spark_cep.compiler.plan import Action, StateKind


@dataclass(slots=True, eq=False)
class DraftEdge:
    """One transition to be."""

    action: Action
    target: Node
    condition: Formula


@dataclass(slots=True, eq=False)
class Node:
    """One state to be; equal only to itself."""

    step: str
    kind: StateKind
    edges: list[DraftEdge] = field(default_factory=list)

    def add(self, action: Action, target: Node, condition: Formula) -> None:
        """Add an edge behind those there are: their order is the order of trial."""
        self.edges.append(DraftEdge(action, target, condition))
