"""A plan as a drawing: states and edges with labels, independent of who draws it.

``dot_text`` and ``mermaid_text`` write drawings for Graphviz and Mermaid. Every state and every
edge of the plan is in its drawing, in the plan's order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spark_cep.compiler.explain.wording import (
    ConditionNames,
    skip_in_words,
    state_in_words,
    window_in_words,
)
from spark_cep.compiler.formula import TRUE
from spark_cep.compiler.plan import Action, Edge, Plan, StateKind
from spark_cep.pattern.tree import Skip


@dataclass(frozen=True, slots=True)
class DrawnState:
    """One state. ``lines``: its label, one line or more."""

    number: int
    kind: StateKind
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """One edge between states, by their numbers."""

    source: int
    target: int
    action: Action
    label: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plan to be drawn. ``notes``: what holds for the whole rule, and what the numbers of
    conditions stand for, a line each. All text is printable and without line ends."""

    title: str
    states: tuple[DrawnState, ...]
    edges: tuple[DrawnEdge, ...]
    notes: tuple[str, ...]


def draw(plan: Plan) -> Drawing:
    """The drawing of ``plan``."""
    names = ConditionNames(plan)
    return Drawing(
        title=f"{plan.rule.id} version {plan.rule.version}",
        states=tuple(
            DrawnState(
                state.number, state.kind, (f"{state.number} {state.label}", *state_in_words(state))
            )
            for state in plan.states
        ),
        edges=tuple(
            DrawnEdge(state.number, edge.target, edge.action, _label(edge, names))
            for state in plan.states
            for edge in state.edges
        ),
        notes=(*_notes(plan), *names.legend),
    )


def _notes(plan: Plan) -> Iterator[str]:
    window = window_in_words(plan.rule.within)
    if window:
        yield f"window: {window}"
    if plan.after_match.strategy is not Skip.NO_SKIP:
        yield f"after a match: {skip_in_words(plan.after_match)}"


def _label(edge: Edge, names: ConditionNames) -> str:
    if edge.condition == TRUE:
        return edge.action.value
    return f"{edge.action.value} if {names.written(edge.condition)}"
