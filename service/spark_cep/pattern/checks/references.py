"""Checks of what a rule names and counts: names, references to steps, numbers and instants."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from spark_cep.documents.nearest import instead
from spark_cep.documents.places import Path
from spark_cep.durations import MAX_DURATION_MS, format_duration
from spark_cep.event_times import FIRST_TIME, LAST_TIME
from spark_cep.pattern.checks.annotations import check_annotations
from spark_cep.pattern.checks.findings import Finding, place_steps
from spark_cep.pattern.checks.names import ALLOWED_NAME, LONGEST_NAME, can_name
from spark_cep.pattern.expressions import ALL_STEPS, Expression, ExpressionError, parse
from spark_cep.pattern.expressions.nodes import Column
from spark_cep.pattern.tree import MOST_COUNTED, MOST_VERSION, PreviousVersion, Rule, walk

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def check_references(rule: Rule) -> Iterator[Finding]:
    """Every finding of the checks below."""
    for check in _CHECKS:
        yield from check(rule)


def check_identity(rule: Rule) -> Iterator[Finding]:
    """Id and version can name the rule in a file, a header and a metric's label."""
    if not _ID.fullmatch(rule.id) or len(rule.id) > LONGEST_NAME:
        allowed = f"letters, digits, `_`, `-` and `.`, at most {LONGEST_NAME}"
        yield Finding(f"`{rule.id}` cannot be the id of a rule", ("id",), allowed)
    if not 1 <= rule.version <= MOST_VERSION:
        allowed = f"a number from 1 to {MOST_VERSION}"
        yield Finding(f"{rule.version} cannot be a version", ("version",), allowed)


def check_step_names(rule: Rule) -> Iterator[Finding]:
    """Each step and group has a name of its own."""
    seen: set[str] = set()
    for placed in place_steps(rule.pattern):
        name = placed.step.name
        if not can_name(name):
            yield placed.finding(f"`{name}` cannot be the name of a step", "step", ALLOWED_NAME)
        elif name in seen:
            yield placed.finding(
                f"the name `{name}` is given to two steps",
                "step",
                "names that are unique in the rule, groups included",
            )
        seen.add(name)


def check_measure_names(rule: Rule) -> Iterator[Finding]:
    """A measure's name can be a column; so can those of a statement's result."""
    for output in rule.query.outputs if rule.query is not None else ():
        if not can_name(output.name):
            message = f"`{output.name}` cannot be the name of a column of the result"
            offsets = output.span if any(output.span) else None
            yield Finding(message, ("sql",), ALLOWED_NAME, offsets=offsets)
    for name in rule.emit.measures:
        if not can_name(name):
            message = f"`{name}` cannot be the name of a measure"
            yield Finding(message, ("emit", "measures", name), ALLOWED_NAME, at="key")


def check_key(rule: Rule) -> Iterator[Finding]:
    """A key reads the event alone: it decides which partial matches the event meets."""
    for number, expression in enumerate(rule.key):
        if not expression.is_event_only:
            message = "the key refers to steps"
            yield Finding(message, ("key", number), "an expression over the event's columns alone")


def check_look_backs(rule: Rule) -> Iterator[Finding]:
    """References in conditions and measures name steps that take events."""
    kinds = {
        step.name: "NOT step" if step.negative else "group" if step.group is not None else None
        for step in walk(rule.pattern)
    }
    usable = [name for name, kind in kinds.items() if kind is None]
    known = {*usable, ALL_STEPS}
    for expression, path, step in expressions_of(rule):
        for name in dict.fromkeys(look_back.step for look_back in expression.look_backs):
            if name in known:
                continue
            kind = kinds.get(name)
            yield Finding(
                f"the {kind} `{name}` takes no events to refer to"
                if kind
                else f"there is no step `{name}` to refer to",
                path,
                instead(name, usable, "steps that take events"),
                step,
                offsets=mention(expression, name),
            )


def mention(expression: Expression, step: str) -> tuple[int, int] | None:
    """Return the span at which an expression's text first names a step."""
    found = re.search(rf"(?<![\w.]){re.escape(step)}(?=\s*\.)", expression.text)
    return found.span() if found else None


