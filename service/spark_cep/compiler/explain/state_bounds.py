"""Bounds of the state of one key: time, limits, skip strategy, columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from spark_cep.compiler.plan import Action, Plan, StateKind
from spark_cep.compiler.rule_set import Slot, slots_of
from spark_cep.durations import format_duration
from spark_cep.pattern.checks.findings import repeats
from spark_cep.pattern.expressions.canonical import name
from spark_cep.pattern.tree import Contiguity, Loop, Skip, Step, Times, walk


@dataclass(frozen=True, slots=True)
class Bound:
    """One fact about the size or the life of a key's state."""

    name: str
    text: str


def bounds(plan: Plan) -> Iterator[Bound]:
    """All facts, in the order in which a partial match lives."""
    yield Bound("begins", f"at each event that {_either(_opening(plan))} accepts")
    splits = [text for step in walk(plan.rule.pattern) for text in _splits(step)]
    for text in splits or ["at no step"]:
        yield Bound("splits", text)
    yield Bound("events", _events(plan))
    yield from _ends(plan)
    yield Bound("limits", _limits(plan))
    yield Bound("held back", _held_back(plan))
    yield Bound("columns", ", ".join(dict.fromkeys(map(_column, slots_of(plan)))) or "none")
    whole = plan.rule.emit.events == "all"
    yield Bound("original bytes", "kept with each event taken" if whole else "not kept")
    yield Bound("waiting", "events ahead of the watermark, besides all that")


def events_of_match(steps: tuple[Step, ...]) -> tuple[int, int | None]:
    """The least and the largest number of events in a match of ``steps``; ``None`` for no largest
    number."""
    ranges = [_events_of_step(step) for step in steps if not step.negative]
    most = [maximum for _, maximum in ranges if maximum is not None]
    return sum(minimum for minimum, _ in ranges), sum(most) if len(most) == len(ranges) else None


def _events_of_step(step: Step) -> tuple[int, int | None]:
    least, most = (1, 1) if step.group is None else events_of_match(step.group)
    times = step.times or Times(1, 1)
    least = 0 if step.optional else least * times.minimum
    return least, None if most is None or times.maximum is None else most * times.maximum


def _opening(plan: Plan) -> tuple[str, ...]:
    """The steps that can take a match's first event."""
    steps: dict[str, None] = {}
    todo, seen = [plan.start], {plan.start}
    while todo:
        state = plan.states[todo.pop()]
        for edge in state.edges:
            if edge.action is Action.TAKE:
                steps[state.step] = None
            elif edge.action is Action.PROCEED and edge.target not in seen:
                seen.add(edge.target)
                todo.append(edge.target)
    return tuple(step for step in plan.steps if step in steps)


def _splits(step: Step) -> Iterator[str]:
    """Why one partial match may become several at ``step``."""
    if step.after is Contiguity.FOLLOWED_BY_ANY:
        yield f"`{step.name}`, followed_by_any: an event that fits is both taken and passed over"
    times = step.times
    if times is not None and repeats(step) and step.loop is Loop.COMBINATIONS:
        yield f"`{step.name}`, combinations: a repetition is both taken and passed over"
    if times is not None and times.minimum != times.maximum and not step.greedy:
        first = times.minimum
        yield f"`{step.name}`, a loop: from repetition {first} on, one goes on in it, one leaves it"
    if step.optional and not step.greedy:
        yield f"`{step.name}`, optional: one goes on with it, one without it"


def _events(plan: Plan) -> str:
    least, most = events_of_match(plan.rule.pattern)
    least = max(least, 1)
    if most is not None:
        taken = str(most) if least == most else f"{least} to {most}"
        return f"a match takes {taken}, a partial match holds no more"
    endless = [
        step.name
        for step in walk(plan.rule.pattern)
        if step.times is not None and step.times.looping
    ]
    return f"a match takes {least} or more; {_both(endless)} may repeat without end"


def _ends(plan: Plan) -> Iterator[Bound]:
    within = plan.rule.within
    if within.max_ms is not None:
        yield Bound("ends", f"{format_duration(within.max_ms)} after its first event")
    if within.gap_ms is not None:
        yield Bound("ends", f"{format_duration(within.gap_ms)} after the last event taken")
    if within.max_ms is None and within.gap_ms is None:
        yield Bound("ends", "at no deadline: the rule has no window")
    for step in walk(plan.rule.pattern):
        if step.until is not None:
            yield Bound("ends", f"the loop `{step.name}`, by an event that its `until` accepts")
    stops = dict.fromkeys(state.step for state in plan.states if state.kind is StateKind.STOP)
    if stops:
        yield Bound("ends", f"at an event that the NOT step {_either(stops)} accepts")


def _limits(plan: Plan) -> str:
    limits = plan.rule.limits
    return (
        f"{limits.partial_matches:,} partial matches, {limits.events:,} distinct events,"
        f" {limits.matches:,} matches of one event, beyond that {limits.on_limit.value}"
    )


def _held_back(plan: Plan) -> str:
    if plan.after_match.strategy is Skip.NO_SKIP:
        return "nothing: a match is written when it is found"
    held = "a match, while a partial match that began earlier lives"
    window = plan.window_ms
    return held if window is None else f"{held}: less than {format_duration(window)}"


def _column(slot: Slot) -> str:
    column = name(slot.path)
    return column if slot.of_type is None else f"{column} (of {slot.of_type})"


def _either(names: Iterable[str]) -> str:
    return " or ".join(f"`{each}`" for each in names)


def _both(names: Iterable[str]) -> str:
    return " and ".join(f"`{each}`" for each in names)
