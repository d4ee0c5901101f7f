"""Rule documents: YAML or JSON text in, rules out, or every problem of the text at once.

A text is read in stages: plain data with places (``yaml_source``), its shape (``shape``), the SQL
expressions in it, the tree, and the checks of the tree (``validation``). Expressions are read even
where the shape is wrong, so one look shows both; the tree is checked only once the shape is right.

``python -m service.pattern.document schema`` prints the JSON Schema of a document, which is kept
in ``schemas/rule.schema.json``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from service.errors import Problem, RuleSetError
from service.pattern.expressions import Expression, ExpressionError, parse
from service.pattern.places import Path, RulePlaces
from service.pattern.shape import (
    RuleShape,
    SkipToShape,
    StepShape,
    WithinShape,
    rule_schema,
)
from service.pattern.shape_problems import shape_problems
from service.pattern.tree import (
    AfterMatch,
    Contiguity,
    Emit,
    Limits,
    Loop,
    OnLimit,
    Rule,
    Skip,
    Step,
    Times,
    Within,
)
from service.pattern.validation import loop_on_single, optional_after_greedy, validate
from service.pattern.yaml_source import SourceDocument, read_documents


@dataclass(frozen=True, slots=True)
class LoadedRule:
    """A rule that may run, the warnings about it, and where its parts stand in the text."""

    rule: Rule
    warnings: tuple[Problem, ...]
    places: RulePlaces


def load_rules(text: str, source: str) -> list[LoadedRule]:
    """The rules of a text, in its order; ``RuleSetError`` with all its problems.

    ``source`` names the text in messages. Documents are parted by ``---``.
    """
    loaded: list[LoadedRule] = []
    problems: list[Problem] = []
    documents = read_documents(text, source)
    for document in documents:
        rule, found = _load(document)
        problems += found
        if rule is not None:
            loaded.append(rule)
    if not documents:
        nowhere = RulePlaces(source, ("",))
        problems.append(nowhere.problem("there is no rule", (), allowed="one rule or more"))
    if problems:
        raise RuleSetError(problems)
    return loaded


def load_document(document: SourceDocument) -> LoadedRule:
    """The rule of one document; ``RuleSetError`` with all its problems."""
    rule, problems = _load(document)
    if rule is None:
        raise RuleSetError(problems)
    return rule


def write_schema() -> str:
    """The JSON Schema of a rule document, as the text of its file."""
    return json.dumps(rule_schema(), indent=2, ensure_ascii=False) + "\n"


def _load(document: SourceDocument) -> tuple[LoadedRule | None, list[Problem]]:
    data = document.data
    problems = list(document.problems)
    if not isinstance(data, dict):
        if data is not None:
            message, allowed = "a rule must be a mapping", "`id`, `pattern` and more keys"
            problems.append(document.places.problem(message, (), allowed=allowed))
        return None, problems
    steps = dict(_step_names(data.get("pattern"), ("pattern",)))
    rule_id = data.get("id")
    places = replace(
        document.places,
        steps=MappingProxyType(steps),
        rule=rule_id if isinstance(rule_id, str) else None,
        texts=MappingProxyType({path: text.strip() for path, text, _ in _texts(data)}),
    )
    problems = [replace(problem, rule=problem.rule or places.rule) for problem in problems]
    expressions, wrong = _read_expressions(data, places)
    problems += wrong
    warnings: list[Problem] = []
    rule = None
    try:
        shape = RuleShape.model_validate(data)
    except ValidationError as error:
        problems += [p for p in shape_problems(error, places) if p not in problems]
    else:
        rule = replace(_rule(shape, expressions), source=places.source)
        problems += _check_words(shape, places)
        for finding in validate(rule):
            problem = places.problem(
                finding.message,
                finding.path,
                allowed=finding.allowed,
                at=finding.at,
                offsets=finding.offsets,
            )
            (warnings if finding.warning else problems).append(problem)
    if rule is None or problems:
        return None, sorted(problems, key=_place)
    return LoadedRule(rule, tuple(sorted(warnings, key=_place)), places), []


def _place(problem: Problem) -> tuple[int, int]:
    if problem.span is None or problem.field is not None:
        return 0, 0
    return problem.span.line, problem.span.column


def _step_names(steps: object, path: Path) -> Iterator[tuple[Path, str]]:
    """The names of steps and groups by path, from data whose shape may be wrong."""
    for number, step in enumerate(steps if isinstance(steps, list) else ()):
        if isinstance(step, dict):
            here = (*path, number)
            if isinstance(step.get("step"), str):
                yield here, step["step"]
            yield from _step_names(step.get("group"), (*here, "group"))


def _texts(data: Mapping[str, Any]) -> Iterator[tuple[Path, str, bool]]:
    """Each expression in the data: its path, its text, and whether it is a measure."""
    key = data.get("key")
    for number, text in enumerate(key if isinstance(key, list) else [key]):
        if isinstance(text, str):
            yield ("key", number), text, False
    yield from _conditions(data.get("pattern"), ("pattern",))
    emit = data.get("emit")
    measures = emit.get("measures") if isinstance(emit, dict) else None
    for name, text in measures.items() if isinstance(measures, dict) else ():
        if isinstance(text, str):
            yield ("emit", "measures", name), text, True


def _conditions(steps: object, path: Path) -> Iterator[tuple[Path, str, bool]]:
    for number, step in enumerate(steps if isinstance(steps, list) else ()):
        if isinstance(step, dict):
            for field in ("where", "until"):
                if isinstance(step.get(field), str):
                    yield (*path, number, field), step[field], False
            yield from _conditions(step.get("group"), (*path, number, "group"))


def _read_expressions(
    data: Mapping[str, Any], places: RulePlaces
) -> tuple[dict[Path, Expression], list[Problem]]:
    """The expressions by path; those that are wrong are left out, and said."""
    names = frozenset(places.steps.values())
    expressions: dict[Path, Expression] = {}
    problems: list[Problem] = []
    for path, text, measure in _texts(data):
        if not text:
            continue  # the shape says so
        steps = frozenset() if path[0] == "key" else names
        try:
            expressions[path] = parse(text.strip(), steps=steps, measure=measure)
        except ExpressionError as error:
            for problem in error.problems:
                offsets = (problem.start, problem.end)
                problems.append(
                    places.problem(problem.message, path, allowed=problem.allowed, offsets=offsets)
                )
    return expressions, problems


def _check_words(shape: RuleShape, places: RulePlaces) -> list[Problem]:
    """What is refused for the words used, where the tree has one form for two ways to write."""
    problems: list[Problem] = []

    def check(steps: list[StepShape], path: Path) -> None:
        for number, step in enumerate(steps):
            here = (*path, number)
            found: list[tuple[str, str, str]] = []
            times = step.times
            if step.optional and times is not None and times.minimum == 0:
                found.append(
                    (
                        f"`optional` on `{step.step}`, whose `times` from 0 says it already",
                        "optional",
                        "`times` from 0, or `optional`, not both",
                    )
                )
            elif step.optional and number and steps[number - 1].greedy and _bounded(step):
                found.append(optional_after_greedy(step.step, steps[number - 1].step))
            if step.loop == "relaxed" and times is None and not _negative(step):
                found.append(loop_on_single(step.step, step.loop))
            for message, field, allowed in found:
                problems.append(places.problem(message, (*here, field), allowed=allowed))
            check(step.group or [], (*here, "group"))

    check(shape.pattern, ("pattern",))
    return problems


def _bounded(step: StepShape) -> bool:
    """Whether ``times: 0..n`` could say the step, so that the tree's check lets it pass."""
    return step.times is not None and step.times.minimum == 1 and step.times.maximum is not None


