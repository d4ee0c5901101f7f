"""From a graph of nodes to an immutable plan: numbering, deadlines by gap, strictness."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from service.compiler.conditions import AtomTable
from service.compiler.formula import Formula
from service.compiler.nodes import Node
from service.compiler.plan import Action, AnyAtom, Edge, GapAtom, Kind, Plan, State
from service.pattern.tree import Rule, walk


def assemble(rule: Rule, start: Node, table: AtomTable) -> Plan:
    """The plan of ``rule`` whose construction begins at ``start``."""
    order: dict[Node, int] = {start: 0}
    queue = deque([start])
    while queue:
        for edge in queue.popleft().edges:
            if edge.target not in order:
                order[edge.target] = len(order)
                queue.append(edge.target)
    seen: dict[str, int] = {}
    states = []
    atoms, renumber = table.ordered()
    for node, number in order.items():
        repetition = seen.get(node.step, 0)
        seen[node.step] = repetition + 1
        edges = tuple(
            Edge(edge.action, order[edge.target], renumber(edge.condition)) for edge in node.edges
        )
        label = node.step or "(match)"
        if repetition and node.kind in (Kind.START, Kind.NORMAL):
            label += f":{repetition}"
        states.append(State(number, label, node.kind, node.step, edges, None))
    states = [replace(state, gap_ms=_deadline_gap(rule, state, states, atoms)) for state in states]
    everything = tuple(walk(rule.pattern))
    return Plan(
        rule=rule,
        states=tuple(states),
        start=0,
        atoms=atoms,
        relevant=renumber(table.relevance()),
        strict=not all(_lets_pass(state, states) for state in states),
        steps=tuple(s.name for s in everything if s.group is None and not s.negative),
        step_types=tuple((s.name, s.of_type) for s in everything if s.group is None),
    )


def _deadline_gap(
    rule: Rule, state: State, states: list[State], atoms: tuple[AnyAtom, ...]
) -> int | None:
    """The gap after which nothing can be taken from ``state`` any more."""
    if state.kind in (Kind.START, Kind.FINAL, Kind.STOP):
        return None
    gaps: list[int] = [] if (whole := rule.within.gap_ms) is None else [whole]
    repetition_gaps: list[int] = []
    takes = 0
    todo, reached = [state.number], {state.number}
    while todo:
        for edge in states[todo.pop()].edges:
            target = states[edge.target]
            if edge.action is Action.PROCEED and target.kind is not Kind.STOP:
                if target.number not in reached:
                    reached.add(target.number)
                    todo.append(target.number)
                if target.kind is Kind.FINAL:
                    continue
            elif edge.action is Action.TAKE:
                takes += 1
                repetition_gaps += [
                    atom.gap_ms
                    for number, atom in enumerate(atoms)
                    if isinstance(atom, GapAtom) and edge.condition.atoms() >> number & 1
                ]
    if takes and len(repetition_gaps) == takes:
        gaps.append(max(repetition_gaps))
    return min(gaps, default=None)


def _lets_pass(state: State, states: list[State]) -> bool:
    """Whether an event on which no condition is true changes nothing for a partial match here.

    It may move the match, but only to a state that takes the same events to the same places.
    """
    if state.kind in (Kind.START, Kind.FINAL, Kind.STOP):
        return True
    takes = _takes(state)
    stops = any(states[edge.target].kind is Kind.STOP for edge in state.edges)
    if not takes and not stops and state.kind is not Kind.PENDING:
        return all(edge.action is Action.PROCEED for edge in state.edges)
    return any(
        edge.action is Action.IGNORE
        and edge.condition.evaluate(0)
        and _takes(states[edge.target]) == takes
        and states[edge.target].kind is not Kind.FINAL
        for edge in state.edges
    )


def _takes(state: State) -> set[tuple[int, Formula]]:
    return {(e.target, e.condition) for e in state.edges if e.action is Action.TAKE}
