"""Matches and timeouts as columns, for those that write many of them at once.

Coordinates of events, measures, and what rules emit of events are arrays; an object is made of a
result only where somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_cep.columns.compilation import I32, I64
from spark_cep.columns.vectors import Bytes
from spark_cep.compiler.plan import Plan
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.errors import damaged_state
from spark_cep.match_ids import match_id
from spark_cep.matcher.batch.events import EventTable, Names
from spark_cep.matcher.findings.annotations import annotations_of_match
from spark_cep.matcher.findings.chains import Chains
from spark_cep.matcher.findings.named_values import NamedValues
from spark_cep.model import Match, TakenEvent, Timeout

#: The step of the row that a match stands before which takes none; it is in the match's id.
NOTHING_TAKEN = ""


class ResultKind(Enum):
    """The kind of results in a table."""

    MATCH = "match"
    TIMEOUT = "timeout"
    ROW = "match-row"


#: Gives the columns and original bytes that rules (by number) emit of the events that they took.
Emitted = Callable[[I32, I64], tuple[NamedValues | None, Bytes | None]]


def coordinates_alone(_rules: I32, _events: I64) -> tuple[None, None]:
    """Emit neither columns nor bytes."""
    return None, None


@dataclass(frozen=True, slots=True)
class Results:
    """Matches, or timeouts, one row each.

    ``rule`` and ``key`` are places in ``plans`` and ``keys``. ``time`` is that of a match, the
    deadline of a timeout; ``already_matched`` is a timeout's, and ``omitted`` the number of events
    that it has taken and does not list. The events of row ``i`` are rows ``ends[i - 1]`` to
    ``ends[i]`` of ``step`` (places in the plan's steps, ascending) and ``events``, those of a step
    in the order taken. A match of a row pattern that takes no row has the one that it stands
    before, under a step behind the last. ``measures`` are those of each row, ``columns`` and the
    payload of ``events`` what rules emit of each event.
    """

    kind: ResultKind
    plans: Sequence[Plan | RowPatternPlan]
    keys: Bytes
    names: Names
    rule: I32
    key: I64
    time: I64
    already_matched: NDArray[np.uint8]
    omitted: I64
    ends: I64
    step: I32
    events: EventTable
    measures: NamedValues
    columns: NamedValues | None = None

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
        omitted: I64,
        chains: Chains,
        events: EventTable,
        measures: NamedValues,
        emitted: Emitted = coordinates_alone,
    ) -> Results:
        """Make results of findings, with the events of ``chains`` out of all ``events``."""
        step, row = chains.steps, chains.events.astype(np.int64)
        owner = np.repeat(np.arange(len(rule)), np.diff(chains.ends, prepend=0))
        most = np.array([len(step_names(plan)) for plan in plans], np.int64)
        if (step >= most[rule][owner]).any():
            raise damaged_state("a match has a step that its rule has not")
        # Chains are in the order taken, which may go back to an earlier step.
        place = owner * (int(step.max(initial=0)) + 1) + step
        if (place[1:] < place[:-1]).any():
            order = np.argsort(place, kind="stable")
            step, row = step[order], row[order]
        columns, payload = emitted(rule[owner], row)
        taken = replace(events, columns=None, payload=None).take(row)
        return cls(
            kind, plans, keys, names, rule, key, time, already_matched, omitted, chains.ends, step,
            replace(taken, payload=payload), measures, columns,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.rule)

    def objects(self) -> Iterator[Match | Timeout]:
        """All of them as objects."""
        return map(self.result, range(len(self)))

    @property
    def starts(self) -> I64:
        """Event time of each row's first event."""
        if not len(self):
            return np.zeros(0, np.int64)
        firsts = np.concatenate([[0], self.ends[:-1]])
        return np.minimum.reduceat(self.events.time, firsts)

    def result(self, row: int) -> Match | Timeout:
        """One of them as an object."""
        plan, key = self.plans[self.rule[row]], self.keys.text(int(self.key[row]))
        first = int(self.ends[row - 1]) if row else 0
        names = step_names(plan)
        steps: dict[str, list[TakenEvent]] = {}
        taken_event = self.events.objects(self.names, ())
        for at in range(first, int(self.ends[row])):
            event = taken_event(at)
            columns = (self.columns and self.columns.row(at)) or None
            taken = TakenEvent(event.at, event.time, columns, event.payload, event.type)
            steps.setdefault(names[self.step[at]], []).append(taken)
        common: dict[str, Any] = {
            "match_id": match_id(plan.rule.id, plan.rule.version, key, steps),
            "rule_id": plan.rule.id,
            "rule_version": plan.rule.version,
            "key": key,
            "start": min(event.time for events in steps.values() for event in events),
            "steps": {name: events for name, events in steps.items() if name != NOTHING_TAKEN},
            "measures": self.measures.row(row),
        }
        time = int(self.time[row])
        if plan.rule.annotations:
            common["annotations"] = annotations_of_match(
                plan.rule.annotations, {**common, "time": time}
            )
        if self.kind is ResultKind.MATCH:
            return Match(**common, time=time)
        matched, omitted = bool(self.already_matched[row]), int(self.omitted[row])
        return Timeout(**common, deadline=time, already_matched=matched, events_omitted=omitted)


def step_names(plan: Plan | RowPatternPlan) -> tuple[str, ...]:
    """The names of the steps in the results of a rule."""
    return (*plan.steps, NOTHING_TAKEN) if isinstance(plan, RowPatternPlan) else plan.steps