def _negative(step: StepShape) -> bool:
    return step.after is not None and Contiguity(step.after).negative


def _rule(shape: RuleShape, expressions: Mapping[Path, Expression]) -> Rule:
    key = [expressions[path] for path in expressions if path[0] == "key"]
    measures = {
        str(path[2]): expression
        for path, expression in expressions.items()
        if path[:2] == ("emit", "measures")
    }
    events = shape.emit.events or "none"
    return Rule(
        id=shape.id,
        version=shape.version,
        pattern=_steps(shape.pattern, ("pattern",), expressions),
        key=tuple(key),
        events=_listed(shape.events),
        within=_within(shape.within),
        after_match=_after_match(shape.after_match),
        emit=Emit(
            measures=MappingProxyType(measures),
            events=tuple(events) if isinstance(events, list) else events,
        ),
        limits=Limits(
            partial_matches=shape.limits.partial_matches,
            events=shape.limits.events,
            on_limit=OnLimit(shape.limits.on_limit),
        ),
        cooldown_ms=shape.cooldown,
        description=shape.description,
        enabled=shape.enabled,
        effective_from_ms=shape.effective_from,
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


if __name__ == "__main__":
    if sys.argv[1:] != ["schema"]:
        sys.exit("usage: python -m service.pattern.document schema")
    sys.stdout.write(write_schema())
