"""States that two versions of a rule have in common, so that partial matches can move from one to
the other.

A state is the same in both when all that may have led a partial match there is: key, inputs, the
states on the way with their steps and gaps, and each way between them and past them, with its
condition. What may come of a partial match in the state does not count: that is what a new version
changes. Where the same could be said in another form, states are different: a partial match that is
taken for another one would be wrong, one that ends is counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256

from spark_cep.compiler.plan import Action, Edge, Plan, State, StateKind

#: Of a state or step that the other version does not have.
NOWHERE = -1


_MOST_KNOWN = 256
#: By fingerprints: each key group asks.
_known: dict[tuple[str, str], list[int]] = {}


def same_states(old: Plan, new: Plan) -> list[int]:
    """For each state of ``old`` the one of ``new`` that is the same, or ``NOWHERE``."""
    asked = old.fingerprint, new.fingerprint
    if asked not in _known:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[asked] = _compared(old, new)
    return _known[asked]


def same_steps(old: Plan, new: Plan) -> list[int]:
    """For each step of ``old`` that takes events the one of that name in ``new``, or
    ``NOWHERE``."""
    numbers = {name: number for number, name in enumerate(new.steps)}
    return [numbers.get(name, NOWHERE) for name in old.steps]


def _compared(old: Plan, new: Plan) -> list[int]:
    if (_canonical_key(old), old.rule.events) != (_canonical_key(new), new.rule.events):
        return [NOWHERE] * len(old.states)
    there = {way: number for number, way in enumerate(_ways(new)) if way}
    return [there.get(way, NOWHERE) if way else NOWHERE for way in _ways(old)]


def _canonical_key(plan: Plan) -> list[str]:
    return [expression.canonical for expression in plan.rule.key]


def _ways(plan: Plan) -> list[bytes]:
    """Return a digest of everything that leads to each state; empty for a state without partial
    matches.

    States in a loop lead to one another: they are told by name within it, and by digest from
    without. One pass over the plan, whatever its size.
    """
    into: list[list[tuple[int, Edge]]] = [[] for _ in plan.states]
    for state in plan.states:
        for edge in state.edges:
            into[edge.target].append((state.number, edge))
    ways = [b""] * len(plan.states)
    passed = [b""] * len(plan.states)
    for loop in _loops(plan, into):
        inside = set(loop)
        on_the_way, at_the_end = {}, {}
        for number in loop:
            state = plan.states[number]
            edges = [
                (edge.action, _text(plan, edge), _name(plan.states[origin]))
                if origin in inside
                else (edge.action, _text(plan, edge), passed[origin])
                for origin, edge in into[number]
                # Which events pass a partial match where it stands is for what comes next to say.
                if not (origin == number and edge.action is Action.IGNORE)
            ]
            at_the_end[number] = _digest(_name(state), state.step, sorted(map(repr, edges)))
            stays = [
                _text(plan, edge)
                for origin, edge in into[number]
                if origin == number and edge.action is Action.IGNORE
            ]
            stops = [
                (edge.action, _name(plan.states[edge.target]), _text(plan, edge))
                for edge in state.edges
                if plan.states[edge.target].kind is StateKind.STOP
            ]
            on_the_way[number] = _digest(
                at_the_end[number], stays, sorted(map(repr, stops)), state.gap_ms,
                state.taking_gap_ms,
            )  # fmt: skip
        # A sum has no order, and one of its parts can be exchanged.
        whole = sum(map(_number, on_the_way.values()))
        for number in loop:
            others = whole - _number(on_the_way[number])
            if plan.states[number].kind not in (StateKind.START, StateKind.STOP):
                ways[number] = _digest(others, at_the_end[number])
            passed[number] = _digest(whole, _name(plan.states[number]))
    return ways


def _loops(plan: Plan, into: list[list[tuple[int, Edge]]]) -> Iterator[list[int]]:
    """The states in groups of those that can be reached from one another, each group behind those
    that lead to it (Kosaraju's algorithm)."""
    done: set[int] = set()
    order: list[int] = []
    todo = [(plan.start, False)]
    while todo:
        number, left = todo.pop()
        if left:
            order.append(number)
        elif number not in done:
            done.add(number)
            todo.append((number, True))
            todo += [(edge.target, False) for edge in plan.states[number].edges]
    grouped: set[int] = set()
    for first in reversed(order):
        group, back = [], [first]
        while back:
            number = back.pop()
            if number not in grouped:
                grouped.add(number)
                group.append(number)
                back += [origin for origin, _ in into[number]]
        if group:
            yield group


def _digest(*parts: object) -> bytes:
    return sha256(repr(parts).encode()).digest()


def _number(digest: bytes) -> int:
    return int.from_bytes(digest, "big")


def _name(state: State) -> tuple[str, str]:
    return state.label, state.kind.value


def _text(plan: Plan, edge: Edge) -> str:
    """The condition of an edge, with what its atoms say."""

    def atom(found: re.Match[str]) -> str:
        one = plan.atoms[int(found[1])]
        return f"<{type(one).__name__} {one}>"

    return re.sub(r"c(\d+)", atom, str(edge.condition))
