"""Explain a rule in words: its steps, states and edges, where its conditions are evaluated, and
what bounds its state. The text is made from the plan, so it describes what runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from spark_cep.compiler.explain.state_bounds import bounds
from spark_cep.compiler.explain.wording import (
    ConditionNames,
    condition_name,
    condition_text,
    in_words,
    repetition,
    skip_in_words,
    state_in_words,
    window_in_words,
)
from spark_cep.compiler.explain.work_bounds import work_bounds
from spark_cep.compiler.formula import TRUE, AnyOf, Formula
from spark_cep.compiler.plan import Edge, EventAtom, GapAtom, Plan, State
from spark_cep.compiler.steps.assembly import lets_pass
from spark_cep.compiler.steps.conditions import AtomTable
from spark_cep.durations import format_duration
from spark_cep.errors import Problem, printable
from spark_cep.event_times import time_text
from spark_cep.pattern.tree import PreviousVersion, Rule, Step

Row = tuple[str, str]
"""A label and its text."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its lines, already indented."""

    heading: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A rule explained; prints itself."""

    sections: tuple[Section, ...]

    def __str__(self) -> str:
        return "\n\n".join("\n".join((one.heading, *one.lines)) for one in self.sections)


def explain(
    plan: Plan,
    warnings: Sequence[Problem] = (),
) -> Explanation:
    """Explain ``plan``, whose rule has these ``warnings``."""
    rule = plan.rule
    steps = _Steps(plan)
    return Explanation(
        (
            Section(f"Rule {rule.id}, version {rule.version}", tuple(_head(plan))),
            Section("Steps", tuple(steps.lines(rule.pattern, "  "))),
            Section("States and edges", tuple(_states(plan))),
            Section("Events that reach the matcher", tuple(_events(plan))),
            Section(
                "What a key may hold", rows((bound.name, bound.text) for bound in bounds(plan))
            ),
            Section(
                "Work of one event", rows((bound.name, bound.text) for bound in work_bounds(plan))
            ),
            Section("Warnings", tuple(warning_lines(warnings))),
        )
    )


def rows(rows: Iterable[Row], indent: str = "  ", *, repeated: bool = False) -> tuple[str, ...]:
    """Labels and texts in two columns; unless ``repeated``, one label is written once."""
    listed = list(rows)
    width = max((len(label) for label, _ in listed), default=0)
    lines, before = [], ""
    for label, text in listed:
        shown = "" if label == before and not repeated else label
        lines.append(f"{indent}{shown:<{width}}  {printable(text)}")
        before = label
    return tuple(lines)


def _head(plan: Plan) -> Iterator[str]:
    rule = plan.rule
    if rule.description:
        yield f"  {printable(rule.description)}"
    yield from rows(_head_rows(plan, rule))


def _head_rows(plan: Plan, rule: Rule) -> Iterator[Row]:
    yield "fingerprint", plan.fingerprint
    key = ", ".join(expression.canonical for expression in rule.key)
    yield "key", key or "none: all events go through one partition"
    yield "inputs", ", ".join(rule.events) or "the only one that is configured"
    yield "window", window_in_words(rule.within) or "none"
    skip = rule.after_match
    missed = ", an error when there is no such event" if skip.error_on_miss else ""
    yield "after a match", skip_in_words(skip) + missed
    cooldown = rule.cooldown_ms
    yield "cooldown", "none" if cooldown is None else format_duration(cooldown)
    yield from fate_rows(rule)


def fate_rows(rule: Rule) -> Iterator[Row]:
    """Return whether and from when the rule runs, and what becomes of the version before."""
    if rule.effective_from_ms is not None:
        yield "effective from", time_text(rule.effective_from_ms)
    if rule.previous_version is not PreviousVersion.RESTART:
        limit = rule.drain_limit_ms
        limited = "" if limit is None else f", for {format_duration(limit)} at most"
        carries = rule.previous_version is PreviousVersion.CARRY
        drains = f"finishes what it has begun{limited}"
        yield "previous version", "its partial matches go on here" if carries else drains
    if not rule.enabled:
        yield "enabled", "no: the rule does not run"
    if rule.shadow:
        yield "mode", "shadow: results go to a topic of their own"


class _Steps:
    """The author's steps, each with the conditions that the compiler has made of its own."""

    def __init__(self, plan: Plan) -> None:
        self._atoms = plan.atoms
        self._table = AtomTable(plan.rule, plan.atoms)

    def lines(self, steps: tuple[Step, ...], indent: str) -> Iterator[str]:
        """The steps of one list, groups with their members beneath."""
        for step in steps:
            yield f"{indent}{step.name}: {_standing(step)}"
            yield from rows(self._rows_of(step), indent + "    ")
            if step.group is not None:
                yield from self.lines(step.group, indent + "    ")

    def _rows_of(self, step: Step) -> Iterator[Row]:
        if step.group is None:
            if step.of_type is not None:
                yield "of type", step.of_type
            if step.where is not None:
                yield "where", step.where.canonical
            elif step.of_type is None:
                yield "where", "every event"
            yield from self._parts(self._table.where(step))
        if step.until is not None:
            yield "until", step.until.canonical
            yield from self._parts(self._table.until(step))
        if step.gap_ms is not None:
            yield self._part(self._atoms.index(GapAtom(step.gap_ms, step.name)))

    def _parts(self, formula: Formula) -> Iterator[Row]:
        numbers = [n for n in range(len(self._atoms)) if formula.atoms() >> n & 1]
        yield from map(self._part, numbers)
        if len(numbers) > 1:
            yield "  together", in_words(formula, condition_name)

    def _part(self, number: int) -> Row:
        atom = self._atoms[number]
        name = condition_name(number)
        if not isinstance(atom, EventAtom):
            return f"  {name} looks back", condition_text(atom)
        return f"  {name} on the event", condition_text(atom)


