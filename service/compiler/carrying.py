"""Which states of one version of a rule are those of another one, for partial matches that move.

A state is the same in both when all that may have led a partial match there is: key, inputs, the
states on the way with their steps and gaps, and each way between them and past them, with its
condition. What may come of a partial match in the state does not count: that is what a new version
changes. Where the same could be said in another form, states are different: a partial match that is
taken for another one would be wrong, one that ends is counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from service.compiler.plan import Action, Edge, Kind, Plan, State

#: Of a state or step that the other version does not have.
NOWHERE = -1


def same_states(old: Plan, new: Plan) -> list[int]:
    """For each state of ``old`` the one of ``new`` that is the same, or ``NOWHERE``."""
    if (_canonical_key(old), old.rule.events) != (_canonical_key(new), new.rule.events):
        return [NOWHERE] * len(old.states)
    there = {way: number for number, way in enumerate(_ways(new)) if way is not None}
    return [NOWHERE if way is None else there.get(way, NOWHERE) for way in _ways(old)]


def same_steps(old: Plan, new: Plan) -> list[int]:
    """For each step of ``old`` that takes events the one of that name in ``new``, or
    ``NOWHERE``."""
    numbers = {name: number for number, name in enumerate(new.steps)}
    return [numbers.get(name, NOWHERE) for name in old.steps]


def _canonical_key(plan: Plan) -> list[str]:
    return [expression.canonical for expression in plan.rule.key]


def _ways(plan: Plan) -> list[Any]:
    """Of each state, what identifies it by all that leads there; ``None`` for one that is told from
    others by nothing, or in which nothing stands."""
    names = Counter(map(_name, plan.states))
    return [
        None
        if state.kind in (Kind.START, Kind.STOP) or names[_name(state)] > 1
        else _way(plan, state, names)
        for state in plan.states
    ]


def _way(plan: Plan, end: State, names: Counter[tuple[str, Kind]]) -> Any:
    states, before = plan.states, _leading_to(plan, end.number)
    if any(names[_name(states[number])] > 1 for number in before):
        return None
    described = []
    for number in before:
        state = states[number]
        # Which events pass a partial match where it stands is for what comes next to say.
        edges = [
            (edge.action, _name(states[edge.target]), _text(plan, edge))
            for edge in state.edges
            if edge.target in before or (states[edge.target].kind is Kind.STOP and state is not end)
            if not (state is end and _passes(edge, number))
        ]
        gaps = None if state is end else (state.gap_ms, state.taking_gap_ms)
        described.append((_name(state), state.step, gaps, tuple(edges)))
    return _name(end), tuple(sorted(described, key=lambda each: (each[0][0], each[0][1].value)))


def _passes(edge: Edge, number: int) -> bool:
    return edge.action is Action.IGNORE and edge.target == number


def _leading_to(plan: Plan, end: int) -> Sequence[int]:
    """The state and all from which it can be reached."""
    found = {end}
    while True:
        more = {
            state.number
            for state in plan.states
            if state.number not in found and any(edge.target in found for edge in state.edges)
        }
        if not more:
            return sorted(found)
        found |= more


def _name(state: State) -> tuple[str, Kind]:
    return state.label, state.kind


def _text(plan: Plan, edge: Edge) -> str:
    """The condition of an edge, with what its atoms say."""

    def atom(found: re.Match[str]) -> str:
        one = plan.atoms[int(found[1])]
        return f"<{type(one).__name__} {one}>"

    return re.sub(r"c(\d+)", atom, str(edge.condition))
