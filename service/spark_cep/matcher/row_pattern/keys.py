"""The rules of a partitioning that are in SQL, applied to many keys at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import replace
from time import perf_counter_ns

import numpy as np

from spark_cep.columns.compilation import FOREVER, I64, Table
from spark_cep.columns.vectors import Bytes, Flags
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.compiler.rule_set import Partitioning
from spark_cep.matcher.batch.events import EventTable, Names
from spark_cep.matcher.engine import NewEvents
from spark_cep.matcher.findings.live import PartialMatch, live_attempt
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import END_OF_TIME
from spark_cep.matcher.row_pattern.instances import (
    INSTANCE,
    ROW,
    RowPatternInstances,
    instances_together,
)
from spark_cep.matcher.row_pattern.loops.tables import CLOSED, KEY
from spark_cep.matcher.row_pattern.lowering import RowPatternLimits
from spark_cep.matcher.row_pattern.matcher import CompiledRowPattern, RowPatternLoopRun
from spark_cep.matcher.row_pattern.reporting import RowPatternReporter
from spark_cep.matcher.row_pattern.row_order import RowOrder
from spark_cep.matcher.row_pattern.states import RowPatternStates, attempts


class RowPatternRules:
    """The rules in SQL of one partitioning. Holds no state."""

    def __init__(self, partitioning: Partitioning) -> None:
        self.rules = [
            _Rule(number, plan, partitioning) for number, _, plan in partitioning.row_pattern_rules
        ]

    def live(
        self, state: RowPatternInstances, events: EventTable, keys: Bytes, names: Names
    ) -> Iterator[PartialMatch]:
        """The attempts under way, rule by rule and key by key."""
        for rule in self.rules:
            mine = state.of_instances(state.instances["rule"] == rule.number)
            yield from rule.live(mine, events, keys, names)

    def run(
        self, state: RowPatternInstances, fresh: NewEvents, watermark: int, names: Names
    ) -> Generator[Outputs, None, RowPatternInstances]:
        """See :class:`~spark_cep.matcher.engine.Engine`."""
        if not self.rules:
            return RowPatternInstances()
        parts = []
        for rule in self.rules:
            parts += yield from _timed(rule, rule.run(state, fresh, watermark, names))
        instances = instances_together(parts)
        order = np.lexsort((instances.instances["rule"], instances.instances["key"]))
        return instances if (np.diff(order) == 1).all() else instances.take(order)


def _timed(
    rule: _Rule, run: Generator[Outputs, None, list[RowPatternInstances]]
) -> Generator[Outputs, None, list[RowPatternInstances]]:
    """Hand on what a rule finds, and last the time that it took, without the caller's."""
    spent, began = 0, perf_counter_ns()
    while True:
        try:
            outputs = next(run)
        except StopIteration as end:
            yield Outputs(spent=Counter({rule.id: spent + perf_counter_ns() - began}))
            parts: list[RowPatternInstances] = end.value
            return parts
        spent += perf_counter_ns() - began
        yield outputs
        began = perf_counter_ns()


def _read(instances: RowPatternInstances, wanted: Flags) -> RowPatternInstances:
    """Return the wanted instances, to be read alone: a copy of many rows takes long, so there is
    none where all are wanted."""
    return instances if wanted.all() else instances.of_instances(wanted)


