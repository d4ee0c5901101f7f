"""Coverage of rules of steps.

Edges, and the answers of conditions that look back, are those with which the plan's own transitions
give what the matcher did: where several are possible, none is noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from spark_cep.cases.coverage.applied import AppliedEvent, is_of
from spark_cep.cases.coverage.coverage import CONDITION, EDGE, STEP, Coverage, Item, answers
from spark_cep.compiler.plan import Plan, StateKind
from spark_cep.compiler.rule_set import PlannedRule
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import MATCHED, RuleState, Taken
from spark_cep.matcher.steps.transitions import PASS, Outcome, Transitions
from spark_cep.model import Coordinates, Match, Timeout

#: The events of a partial match or match, with the steps that took them.
_Chain = frozenset[tuple[str, Coordinates]]
#: A partial match: its events, and the number of its state.
_Standing = tuple[_Chain, int]
#: Of so many conditions that look back at one event, all combinations of answers are tried.
_MOST_TRIED = 10


class StepCoverage:
    """A rule of steps, and what is noted of it."""

    def __init__(self, rule: PlannedRule, plan: Plan, coverage: Coverage) -> None:
        self._rule, self._plan = rule, plan
        self._taken = coverage.of(plan).taken
        self._transitions = Transitions(plan)

    def conditions(self, event: AppliedEvent) -> None:
        """Note the answers of the conditions on the event alone."""
        self._taken.update(answers(self._rule, event.mask))

    def result(self, result: Match | Timeout) -> None:
        """Note the steps of a match or timeout."""
        if is_of(result, self._plan):
            for step in result.steps:
                self._taken[Item(STEP, self._plan.steps.index(step))] += 1

    def moves(
        self,
        event: AppliedEvent,
        before: RuleState | None,
        after: RuleState | None,
        found: Iterable[Outputs],
    ) -> None:
        """Note the steps that took the event, the edges that partial matches followed, and the
        answers of conditions that look back, as far as they follow from it."""
        starts = self._plan.rule.effective_from_ms
        if not event.mask >> self._rule.input_bit & 1 or (starts or event.time) > event.time:
            return
        before, after = before or RuleState(), after or RuleState()
        if before.paused or after.paused:
            return
        own = sum(1 << i for i, bit in enumerate(self._rule.bits) if event.mask >> bit & 1)
        seen = _After.of(self._plan, event, after, found)
        for chain in seen.chains:
            for step, at in chain:
                if at == event.at:
                    self._taken[Item(STEP, self._plan.steps.index(step))] += 1
        standing: dict[_Chain, list[tuple[int, bool]]] = {frozenset(): [(self._plan.start, False)]}
        for partial in before.partials:
            if partial.deadline > event.time:
                here = standing.setdefault(_chain(self._plan, partial.last), [])
                here.append((partial.state, partial.last.matched == MATCHED))
        for chain, states in standing.items():
            self._one(event, own, chain, states, seen)

    def _one(
        self,
        event: AppliedEvent,
        own: int,
        chain: _Chain,
        states: list[tuple[int, bool]],
        seen: _After,
    ) -> None:
        """Note what the branches with one chain of events did."""
        asked = 0
        for state, _ in states:
            asked |= self._transitions.conditions(state, own) if self._looks_back else 0
        bits = [bit for bit in range(len(self._plan.atoms)) if asked >> bit & 1]
        if len(bits) > _MOST_TRIED:
            return
        possible = []
        for number in range(1 << len(bits)):
            answers = sum(1 << bit for place, bit in enumerate(bits) if number >> place & 1)
            if not bits or self._is_possible(event, own | answers, chain, states, seen):
                possible.append(answers)
        if not possible:
            return
        for bit in bits:
            known = {answers >> bit & 1 for answers in possible}
            if len(known) == 1:
                self._taken[Item(CONDITION, bit, known.pop())] += 1
        followed = [
            {edge for state, _ in states for edge in self._edges(state, own | answers)}
            for answers in possible
        ]
        for item in set.intersection(*followed):
            self._taken[item] += 1

    @cached_property
    def _looks_back(self) -> bool:
        return self._transitions.looks_back

    def _edges(self, start: int, true: int) -> Iterator[Item]:
        """The edges that are followed from a state, to a match also behind what takes the event."""
        for state, place in self._transitions.followed(start, true):
            yield Item(EDGE, state.number, place)
            edge = state.edges[place]
            if self._completes(start, true, edge.target):
                for last, way in self._transitions.followed(edge.target, true):
                    if self._plan.states[last.edges[way].target].kind is StateKind.FINAL:
                        yield Item(EDGE, last.number, way)

    def _completes(self, start: int, true: int, target: int) -> bool:
        moves = self._transitions.outcome(start, true).moves
        return any(each.completes and each.step != PASS and each.target == target for each in moves)

    def _is_possible(
        self,
        event: AppliedEvent,
        true: int,
        chain: _Chain,
        states: list[tuple[int, bool]],
        seen: _After,
    ) -> bool:
        """Return whether these answers give what the matcher did."""
        stands: set[_Standing] = set()
        matches: set[_Chain] = set()
        for state, matched in states:
            outcome = self._transitions.outcome(state, true)
            self._expect(event, outcome, chain, matched, stands, matches)
        mine = {each for each in seen.standing if _begins(chain, each[0], event.at)}
        ended = {each for each in seen.completed if _begins(chain, each, event.at)}
        if seen.pruned:
            # Skip strategies, cooldown and limits take away; nothing comes from elsewhere.
            return mine <= stands and ended <= matches
        return mine == stands and ended == matches

    def _expect(
        self,
        event: AppliedEvent,
        outcome: Outcome,
        chain: _Chain,
        matched: bool,
        stands: set[_Standing],
        matches: set[_Chain],
    ) -> None:
        for move in outcome.moves:
            takes = move.step != PASS
            if not takes and not chain:
                continue
            end = chain | {(self._plan.steps[move.step], event.at)} if takes else chain
            if move.completes and (takes or not matched):
                matches.add(end)
            final = self._plan.states[move.target].kind is StateKind.FINAL
            if not outcome.stops and not final:
                stands.add((end, move.target))


@dataclass(frozen=True)
class _After:
    """The state of a rule and key behind an event, and the matches that the event completed.
    ``pruned``: some partial matches or matches were taken away."""

    standing: frozenset[_Standing]
    completed: frozenset[_Chain]
    pruned: bool

    @classmethod
    def of(
        cls, plan: Plan, event: AppliedEvent, state: RuleState, found: Iterable[Outputs]
    ) -> _After:
        """The state and matches behind ``event``."""
        standing = {(_chain(plan, each.last), each.state) for each in state.partials}
        completed = {_chain(plan, each.last) for each in state.finished}
        pruned = bool(state.finished)
        for outputs in found:
            for match in outputs.matches:
                if is_of(match, plan) and match.key == event.key:
                    completed.add(
                        frozenset((n, e.at) for n, taken in match.steps.items() for e in taken)
                    )
            taken_away = ("pruned", "dropped", "dropped_matches")
            pruned |= any(outputs.counts[plan.rule.id, what] for what in taken_away)
        pruned |= plan.rule.cooldown_ms is not None
        return cls(frozenset(standing), frozenset(completed), pruned)

    @property
    def chains(self) -> set[_Chain]:
        """The events of all of them."""
        return {chain for chain, _ in self.standing} | self.completed


def _begins(chain: _Chain, other: _Chain, at: Coordinates) -> bool:
    """Return whether ``other`` is the chain, or the chain with the event ``at`` behind it."""
    more = [taken for _, taken in other - chain]
    return bool(other) and chain <= other and more in ([], [at])


def _chain(plan: Plan, last: Taken) -> _Chain:
    return frozenset((plan.steps[each.step], each.event.at) for each in last.chain())
