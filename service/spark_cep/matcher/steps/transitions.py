"""The plan's edges, resolved once per (state, truth of conditions) and remembered.

Following PROCEED edges and testing conditions depends on nothing but the state and which atoms are
true, so the answer is tabled: the machine then does one dictionary look-up per partial match and
event, however deep groups and options nest. The tables hold what has occurred, up to a bound.

The resolution is Flink's (``NFA.createDecisionGraph``, ``findFinalStateAfterProceed``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from spark_cep.compiler.plan import Action, Plan, State, StateKind

_MOST_ENTRIES = 65_536


#: The step number of a move that does not take the event.
PASS = -1


class Move(NamedTuple):
    """A way on: take the event for step number ``step``, or let it pass, and go to ``target``.
    ``completes``: that is a match."""

    step: int
    target: int
    completes: bool


class Outcome(NamedTuple):
    """The effect of one event on one partial match.

    ``moves``: each becomes a branch of its own. Their order is that of Flink's edges: of matches
    with one start that are found at once, a skip strategy lets the first go first. ``takes``: some
    move takes the event. ``stops``: a NOT step was violated, nothing goes on. ``unchanged``: it
    stays exactly as it is.
    """

    moves: tuple[Move, ...]
    takes: bool
    stops: bool
    unchanged: bool


_NO_START = Outcome((), takes=False, stops=False, unchanged=True)


class Transitions:
    """Tabled transitions of one plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._steps = {name: number for number, name in enumerate(plan.steps)}
        self._outcomes: list[dict[int, Outcome]] = [{} for _ in plan.states]
        self._conditions: list[dict[int, int]] = [{} for _ in plan.states]
        self.looks_back = len(plan.event_atoms) < len(plan.atoms)

    def outcome(self, state: int, true: int) -> Outcome:
        """Return the effect in ``state`` when exactly the atoms of mask ``true`` are true; with the
        plan's ``closed`` bit nothing starts."""
        table = self._outcomes[state]
        found = table.get(true)
        if found is None:
            if len(table) >= _MOST_ENTRIES:
                table.clear()
            found = table[true] = self._resolve(state, true)
        return found

    def conditions(self, state: int, event_bits: int) -> int:
        """Mask of the look-back and gap atoms that the event's own bits leave open."""
        table = self._conditions[state]
        found = table.get(event_bits)
        if found is None:
            if len(table) >= _MOST_ENTRIES:
                table.clear()
            found = table[event_bits] = self._open_conditions(state, event_bits)
        return found

    def _resolve(self, start: int, true: int) -> Outcome:
        if true & self._plan.closed and start == self._plan.start:
            # Nothing leads back here, so this is the match that would start.
            return _NO_START
        states = self._plan.states
        moves: dict[Move, None] = {}
        stops = False
        for state, place in self.followed(start, true):
            edge = state.edges[place]
            target = states[edge.target]
            if edge.action is Action.TAKE:
                completes = self._reaches_match(edge.target, true)
                moves[Move(self._steps[state.step], edge.target, completes)] = None
            elif target.kind is StateKind.STOP:
                stops = True
            elif edge.action is Action.IGNORE:
                moves[Move(PASS, edge.target, target.kind is StateKind.FINAL)] = None
        unchanged = not stops and tuple(moves) == (Move(PASS, start, completes=False),)
        takes = any(move.step != PASS for move in moves)
        return Outcome(tuple(moves), takes, stops, unchanged)

    def followed(self, start: int, true: int) -> Iterator[tuple[State, int]]:
        """Yield the edges that an event follows from a state, behind those of PROCEED too: each as
        its state and its place there."""
        states = self._plan.states
        todo, seen = [start], {start}
        while todo:
            state = states[todo.pop()]
            for place, edge in enumerate(state.edges):
                if not edge.condition.evaluate(true):
                    continue
                yield state, place
                if edge.action is Action.PROCEED and edge.target not in seen:
                    seen.add(edge.target)
                    todo.append(edge.target)

    def _reaches_match(self, start: int, true: int) -> bool:
        states = self._plan.states
        return states[start].kind is StateKind.FINAL or any(
            state.edges[place].action is Action.PROCEED
            and states[state.edges[place].target].kind is StateKind.FINAL
            for state, place in self.followed(start, true)
        )

    def _open_conditions(self, start: int, event_bits: int) -> int:
        known = self._plan.event_mask
        asked = 0
        todo, seen = [start], {start}
        while todo:
            for edge in self._plan.states[todo.pop()].edges:
                decided = edge.condition.partial(event_bits, known)
                if decided is False:
                    continue
                if decided is None:
                    asked |= edge.condition.atoms() & ~known
                if edge.action is not Action.IGNORE and edge.target not in seen:
                    # Behind a TAKE only the way to a match is asked for; asking for a little
                    # more than that is harmless.
                    seen.add(edge.target)
                    todo.append(edge.target)
        return asked
