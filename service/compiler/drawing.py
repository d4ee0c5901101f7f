"""A plan as a drawing: states and edges with labels, independent of who draws it.

``dot_text`` and ``mermaid_text`` write drawings for Graphviz and Mermaid. Every state and every
edge of the plan is in its drawing, in the plan's order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from service.compiler.formula import TRUE
from service.compiler.plan import Action, Edge, Kind, Plan, State
from service.compiler.wording import ConditionNames, printable
from service.durations import format_duration
from service.pattern.tree import Within

KIND_IN_WORDS: Final = {
    Kind.START: "start",
    Kind.NORMAL: "",
    Kind.PENDING: "a match at the deadline",
    Kind.STOP: "the partial match ends",
    Kind.FINAL: "",
}
"""What standing in a state means, where its name does not say so."""


@dataclass(frozen=True, slots=True)
class DrawnState:
    """One state. ``lines``: its label, one line or more."""

    number: int
    kind: Kind
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
    """A plan to be drawn. ``legend``: what the conditions on the edges stand for, a line each;
    empty when they are written in full. Labels are printable text without line ends."""

    title: str
    states: tuple[DrawnState, ...]
    edges: tuple[DrawnEdge, ...]
    legend: tuple[str, ...]


def draw(plan: Plan) -> Drawing:
    """The drawing of ``plan``."""
    names = ConditionNames(plan)
    return Drawing(
        title=printable(", ".join(_title(plan))),
        states=tuple(
            DrawnState(state.number, state.kind, tuple(_lines(state))) for state in plan.states
        ),
        edges=tuple(
            DrawnEdge(state.number, edge.target, edge.action, _label(edge, names))
            for state in plan.states
            for edge in state.edges
        ),
        legend=names.legend,
    )


def window_in_words(within: Within) -> str:
    """The window's bounds; empty when there is none."""
    bounds = []
    if within.max_ms is not None:
        bounds.append(f"less than {format_duration(within.max_ms)} from the first event to the last")
    if within.gap_ms is not None:
        bounds.append(f"less than {format_duration(within.gap_ms)} from one event to the next")
    return ", ".join(bounds)


def _title(plan: Plan) -> Iterator[str]:
    yield f"{plan.rule.id} version {plan.rule.version}"
    window = window_in_words(plan.rule.within)
    if window:
        yield window
    yield plan.after_match.strategy.value + (f" {plan.after_match.step or ''}").rstrip()


def _lines(state: State) -> Iterator[str]:
    yield f"{state.number} {state.label}"
    if KIND_IN_WORDS[state.kind]:
        yield KIND_IN_WORDS[state.kind]
    if state.gap_ms is not None:
        yield f"until {format_duration(state.gap_ms)} after the last event"


def _label(edge: Edge, names: ConditionNames) -> str:
    if edge.condition == TRUE:
        return edge.action.value
    return f"{edge.action.value} if {names.written(edge.condition)}"
