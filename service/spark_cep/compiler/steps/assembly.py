"""From a graph of nodes to an immutable plan: numbering, deadlines by gap, strictness."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

from spark_cep.compiler.formula import All, Constant, Formula
from spark_cep.compiler.plan import Action, AnyAtom, Edge, GapAtom, Plan, State, StateKind
from spark_cep.compiler.steps.conditions import AtomTable
from spark_cep.compiler.steps.nodes import Node
from spark_cep.pattern.tree import Rule, walk

#: An edge with all the conditions on the way to and along it.
_Conditional = tuple[Action, int, frozenset[Formula]]


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
    relevance = table.relevance()  # before the numbering, to which it may add
    atoms, renumber = table.ordered()
    for node, number in order.items():
        repetition = seen.get(node.step, 0)
        seen[node.step] = repetition + 1
        edges = tuple(
            Edge(edge.action, order[edge.target], renumber(edge.condition)) for edge in node.edges
        )
        label = node.step or "(match)"
        if repetition and node.kind in (StateKind.START, StateKind.NORMAL):
            label += f":{repetition}"
        states.append(State(number, label, node.kind, node.step, edges))
    states = [_with_deadlines(rule, state, states, atoms) for state in states]
    everything = tuple(walk(rule.pattern))
    return Plan(
        rule=rule,
        states=tuple(states),
        start=0,
        atoms=atoms,
        relevant=renumber(relevance),
        strict=not all(lets_pass(state, states) for state in states),
        steps=tuple(s.name for s in everything if s.group is None and not s.negative),
        step_types=tuple((s.name, s.of_type) for s in everything if s.group is None),
    )


def _taking_gap(state: State, states: list[State], atoms: tuple[AnyAtom, ...]) -> int | None:
    """Return how long after its last event a partial match in ``state`` can take another one;
    ``None`` where that is unbounded."""
    longest = None
    for number, _ in _reached(state, states):
        for edge in states[number].edges:
            if edge.action is Action.TAKE:
                gaps = [
                    atom.gap_ms
                    for bit, atom in enumerate(atoms)
                    if isinstance(atom, GapAtom) and edge.condition.partial(0, 1 << bit) is False
                ]
                if not gaps:
                    return None
                longest = max(longest or 0, min(gaps))
            elif states[edge.target].kind is StateKind.FINAL and edge.action is Action.IGNORE:
                return None
    return longest


def _with_deadlines(
    rule: Rule, state: State, states: list[State], atoms: tuple[AnyAtom, ...]
) -> State:
    if state.kind in (StateKind.START, StateKind.FINAL, StateKind.STOP):
        return state
    reached = {states[number].kind for number, _ in _reached(state, states, 0)}
    absence = StateKind.PENDING in reached
    taking = _taking_gap(state, states, atoms)
    gaps = [rule.within.gap_ms, None if absence else taking]
    return replace(
        state,
        gap_ms=min((gap for gap in gaps if gap is not None), default=None),
        taking_gap_ms=taking,
        absence=absence,
    )


def lets_pass(state: State, states: Sequence[State]) -> bool:
    """Return whether an event on which no condition is true changes nothing for a partial match
    here.

    It may move the match and split it in several. What these do with any event must be what the
    match would have done with it: the same edges under the same conditions.
    """
    if state.kind in (StateKind.START, StateKind.FINAL, StateKind.STOP):
        return True
    passed: set[int] = set()
    for number, _ in _reached(state, states, 0):
        for edge in states[number].edges:
            if edge.action is Action.IGNORE and edge.condition.evaluate(0):
                passed.add(edge.target)
    if any(states[number].kind is StateKind.FINAL for number in passed):
        return False
    before = _conduct(state, states)
    after = [_conduct(states[number], states) for number in passed]
    # What is stopped ends with all its ways on, so each of several must be stopped alike.
    stops = _stopping(before, states)
    return set().union(*after) == before and all(_stopping(a, states) == stops for a in after)


def _conduct(state: State, states: Sequence[State]) -> set[_Conditional]:
    """Return every edge that a partial match in this state can follow, but a mere PROCEED, with the
    conditions on the way to it."""
    edges = set()
    for number, way in _reached(state, states):
        for edge in states[number].edges:
            if edge.action is not Action.PROCEED or states[edge.target].kind is StateKind.STOP:
                edges.add((edge.action, edge.target, way | _parts(edge.condition)))
    return edges


def _stopping(conduct: set[_Conditional], states: Sequence[State]) -> set[_Conditional]:
    return {edge for edge in conduct if states[edge[1]].kind is StateKind.STOP}


def _reached(
    state: State, states: Sequence[State], true: int | None = None
) -> Iterator[tuple[int, frozenset[Formula]]]:
    """The state and those that PROCEED leads to, with the conditions on the way; with ``true``
    only along edges whose condition holds then."""
    todo: list[tuple[int, frozenset[Formula]]] = [(state.number, frozenset())]
    seen = set(todo)
    while todo:
        number, way = todo.pop()
        yield number, way
        for edge in states[number].edges:
            if edge.action is not Action.PROCEED or states[edge.target].kind is StateKind.STOP:
                continue
            if true is not None and not edge.condition.evaluate(true):
                continue
            step = (edge.target, way | _parts(edge.condition))
            if step not in seen:
                seen.add(step)
                todo.append(step)


def _parts(condition: Formula) -> frozenset[Formula]:
    match condition:
        case All(operands):
            return frozenset(operands)
        case Constant(True):
            return frozenset()
    return frozenset((condition,))