class _Rule:
    """One rule, bound to the columns of its partitioning."""

    def __init__(self, number: int, plan: RowPatternPlan, partitioning: Partitioning) -> None:
        self.number, self.id, self._plan = number, plan.rule.id, plan
        self._partitioning = partitioning
        self._effective_from = plan.rule.effective_from_ms
        limits = plan.rule.limits
        self._matcher = CompiledRowPattern(
            plan, RowPatternLimits(limits.events, limits.partial_matches, limits.work)
        )
        self._reporter = RowPatternReporter(plan)
        places = {
            slot.path: place
            for place, slot in enumerate(partitioning.slots)
            if slot.events == plan.rule.events and slot.of_type is None
        }
        self._places = [places[path] for path in plan.columns]
        ties = [
            (places[each.path], each.descending, each.nulls_first) for each in plan.query.order[1:]
        ]
        #: The order of rows of equal time.
        self.row_order = RowOrder(ties)
        atoms = {atom.expression: 1 << place for place, atom in enumerate(plan.event_atoms)}
        self._bits = [(atoms[each], 1 << bit) for bit, each in enumerate(self._matcher.row_bits)]

    def run(
        self, state: RowPatternInstances, fresh: NewEvents, watermark: int, names: Names
    ) -> Generator[Outputs, None, list[RowPatternInstances]]:
        """Yield what is found in the new events, and by deadlines; returns what is remembered, in
        parts."""
        mine = _read(state, state.instances["rule"] == self.number)
        rows, bits = self.rows(fresh)
        due = mine.instances["due"] <= watermark
        active = np.union1d(fresh.key[rows], mine.instances["key"][due])
        runs = np.isin(mine.instances["key"], active)
        parts = [mine.of_instances(~runs)]
        if len(active):
            known = _read(mine, runs)
            parts.append(
                (yield from self.advance(known, active, fresh, rows, bits, watermark, names))
            )
        if len(rows):
            outputs = Outputs()
            self._reporter.count({"events": len(rows)}, outputs)
            yield outputs
        return parts

    def rows(self, fresh: NewEvents) -> tuple[I64, I64]:
        """Return the new events that the rule reads, in their order, and the bits of each. Events
        before its `effective_from` are not among its rows."""
        masks = [self._row_bits(mask) for mask in fresh.masks]
        read = np.array([bits is not None for bits in masks], bool)
        bits = np.array([bits or 0 for bits in masks], np.int64)
        if not read.any():
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        rows = np.flatnonzero(read[fresh.mask])
        if self._effective_from is not None:
            rows = rows[fresh.events.time[fresh.held + rows] >= self._effective_from]
        rows = self.row_order.of(rows, fresh)
        return rows, bits[fresh.mask[rows]]

    def advance(
        self,
        known: RowPatternInstances,
        active: I64,
        fresh: NewEvents,
        rows: I64,
        bits: I64,
        watermark: int,
        names: Names,
    ) -> Generator[Outputs, None, RowPatternInstances]:
        """Yield what is found of the keys that are ``active``; returns what is remembered of them.
        ``known``: what was; ``rows`` and ``bits``: those of :meth:`rows`."""
        closed = watermark >= END_OF_TIME
        # Those that are known come first.
        keys = np.concatenate(
            [known.instances["key"], np.setdiff1d(active, known.instances["key"])]
        )
        number = np.argsort(keys, kind="stable")
        key = number[np.searchsorted(keys[number], fresh.key[rows])]
        new = np.zeros(len(rows), ROW)
        new["event"], new["bits"], new["micros"] = fresh.held + rows, bits, fresh.micros[rows]
        run = RowPatternLoopRun(
            self._matcher, states_of(known), self._columns_of(fresh.events), new, key, watermark,
            names, closed=closed,
        )  # fmt: skip
        for found in run:
            yield from self._reporter.outputs(found, fresh.keys.take(keys))
        if closed:
            return RowPatternInstances()
        return self._instances(run.states, keys, fresh.events.time)

    def _row_bits(self, mask: int) -> int | None:
        """The bits of a row of which these conditions are true; ``None`` where the rule does not
        read it."""
        own = self._partitioning.own_bits(self.number, mask)
        if own is None:
            return None
        closed = CLOSED if own & self._plan.closed else 0
        return closed | sum(bit for atom, bit in self._bits if own & atom)

    def _columns_of(self, events: EventTable) -> EventTable:
        """Events with the columns of the plan."""
        columns = None
        if events.columns is not None:
            columns = [events.columns[place] for place in self._places]
        return replace(events, columns=columns, payload=None)

    def _instances(self, states: RowPatternStates, keys: I64, times: I64) -> RowPatternInstances:
        """The instances of states, but for those of which nothing counts any more. ``keys``: by
        state; ``times``: those of events."""
        instances = np.zeros(len(states.keys), INSTANCE)
        for name in KEY.names or ():
            instances[name] = states.keys[name]
        instances["key"], instances["rule"] = keys, self.number
        under_way = states.keys["attempt"] != 0
        deadlines = self._matcher.deadlines(states, times)
        open_ended = under_way & (deadlines == FOREVER)
        instances["due"] = np.where(open_ended, END_OF_TIME, deadlines)
        whole = RowPatternInstances(
            instances, states.threads, states.nodes, states.rows, states.tried
        )
        return whole if self._plan.remembers else _read(whole, under_way)

    def live(
        self,
        instances: RowPatternInstances,
        events: EventTable,
        keys: Bytes,
        names: Names,
    ) -> Iterator[PartialMatch]:
        """The attempts of some instances."""
        states = states_of(instances)
        deadlines = self._matcher.deadlines(states, events.time).tolist()
        event = events.objects(names, ())
        numbers = states.rows["event"].tolist()
        for attempt in attempts(states):
            key = keys.text(int(instances.instances["key"][attempt.key]))
            deadline = deadlines[attempt.key]
            taken = [event(each) for each in numbers[attempt.row :][: attempt.rows]]
            yield from live_attempt(
                self._plan, key, taken, attempt.threads, attempt.found,
                None if deadline == FOREVER else deadline,
            )  # fmt: skip


def states_of(known: RowPatternInstances) -> RowPatternStates:
    """The states of instances as the matcher has them."""
    keys: Table = np.zeros(len(known), KEY)
    for name in KEY.names or ():
        keys[name] = known.instances[name]
    return RowPatternStates(keys, known.threads, known.nodes, known.rows, known.tried)
