"""Coverage of rules in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from spark_cep.cases.coverage.applied import AppliedEvent, is_of
from spark_cep.cases.coverage.coverage import (
    CONDITION,
    EDGE,
    STEP,
    Coverage,
    Item,
    answers,
    row_conditions,
)
from spark_cep.cases.coverage.row_edges import edges_taken, row_edges
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.compiler.rule_set import PlannedRule
from spark_cep.matcher.findings.live import PartialMatch
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.model import Coordinates, Event, Match, TakenEvent, Timeout


class RowPatternCoverage:
    """A rule in SQL, and what is noted of it."""

    def __init__(self, rule: PlannedRule, plan: RowPatternPlan, coverage: Coverage) -> None:
        self._rule, self._plan = rule, plan
        self._taken = coverage.of(plan).taken
        self._edges = {edge: number for number, edge in enumerate(row_edges(plan))}
        alone = len([atom for atom in plan.event_atoms if atom.expression is not None])
        #: The conditions that read other rows, too: number and variable.
        self._others = {
            variable: number
            for number, (variable, _) in enumerate(row_conditions(plan))
            if number >= alone
        }

    def conditions(self, event: AppliedEvent) -> None:
        """Note the answers of the conditions on the row alone."""
        self._taken.update(answers(self._rule, event.mask))

    def result(self, result: Match | Timeout) -> None:
        """Note the variables and edges of a match or timeout."""
        if is_of(result, self._plan):
            self._note(result.steps, matched=isinstance(result, Match))

    def _note(
        self, steps: Mapping[str, Sequence[Event | TakenEvent]], *, matched: bool = False
    ) -> None:
        for variable in steps:
            self._taken[Item(STEP, self._plan.steps.index(variable))] += 1
            if variable in self._others:
                self._taken[Item(CONDITION, self._others[variable], 1)] += 1
        for edge in edges_taken(steps, matched=matched):
            if edge in self._edges:
                self._taken[Item(EDGE, self._edges[edge])] += 1

    def rows(
        self,
        event: AppliedEvent,
        before: Iterable[PartialMatch],
        after: Iterable[PartialMatch],
        found: Iterable[Outputs],
    ) -> None:
        """Note the variables that took the row, and those that could have and did not."""
        known = [each for each in before if self._is_mine(each, event)]
        now = [each for each in after if self._is_mine(each, event)]
        for each in now:
            self._note(each.steps)
        matched = any(is_of(match, self._plan) for outputs in found for match in outputs.matches)
        if matched or any(each.held_back for each in (*known, *now)):
            # Less preferred ways go unseen.
            return
        failed: set[str | None] = set()
        begun = _events(known)
        in_time = all(each.deadline is None or each.deadline > event.time for each in known)
        if known and in_time and not begun & _events(now):
            # The attempt is over: the row was none of those that it waited for.
            failed |= {variable for each in known for variable in each.waits_for}
        if event.at not in _events(now):
            failed |= self._first
        for variable, number in self._others.items():
            if variable in failed:
                self._taken[Item(CONDITION, number, 0)] += 1

    def _is_mine(self, each: PartialMatch, event: AppliedEvent) -> bool:
        return each.rule_id == self._plan.rule.id and each.key == event.key

    @cached_property
    def _first(self) -> set[str | None]:
        """The variables that a match may begin with."""
        return {variable for begin, variable in self._edges if begin is None}


def _events(several: Iterable[PartialMatch]) -> set[Coordinates]:
    """The events that partial matches have taken."""
    return {event.at for each in several for taken in each.steps.values() for event in taken}