def _standing(step: Step) -> str:
    parts = [step.after.value] if step.after is not None else []
    if not step.negative:
        parts.append(repetition(step))
    if step.group is not None:
        parts.append("a group of")
    return ", ".join(parts)


def _states(plan: Plan) -> Iterator[str]:
    names = ConditionNames(plan)
    for state in plan.states:
        name = f"{state.number} {state.label}"
        yield "  " + ", ".join((name, *state_in_words(state)))
        moves = (_edge(edge, state, plan, names) for edge in state.edges)
        yield from rows(moves, "      ", repeated=True)


def _edge(edge: Edge, state: State, plan: Plan, names: ConditionNames) -> Row:
    target = plan.states[edge.target]
    where = "stay" if target is state else f"go to {target.number} {target.label}"
    condition = "always" if edge.condition == TRUE else f"if {names.written(edge.condition)}"
    return f"{edge.action.value}, {where}", condition


def _events(plan: Plan) -> Iterator[str]:
    rule = plan.rule
    which = "vents" + (f" of {', '.join(rule.events)}" if rule.events else "")
    which += " that have a key" if rule.key else ""
    if plan.strict:
        yield f"  All e{which}, whatever they hold: the plan is strict. An event on which no"
        yield "  condition is true still changes what stands in"
        yield from (
            f"    {state.number} {state.label}"
            for state in plan.states
            if not lets_pass(state, plan.states)
        )
    elif plan.relevant == TRUE:
        yield f"  All e{which}: no condition on the event alone rules one out."
    else:
        yield f"  E{which}, and on which this is true:"
        yield from _alternatives(plan)
        yield "  Any other event changes nothing for this rule. Unless another rule needs it, it is"
        yield "  dropped where it is decoded, and only its time counts."
    yield from rows(_places_of_conditions(plan))


def _alternatives(plan: Plan) -> Iterator[str]:
    formula = plan.relevant
    operands = formula.operands if isinstance(formula, AnyOf) else (formula,)
    for number, operand in enumerate(operands):
        text = in_words(operand, lambda n: condition_text(plan.atoms[n]))
        yield f"    {'or ' if number else ''}{text}"


def _places_of_conditions(plan: Plan) -> Iterator[Row]:
    alone = [n for n, atom in enumerate(plan.atoms) if isinstance(atom, EventAtom)]
    others = [n for n in range(len(plan.atoms)) if n not in alone]
    if alone:
        yield "on the event", f"{_listed(alone)}: once for each event, for all rules in one pass"
    if others:
        yield (
            "in the matcher",
            f"{_listed(others)}: for each partial match, where the event alone leaves it open",
        )


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(condition_name, numbers))


def warning_lines(warnings: Sequence[Problem]) -> Iterator[str]:
    """Yield the lines of the section on warnings."""
    if not warnings:
        yield "  none"
    for warning in warnings:
        yield from (f"  {line}" for line in warning.render().split("\n"))
