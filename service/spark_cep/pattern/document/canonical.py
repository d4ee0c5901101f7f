"""The one text of a rule: YAML in a fixed order, defaults left out, expressions in canonical form.

``load_rules(to_yaml(rule), …)`` gives an equal rule for every rule that validation lets pass. Two
texts of the same rule have one canonical text, so it is what fingerprints are made from.
"""

from __future__ import annotations

from typing import Any

import yaml

from spark_cep.durations import format_duration
from spark_cep.event_times import time_text
from spark_cep.pattern.checks.sql_rule import FIELD
from spark_cep.pattern.sql import plain_text
from spark_cep.pattern.tree import (
    AfterMatch,
    Emit,
    Limits,
    Loop,
    PreviousVersion,
    Rule,
    Skip,
    Step,
    Times,
    Within,
)

_NO_FOLDING = 2**31
_UNICODE_LINE_ENDS = "\x85\u2028\u2029"


class _Dumper(yaml.SafeDumper):
    """A safe dumper whose text comes back unchanged."""


class _Statement(str):
    """Text of several lines, to be read by people."""

    __slots__ = ()


def to_yaml(rule: Rule) -> str:
    """The canonical text of a rule."""
    text: str = yaml.dump(
        to_data(rule), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_NO_FOLDING
    )
    return text


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    # YAML reads these line ends as `\n` unless they are escaped, which double quotes do.
    escaped = any(end in value for end in _UNICODE_LINE_ENDS)
    style = '"' if escaped else "|" if isinstance(value, _Statement) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(_Statement, _text)


def to_data(rule: Rule) -> dict[str, Any]:
    """The canonical document of a rule as plain data; ``TypeError`` for what is not a rule."""
    if not isinstance(rule, Rule):
        hint = "; end it with .rule(id, …)" if hasattr(rule, "rule") else ""
        raise TypeError(f"a Rule is expected, found a {type(rule).__name__}{hint}")
    return _given(
        id=rule.id,
        version=rule.version,
        previous_version=_unless(rule.previous_version.value, PreviousVersion.RESTART.value),
        drain_limit=_duration(rule.drain_limit_ms),
        description=rule.description or None,
        annotations=dict(rule.annotations) or None,
        enabled=None if rule.enabled else False,
        mode="shadow" if rule.shadow else None,
        effective_from=None
        if rule.effective_from_ms is None
        else time_text(rule.effective_from_ms),
        **_pattern(rule),
        limits=_limits(rule.limits),
        cooldown=_duration(rule.cooldown_ms),
    )


def _pattern(rule: Rule) -> dict[str, Any]:
    """Return the pattern: the statement, or the fields that it stands for."""
    if rule.query is not None:
        return {FIELD: _Statement(plain_text(rule.query.text) + "\n")}
    return {
        "events": _one_or_many(rule.events),
        "key": _one_or_many(tuple(expression.canonical for expression in rule.key)),
        "pattern": [_step(step) for step in rule.pattern],
        "within": _within(rule.within),
        "after_match": _after_match(rule.after_match),
        "emit": _emit(rule.emit),
    }


def _step(step: Step) -> dict[str, Any]:
    # What is optional and begins at one is written as `0..n`: the words `optional` and `times`
    # together are refused after a greedy step, where `0..n` is not.
    from_zero = step.optional and step.times is not None and step.times.minimum == 1
    return _given(
        step=step.name,
        after=step.after.value if step.after is not None else None,
        where=step.where.canonical if step.where is not None else None,
        of_type=step.of_type,
        times=_times(step.times, from_zero=from_zero) if step.times is not None else None,
        gap=_duration(step.gap_ms),
        loop=None if step.loop is Loop.RELAXED else step.loop.value,
        greedy=step.greedy or None,
        optional=(step.optional and not from_zero) or None,
        until=step.until.canonical if step.until is not None else None,
        group=[_step(member) for member in step.group] if step.group is not None else None,
    )


def _times(times: Times, *, from_zero: bool) -> int | str:
    minimum = 0 if from_zero else times.minimum
    if times.maximum is None:
        return f"{minimum}+"
    return minimum if minimum == times.maximum else f"{minimum}..{times.maximum}"


def _within(within: Within) -> str | dict[str, Any] | None:
    if within.gap_ms is None:
        return _duration(within.max_ms)
    return _given(max=_duration(within.max_ms), gap=_duration(within.gap_ms))


def _after_match(after: AfterMatch) -> str | dict[str, Any] | None:
    if after.strategy is Skip.NO_SKIP:
        return None
    if after.step is None:
        return str(after.strategy.value)
    target: dict[str, Any] = {after.strategy.value: after.step}
    return {**target, "on_miss": "error"} if after.error_on_miss else target


def _emit(emit: Emit) -> dict[str, Any] | None:
    events = emit.events if isinstance(emit.events, str) else list(emit.events)
    written = _given(
        measures={name: measure.canonical for name, measure in emit.measures.items()} or None,
        events=None if events == "none" else events,
    )
    return written or None


def _limits(limits: Limits) -> dict[str, Any] | None:
    default = Limits()
    written = _given(
        partial_matches=_unless(limits.partial_matches, default.partial_matches),
        events=_unless(limits.events, default.events),
        matches=_unless(limits.matches, default.matches),
        work=_unless(limits.work, default.work),
        on_limit=_unless(limits.on_limit.value, default.on_limit.value),
    )
    return written or None


def _unless(value: int | str, default: int | str) -> int | str | None:
    return None if value == default else value


def _duration(ms: int | None) -> str | None:
    return None if ms is None else format_duration(ms)


def _one_or_many(values: tuple[str, ...]) -> str | list[str] | None:
    if not values:
        return None
    return values[0] if len(values) == 1 else list(values)


def _given(**entries: Any) -> dict[str, Any]:
    return {name: value for name, value in entries.items() if value is not None}