def check_durations(rule: Rule) -> Iterator[Finding]:
    """Windows, gaps and the cooldown are longer than nothing, and can be written down."""
    window: Path = ("within", "max") if rule.query is None else ("sql",)
    durations: list[tuple[str, int | None, Path, str | None]] = [
        ("within", rule.within.max_ms, window, None),
        ("within.gap", rule.within.gap_ms, ("within", "gap"), None),
        ("cooldown", rule.cooldown_ms, ("cooldown",), None),
        ("drain_limit", rule.drain_limit_ms, ("drain_limit",), None),
    ]
    durations += [
        ("gap", placed.step.gap_ms, (*placed.path, "gap"), placed.step.name)
        for placed in place_steps(rule.pattern)
    ]
    allowed = f"more than 0 and at most {format_duration(MAX_DURATION_MS)}"
    for name, ms, path, step in durations:
        if ms is not None and not 0 < ms <= MAX_DURATION_MS:
            yield Finding(f"`{name}` is {ms} ms", path, allowed, step)
    if rule.drain_limit_ms is not None and rule.previous_version is not PreviousVersion.DRAIN:
        policy = rule.previous_version.value
        message = f"`drain_limit` has no meaning with `previous_version: {policy}`"
        yield Finding(message, ("drain_limit",), "`previous_version: drain`; or leave the key out")


def check_instant(rule: Rule) -> Iterator[Finding]:
    """``effective_from`` can be written as a timestamp, and nothing is carried over to it."""
    instant = rule.effective_from_ms
    if instant is not None and rule.previous_version is PreviousVersion.CARRY:
        message = (
            "`previous_version: carry` has no meaning with `effective_from`: partial matches move"
            " when the version comes, and its events begin later"
        )
        allowed = "`restart` or `drain`; or leave `effective_from` out"
        yield Finding(message, ("previous_version",), allowed)
    if instant is not None and not FIRST_TIME <= instant <= LAST_TIME:
        message = f"`effective_from` is out of range: {instant} ms since 1970"
        yield Finding(message, ("effective_from",), "a time in the years 1 to 9999")


def check_limits(rule: Rule) -> Iterator[Finding]:
    """Limits let one partial match, one event, one match and one step of work in."""
    for name in ("partial_matches", "events", "matches", "work"):
        value = getattr(rule.limits, name)
        if not 1 <= value <= MOST_COUNTED:
            message = f"`limits.{name}` is {value}"
            yield Finding(message, ("limits", name), f"a number from 1 to {MOST_COUNTED}")


def check_lists(rule: Rule) -> Iterator[Finding]:
    """Inputs and emitted columns are named once each."""
    yield from _each_once(rule.events, ("events",), "input")
    if not isinstance(rule.emit.events, str):
        yield from _each_once(rule.emit.events, ("emit", "events"), "column")
        for number, name in enumerate(rule.emit.events):
            if name.strip() and not _is_column(name):
                yield Finding(
                    f"`{name}` is not the name of a column",
                    ("emit", "events", number),
                    "a column of the event, as `price` or `address.city`",
                )
        if not rule.emit.events:
            allowed = "`all`, `none`, or one column or more"
            yield Finding("`emit.events` names no column", ("emit", "events"), allowed)


def _each_once(names: Iterable[str], path: Path, what: str) -> Iterator[Finding]:
    seen: set[str] = set()
    for number, name in enumerate(names):
        if not name.strip():
            yield Finding(f"the name of an {what} is empty", (*path, number), "a name")
        elif name in seen:
            message = f"the {what} `{name}` is named twice"
            yield Finding(message, (*path, number), "each name once")
        seen.add(name)


def expressions_of(rule: Rule) -> Iterator[tuple[Expression, Path, str | None]]:
    """Each condition and measure with its path, and the step that it belongs to."""
    for placed in place_steps(rule.pattern):
        for field in ("where", "until"):
            expression: Expression | None = getattr(placed.step, field)
            if expression is not None:
                yield expression, (*placed.path, field), placed.step.name
    for name, measure in rule.emit.measures.items():
        yield measure, ("emit", "measures", name), None


_CHECKS: tuple[Callable[[Rule], Iterator[Finding]], ...] = (
    check_identity,
    check_step_names,
    check_measure_names,
    check_key,
    check_look_backs,
    check_durations,
    check_instant,
    check_limits,
    check_lists,
    check_annotations,
)


def _is_column(name: str) -> bool:
    try:
        return isinstance(parse(name).node, Column)
    except ExpressionError:
        return False
