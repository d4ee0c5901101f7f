"""A document of the right shape as a rule's tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from spark_cep.documents.places import Path
from spark_cep.pattern.document.shape import (
    RuleFields,
    RuleShape,
    SkipToShape,
    StepShape,
    WithinShape,
)
from spark_cep.pattern.expressions import Expression, parse
from spark_cep.pattern.expressions.canonical import name
from spark_cep.pattern.sql.query import Query
from spark_cep.pattern.tree import (
    AfterMatch,
    Contiguity,
    Emit,
    Limits,
    Loop,
    OnLimit,
    PreviousVersion,
    Rule,
    Skip,
    Step,
    Times,
    Within,
)


def rule_of_query(shape: RuleFields, query: Query) -> Rule:
    """The rule of a document in SQL, whose statement is ``query``."""
    return with_query(rule_of_fields(shape), query)


def with_query(rule: Rule, query: Query) -> Rule:
    """Return the rule with another statement."""
    return replace(
        rule,
        query=query,
        events=(query.input,),
        key=tuple(parse(name(path)) for path in query.partition if path),
        within=Within(max_ms=query.within_ms),
    )


def rule_of_steps(shape: RuleShape, expressions: Mapping[Path, Expression]) -> Rule:
    """The rule of a document with steps, whose expressions are given by path."""
    key = [expressions[path] for path in expressions if path[0] == "key"]
    measures = {
        str(path[2]): expression
        for path, expression in expressions.items()
        if path[:2] == ("emit", "measures")
    }
    events = shape.emit.events or "none"
    return replace(
        rule_of_fields(shape),
        pattern=_steps(shape.pattern, ("pattern",), expressions),
        key=tuple(key),
        events=_listed(shape.events),
        within=_within(shape.within),
        after_match=_after_match(shape.after_match),
        emit=Emit(
            measures=MappingProxyType(measures),
            events=tuple(events) if isinstance(events, list) else events,
        ),
        cooldown_ms=shape.cooldown,
    )


def rule_of_fields(shape: RuleFields) -> Rule:
    """A rule with what all rules have, and nothing to look for."""
    return Rule(
        id=shape.id,
        version=shape.version,
        limits=Limits(
            partial_matches=shape.limits.partial_matches,
            events=shape.limits.events,
            on_limit=OnLimit(shape.limits.on_limit),
            matches=shape.limits.matches,
            work=shape.limits.work,
        ),
        description=shape.description,
        annotations=MappingProxyType(dict(shape.annotations)),
        enabled=shape.enabled,
        shadow=shape.mode == "shadow",
        effective_from_ms=shape.effective_from,
        previous_version=PreviousVersion(shape.previous_version),
        drain_limit_ms=shape.drain_limit,
    )


def _steps(
    shapes: list[StepShape], path: Path, expressions: Mapping[Path, Expression]
) -> tuple[Step, ...]:
    steps = []
    for number, shape in enumerate(shapes):
        here = (*path, number)
        times = None
        optional = shape.optional
        if shape.times is not None:
            minimum, maximum = shape.times
            if minimum == 0 and maximum != 0:
                minimum, optional = 1, True
            times = Times(minimum, maximum)
        steps.append(
            Step(
                name=shape.step,
                after=Contiguity(shape.after) if shape.after is not None else None,
                where=expressions.get((*here, "where")),
                of_type=shape.of_type,
                times=times,
                gap_ms=shape.gap,
                loop=Loop(shape.loop or "relaxed"),
                greedy=shape.greedy,
                optional=optional,
                until=expressions.get((*here, "until")),
                group=_steps(shape.group, (*here, "group"), expressions)
                if shape.group is not None
                else None,
            )
        )
    return tuple(steps)


def _listed(value: str | list[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def _within(shape: int | WithinShape | None) -> Within:
    if isinstance(shape, WithinShape):
        return Within(max_ms=shape.max, gap_ms=shape.gap)
    return Within(max_ms=shape)


def _after_match(shape: str | SkipToShape | None) -> AfterMatch:
    if isinstance(shape, SkipToShape):
        strategy = Skip.TO_LAST if shape.skip_to_first is None else Skip.TO_FIRST
        step = shape.skip_to_last if shape.skip_to_first is None else shape.skip_to_first
        return AfterMatch(strategy, step, error_on_miss=shape.on_miss is not None)
    return AfterMatch(Skip(shape)) if shape is not None else AfterMatch()
