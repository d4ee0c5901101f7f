"""Matchers of keys that note what events take of rules, for :mod:`~spark_cep.cases.coverage`.

Events are handed to the matcher one time after the other, and what it remembers is compared before
and after each. Edges, and the answers of conditions that look back, are those with which the plan's
own transitions give what the matcher did: where several are possible, none is noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spark_cep.cases.coverage import CONDITION, EDGE, STEP, Coverage, Item, row_conditions
from spark_cep.compiler.plan import Plan, StateKind
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.compiler.row_pattern.program import Label
from spark_cep.compiler.rule_set import Partitioning, PlannedRule
from spark_cep.matcher.batch.events import Names
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.findings.live import PartialMatch
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import MATCHED, RuleState, Taken
from spark_cep.matcher.keys import KeysMatcher, KeysState, in_order, rule_states
from spark_cep.matcher.steps.transitions import PASS, Outcome, Transitions
from spark_cep.model import Coordinates, Match, Timeout
from spark_cep.pipeline.match.group_matcher import MakeMatcher

#: The events of a partial match or match, with the steps that took them.
_Chain = frozenset[tuple[str, Coordinates]]
#: A partial match: its events, and the number of its state.
_Standing = tuple[_Chain, int]
#: Of so many conditions that look back at one event, all combinations of answers are tried.
_MOST_TRIED = 10


def observing(coverage: Coverage) -> MakeMatcher:
    """Return what makes matchers that note into ``coverage``."""

    def make(partitioning: Partitioning, types: RecordTypes) -> KeysMatcher:
        return ObservedKeys(partitioning, types, coverage)

    return make


class ObservedKeys(KeysMatcher):
    """A matcher of keys that notes what events take. Its results are those of any other."""

    def __init__(self, partitioning: Partitioning, types: RecordTypes, coverage: Coverage) -> None:
        super().__init__(partitioning, types)
        self._of_steps = [
            _StepRule(rule, rule.plan, coverage)
            for rule in partitioning.rules
            if isinstance(rule.plan, Plan)
        ]
        self._in_sql = [
            _SqlRule(rule, plan, coverage) for _, rule, plan in partitioning.row_pattern_rules
        ]

    def advance(
        self, state: KeysState, batch: InputBatch, watermark: int, names: Names
    ) -> Iterator[Outputs]:
        """See :meth:`KeysMatcher.advance <spark_cep.matcher.keys.KeysMatcher.advance>`."""
        for events in self._cut(batch, names):
            yield from self._apply(state, events, names)
        yield from self._noting(super().advance(state, InputBatch(), watermark, names), [])

    def _cut(self, batch: InputBatch, names: Names) -> Iterator[InputBatch]:
        """The events one by one; with rules in SQL, which may order rows of one time by columns,
        time by time."""
        rows = in_order(batch.events, np.zeros(len(batch), np.int64), names)
        if not self._in_sql:
            yield from (batch.take(rows[place : place + 1]) for place in range(len(rows)))
            return
        times = batch.events.time[rows]
        for cut in np.split(rows, np.flatnonzero(np.diff(times)) + 1) if len(rows) else ():
            yield batch.take(cut)

    def _apply(self, state: KeysState, events: InputBatch, names: Names) -> Iterator[Outputs]:
        time = int(events.events.time[0])
        if not self._in_sql:
            # Deadlines that the event's time reaches are decided before it.
            yield from self._noting(super().advance(state, InputBatch(), time, names), [])
        seen = list(self._seen(events, names))
        before = self._states(state, names)
        live = list(self._row_patterns.live(state.row_patterns, state.events, state.keys, names))
        found: list[Outputs] = []
        yield from self._noting(super().advance(state, events, time, names), found)
        after = self._states(state, names)
        for event in seen:
            for number, rule in enumerate(self._of_steps):
                rule.conditions(event)
                here = event.key, number
                if len([other for other in seen if other.key == event.key]) == 1:
                    rule.moves(event, before.get(here), after.get(here), found)
        lives = list(self._row_patterns.live(state.row_patterns, state.events, state.keys, names))
        for in_sql in self._in_sql:
            for event in seen:
                in_sql.conditions(event)
                in_sql.rows(event, live, lives, found)

    def _noting(self, outputs: Iterable[Outputs], found: list[Outputs]) -> Iterator[Outputs]:
        """Yield outputs, and note what matches and timeouts have taken."""
        for each in outputs:
            objects = each.as_objects()
            found.append(objects)
            results: list[Match | Timeout] = [*objects.matches, *objects.timeouts]
            rules: list[_StepRule | _SqlRule] = [*self._of_steps, *self._in_sql]
            for rule in rules:
                for result in results:
                    rule.result(result)
            yield each

    def _states(self, state: KeysState, names: Names) -> Mapping[tuple[str | None, int], RuleState]:
        return {(key, rule): mine for key, rule, mine in rule_states(state, names, ())}

    @staticmethod
    def _seen(events: InputBatch, names: Names) -> Iterator[_Seen]:
        event = events.events.objects(names, ())
        for row in range(len(events)):
            one = event(row)
            key = events.keys.text(int(events.key[row]))
            yield _Seen(one.at, one.time, key, events.masks[int(events.mask[row])])


@dataclass(frozen=True, slots=True)
class _Seen:
    """An event as it is applied, and the conditions that are true of it."""

    at: Coordinates
    time: int
    key: str | None
    mask: int


class _StepRule:
    """A rule of steps, and what is noted of it."""

    def __init__(self, rule: PlannedRule, plan: Plan, coverage: Coverage) -> None:
        self._rule, self._plan = rule, plan
        self._taken = coverage.of(plan).taken
        self._transitions = Transitions(plan)

    def conditions(self, event: _Seen) -> None:
        """Note the answers of the conditions on the event alone."""
        if event.mask >> self._rule.input_bit & 1:
            for number, bit in enumerate(self._rule.bits):
                self._taken[Item(CONDITION, number, event.mask >> bit & 1)] += 1

    def result(self, result: Match | Timeout) -> None:
        """Note the steps of a match or timeout."""
        if _of(result, self._plan):
            for step in result.steps:
                self._taken[Item(STEP, self._plan.steps.index(step))] += 1

    def moves(
        self,
        event: _Seen,
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
        event: _Seen,
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
        event: _Seen,
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
        event: _Seen,
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
    def of(cls, plan: Plan, event: _Seen, state: RuleState, found: Iterable[Outputs]) -> _After:
        """The state and matches behind ``event``."""
        standing = {(_chain(plan, each.last), each.state) for each in state.partials}
        completed = {_chain(plan, each.last) for each in state.finished}
        pruned = bool(state.finished)
        for outputs in found:
            for match in outputs.matches:
                if _of(match, plan) and match.key == event.key:
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


def _of(result: Match | Timeout, plan: Plan | RowPatternPlan) -> bool:
    return (result.rule_id, result.rule_version) == (plan.rule.id, plan.rule.version)


class _SqlRule:
    """A rule in SQL, and what is noted of it."""

    def __init__(self, rule: PlannedRule, plan: RowPatternPlan, coverage: Coverage) -> None:
        self._rule, self._plan = rule, plan
        self._taken = coverage.of(plan).taken
        alone = len([atom for atom in plan.event_atoms if atom.expression is not None])
        #: The conditions that read other rows, too: number and variable.
        self._others = {
            variable: number
            for number, (variable, _) in enumerate(row_conditions(plan))
            if number >= alone
        }

    def conditions(self, event: _Seen) -> None:
        """Note the answers of the conditions on the row alone."""
        if event.mask >> self._rule.input_bit & 1:
            for number, bit in enumerate(self._rule.bits):
                self._taken[Item(CONDITION, number, event.mask >> bit & 1)] += 1

    def result(self, result: Match | Timeout) -> None:
        """Note the variables of a match or timeout."""
        if _of(result, self._plan):
            self._note(result.steps)

    def _note(self, variables: Iterable[str]) -> None:
        for variable in variables:
            self._taken[Item(STEP, self._plan.steps.index(variable))] += 1
            if variable in self._others:
                self._taken[Item(CONDITION, self._others[variable], 1)] += 1

    def rows(
        self,
        event: _Seen,
        before: Iterable[PartialMatch],
        after: Iterable[PartialMatch],
        found: Iterable[Outputs],
    ) -> None:
        """Note the variables that took the row, and those that could have and did not."""
        known = [each for each in before if self._is_mine(each, event)]
        now = [each for each in after if self._is_mine(each, event)]
        for each in now:
            self._note(each.steps)
        matched = any(_of(match, self._plan) for outputs in found for match in outputs.matches)
        if matched or any(each.held_back for each in (*known, *now)):
            # Less preferred ways go unseen.
            return
        failed: set[str] = set()
        begun = _events(known)
        in_time = all(each.deadline is None or each.deadline > event.time for each in known)
        if known and in_time and not begun & _events(now):
            # The attempt is over: the row was none of those that it waited for.
            failed |= {variable for each in known for variable in each.waits_for}
        if event.at not in _events(now):
            failed |= self._first
        for variable in failed & self._others.keys():
            self._taken[Item(CONDITION, self._others[variable], 0)] += 1

    def _is_mine(self, each: PartialMatch, event: _Seen) -> bool:
        return each.rule_id == self._plan.rule.id and each.key == event.key

    @cached_property
    def _first(self) -> set[str]:
        """The variables that a match may begin with."""
        program = self._plan.program
        todo, seen, found = [0], {0}, set[str]()
        while todo:
            at = todo.pop()
            instruction = program.instructions[at]
            if isinstance(instruction, Label):
                found.add(program.variables[instruction.variable])
                continue
            todo += [each for each in program.successors(at) if each not in seen]
            seen.update(todo)
        return found


def _events(several: Iterable[PartialMatch]) -> set[Coordinates]:
    """The events that partial matches have taken."""
    return {event.at for each in several for taken in each.steps.values() for event in taken}
