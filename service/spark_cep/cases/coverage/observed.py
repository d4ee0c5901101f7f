"""Matchers of keys that note what events take of rules.

Events are handed to the matcher one time after the other, and what it remembers is compared before
and after each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from spark_cep.cases.coverage.applied import AppliedEvent
from spark_cep.cases.coverage.coverage import Coverage
from spark_cep.cases.coverage.row_pattern import RowPatternCoverage
from spark_cep.cases.coverage.steps import StepCoverage
from spark_cep.compiler.plan import Plan
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning
from spark_cep.matcher.batch.events import Names
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import RuleState
from spark_cep.matcher.keys import KeysMatcher, KeysState, in_order, rule_states
from spark_cep.model import Match, Timeout
from spark_cep.pipeline.match.group_matcher import MakeMatcher


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
            StepCoverage(rule, rule.plan, coverage)
            for rule in partitioning.rules
            if isinstance(rule.plan, Plan)
        ]
        self._in_sql = [
            RowPatternCoverage(rule, plan, coverage)
            for _, rule, plan in partitioning.row_pattern_rules
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
            rules: list[StepCoverage | RowPatternCoverage] = [*self._of_steps, *self._in_sql]
            for rule in rules:
                for result in results:
                    rule.result(result)
            yield each

    def _states(self, state: KeysState, names: Names) -> Mapping[tuple[str | None, int], RuleState]:
        return {(key, rule): mine for key, rule, mine in rule_states(state, names, ())}

    @staticmethod
    def _seen(events: InputBatch, names: Names) -> Iterator[AppliedEvent]:
        event = events.events.objects(names, ())
        for row in range(len(events)):
            one = event(row)
            key = events.keys.text(int(events.key[row]))
            yield AppliedEvent(one.at, one.time, key, events.masks[int(events.mask[row])])
