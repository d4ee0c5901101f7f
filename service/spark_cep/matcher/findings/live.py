"""The partial matches that one key's state holds of one rule, in the author's terms: for test kits
and explanations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spark_cep.compiler.formula import FALSE
from spark_cep.compiler.plan import Action, Plan, StateKind
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.compiler.row_pattern.program import Label
from spark_cep.matcher.findings.partial import FOREVER, Finished, Partial, RuleState, Taken
from spark_cep.model import Event, TakenEvent


@dataclass(frozen=True, slots=True)
class PartialMatch:
    """The events that a rule has taken for a key so far, and what may become of them.

    ``steps``: events per step, in the order taken, without columns. ``deadline``: when it runs out
    of time, ``None`` for never. ``waits_for``: the steps that could take an event next;
    ``forbids``: the NOT steps whose event would end it; ``absence``: it is a match at its deadline.
    ``already_matched``: its events, the first of them, or these and more were a match.
    ``held_back``: it is complete, and its skip strategy keeps it until earlier partial matches are
    decided.
    """

    rule_id: str
    rule_version: int
    key: str | None
    steps: Mapping[str, Sequence[TakenEvent]]
    deadline: int | None
    waits_for: tuple[str, ...] = ()
    forbids: tuple[str, ...] = ()
    absence: bool = False
    already_matched: bool = False
    held_back: bool = False


def live_partials(plan: Plan, key: str | None, state: RuleState) -> Iterator[PartialMatch]:
    """The partial matches of a rule's state, then the matches that are held back.

    Branches that have taken the same events are one, which lives as long as the last of them.
    """
    branches: dict[int, list[Partial]] = {}
    for partial in state.partials:
        branches.setdefault(id(partial.last), []).append(partial)
    for same in branches.values():
        deadline = max(partial.deadline for partial in same)
        waits, forbids, absence = ahead(plan, [partial.state for partial in same])
        yield PartialMatch(
            plan.rule.id,
            plan.rule.version,
            key,
            _steps(plan, same[0].last),
            None if deadline == FOREVER else deadline,
            waits,
            forbids,
            absence=absence,
            already_matched=same[0].last.had_matched,
        )
    for match in state.finished:
        yield _held(plan, key, match)


def live_attempt(
    plan: RowPatternPlan,
    key: str | None,
    events: Sequence[Event],
    threads: Sequence[tuple[int, tuple[int, ...]]],
    found: tuple[int, ...] | None,
    deadline: int | None,
) -> Iterator[PartialMatch]:
    """The ways in which the attempt under way of a rule in SQL has taken rows, the preferred first,
    and the match that is not final yet.

    ``events`` are the rows from the attempt's first on, ``threads`` the instruction of each and the
    variables of the rows that it has taken, ``found`` those of the match. Ways that have taken the
    same rows as the same variables are one.
    """
    rule, variables = plan.rule, plan.query.variables
    ways: dict[tuple[int, ...], list[int]] = {}
    for at, labels in threads:
        if labels:
            ways.setdefault(labels, []).append(at)
    for labels, places in ways.items():
        yield PartialMatch(
            rule.id,
            rule.version,
            key,
            steps_of(variables, events, labels),
            deadline,
            ahead(plan, places).waits_for,
            already_matched=found is not None,
        )
    if found is not None:
        steps = steps_of(variables, events, found)
        yield PartialMatch(rule.id, rule.version, key, steps, deadline, held_back=True)


def _held(plan: Plan, key: str | None, match: Finished) -> PartialMatch:
    steps = _steps(plan, match.last)
    return PartialMatch(plan.rule.id, plan.rule.version, key, steps, None, held_back=True)


def _steps(plan: Plan, last: Taken) -> dict[str, list[TakenEvent]]:
    chain = list(last.chain())[::-1]
    return steps_of(plan.steps, [each.event for each in chain], [each.step for each in chain])


def steps_of(
    names: Sequence[str], events: Sequence[Event], steps: Sequence[int]
) -> dict[str, list[TakenEvent]]:
    """Events by the names of the steps, or variables, that each was taken for, in their order;
    events behind those that were taken are left out."""
    taken: dict[str, list[TakenEvent]] = {name: [] for name in names}
    for event, step in zip(events, steps, strict=False):
        taken[names[step]].append(TakenEvent(event.at, event.time, type=event.type))
    return {name: those for name, those in taken.items() if those}


class Ahead(NamedTuple):
    """The steps that may take the next event, the NOT steps that it may violate, and whether a
    deadline would complete a match."""

    waits_for: tuple[str, ...]
    forbids: tuple[str, ...] = ()
    absence: bool = False


def ahead(plan: Plan | RowPatternPlan, places: Sequence[int]) -> Ahead:
    """Return the steps ahead of a partial match whose branches stand in these states, or whose
    threads stand at these instructions."""
    if isinstance(plan, RowPatternPlan):
        instructions = [plan.program.instructions[at] for at in places]
        labels = [each.variable for each in instructions if isinstance(each, Label)]
        return Ahead(tuple(plan.query.variables[each] for each in dict.fromkeys(labels)))
    waits: set[str] = set()
    forbids: dict[str, None] = {}
    todo = list(places)
    seen = set(todo)
    while todo:
        state = plan.states[todo.pop()]
        for edge in state.edges:
            target = plan.states[edge.target]
            if edge.condition == FALSE:
                continue
            if edge.action is Action.TAKE:
                waits.add(state.step)
            elif target.kind is StateKind.STOP:
                forbids[target.step] = None
            elif edge.action is Action.PROCEED and edge.target not in seen:
                seen.add(edge.target)
                todo.append(edge.target)
    absence = any(plan.states[place].absence for place in places)
    return Ahead(tuple(name for name in plan.steps if name in waits), tuple(forbids), absence)
