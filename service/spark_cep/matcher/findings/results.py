"""Matches and timeouts as columns, for those that write many of them at once.

What :class:`spark_cep.matcher.findings.outputs.Reporter` makes object by object is here in arrays:
coordinates of events, and measures. Rules of steps that emit anything but coordinates are not among
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_cep.columns.compilation import I32, I64
from spark_cep.columns.vectors import Bytes, Rows, Vector, reader
from spark_cep.compiler.plan import Plan
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.match_ids import match_id
from spark_cep.matcher.batch.events import EventTable, Names
from spark_cep.matcher.findings.chains import Chains
from spark_cep.model import Match, TakenEvent, Timeout
from spark_cep.pattern.types import SqlType

#: The step of the row that a match stands before which takes none; it is in the match's id.
NOTHING_TAKEN = ""


class ResultKind(Enum):
    """The kind of results in a table."""

    MATCH = "match"
    TIMEOUT = "timeout"


class Measured(NamedTuple):
    """A measure of each row: its name, and its values, which are of this type."""

    name: str
    values: Vector
    kind: SqlType | None

    def take(self, rows: Rows) -> Measured:
        """The measure of some rows."""
        return self._replace(values=self.values.take(rows))


@dataclass(frozen=True, slots=True)
class Results:
    """Matches, or timeouts, one row each.

    ``rule`` and ``key`` are places in ``plans`` and ``keys``. ``time`` is that of a match, the
    deadline of a timeout; ``already_matched`` is a timeout's. The events taken by row ``i`` are
    rows ``ends[i - 1]`` to ``ends[i]`` of ``step`` (places in the plan's steps, ascending) and
    ``events``, those of a step in the order taken. A match of a row pattern that takes no row has
    the one that it stands before, under a step behind the last. ``measures`` are those of all
    ``plans``.
    """

    kind: ResultKind
    plans: Sequence[Plan | RowPatternPlan]
    keys: Bytes
    names: Names
    rule: I32
    key: I64
    time: I64
    already_matched: NDArray[np.uint8]
    ends: I64
    step: I32
    events: EventTable
    measures: Sequence[Measured] = ()

    @classmethod
    def of(
        cls,
        kind: ResultKind,
        plans: Sequence[Plan | RowPatternPlan],
        keys: Bytes,
        names: Names,
        rule: I32,
        key: I64,
        time: I64,
        already_matched: NDArray[np.uint8],
        chains: Chains,
        events: EventTable,
        measures: Sequence[Measured] = (),
    ) -> Results:
        """Make results of findings, with the events of ``chains`` out of all ``events``."""
        step, row = chains.steps, chains.events.astype(np.int64)
        owner = np.repeat(np.arange(len(rule)), np.diff(chains.ends, prepend=0))
        # Chains are in the order taken, which may go back to an earlier step.
        place = owner * (int(step.max(initial=0)) + 1) + step
        if (place[1:] < place[:-1]).any():
            order = np.argsort(place, kind="stable")
            step, row = step[order], row[order]
        return cls(
            kind, plans, keys, names, rule, key, time, already_matched, chains.ends, step,
            replace(events, columns=None, payload=None).take(row), measures,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.rule)

    @property
    def starts(self) -> I64:
        """Event time of each row's first event."""
        if not len(self):
            return np.zeros(0, np.int64)
        firsts = np.concatenate([[0], self.ends[:-1]])
        return np.minimum.reduceat(self.events.time, firsts)

    def cut(self, most_events: int) -> Iterator[Results]:
        """In pieces that hold so many events at most, but for a single row with more."""
        cuts = [0]
        while cuts[-1] < len(self):
            held = int(self.ends[cuts[-1] - 1]) if cuts[-1] else 0
            end = int(np.searchsorted(self.ends, held + most_events, "right"))
            cuts.append(max(end, cuts[-1] + 1))
        for start, end in pairwise(cuts):
            yield self._rows(start, end)

    def _rows(self, start: int, end: int) -> Results:
        if (start, end) == (0, len(self)):
            return self
        first = int(self.ends[start - 1]) if start else 0
        rows, taken = slice(start, end), slice(first, int(self.ends[end - 1]))
        return Results(
            self.kind, self.plans, self.keys, self.names, self.rule[rows], self.key[rows],
            self.time[rows], self.already_matched[rows], self.ends[rows] - first,
            self.step[taken], self.events.take(taken), [each.take(rows) for each in self.measures],
        )  # fmt: skip

    def result(self, row: int) -> Match | Timeout:
        """One of them as an object."""
        plan, key = self.plans[self.rule[row]], self.keys.text(int(self.key[row]))
        first = int(self.ends[row - 1]) if row else 0
        names = step_names(plan)
        steps: dict[str, list[TakenEvent]] = {}
        taken_event = self.events.objects(self.names, ())
        for at in range(first, int(self.ends[row])):
            event = taken_event(at)
            taken = TakenEvent(event.at, event.time, type=event.type)
            steps.setdefault(names[self.step[at]], []).append(taken)
        common: dict[str, Any] = {
            "match_id": match_id(plan.rule.id, plan.rule.version, key, steps),
            "rule_id": plan.rule.id,
            "rule_version": plan.rule.version,
            "key": key,
            "start": min(event.time for events in steps.values() for event in events),
            "steps": {name: events for name, events in steps.items() if name != NOTHING_TAKEN},
            "measures": {each.name: reader(each.values, each.kind)(row) for each in self.measures},
        }
        time = int(self.time[row])
        if self.kind is ResultKind.MATCH:
            return Match(**common, time=time)
        matched = bool(self.already_matched[row])
        return Timeout(**common, deadline=time, already_matched=matched)


def step_names(plan: Plan | RowPatternPlan) -> tuple[str, ...]:
    """The names of the steps in the results of a rule."""
    return (*plan.steps, NOTHING_TAKEN) if isinstance(plan, RowPatternPlan) else plan.steps
