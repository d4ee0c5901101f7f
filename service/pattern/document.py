"""Rule documents: YAML or JSON text in, rules out, or every problem of the text at once.

A text is read in stages: plain data with places (``service.documents``), its shape (``shape``), the
SQL expressions in it, the tree, and the checks of the tree (``validation``). Expressions are read
even where the shape is wrong, so one look shows both; the tree is checked only once the shape is
right. What is right of a wrong rule can still be held against schemas (:func:`examine_rules`).

``python -m service.pattern.document schema`` prints the JSON Schema of a document, which is kept
in ``schemas/rule.schema.json``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import islice
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from service.documents.places import Path, Places
from service.documents.reading import UNREADABLE, Document, read_documents
from service.errors import MOST_PROBLEMS, Problem, RuleSetError
from service.pattern.canonical import to_yaml
from service.pattern.expressions import Expression, ExpressionError, parse
from service.pattern.rule_schema import rule_schema
from service.pattern.shape import (
    RuleShape,
    SkipToShape,
    StepShape,
    WithinShape,
)
from service.pattern.shape_problems import shape_problems
from service.pattern.tree import (
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
from service.pattern.validation import check_rule, loop_on_single, optional_after_greedy
from service.pattern.ververica.rewriting import rewritten


@dataclass(frozen=True)
class LoadedRule:
    """A rule that may run, the warnings about it, and where its parts stand in the text."""

    rule: Rule
    warnings: tuple[Problem, ...]
    places: Places

    @cached_property
    def text(self) -> str:
        """The canonical text."""
        return to_yaml(self.rule)


def load_rules(text: str, source: str) -> list[LoadedRule]:
    """The rules of a text, in its order; ``RuleSetError`` with all its problems.

    ``source`` names the text in messages. Documents are separated by ``---``.
    """
    loaded, problems = examine_rules(text, source)
    if problems:
        raise RuleSetError(problems)
    return loaded


def examine_rules(
    text: str, source: str, given: Mapping[str, object] = MappingProxyType({})
) -> tuple[list[LoadedRule], list[Problem]]:
    """The rules of a text, and all its problems. ``given``: keys that count in documents which do
    not have them.

    If there is a problem none of the rules may run: of one that is wrong, the wrong parts are left
    out, so that the others can be checked too.
    """
    read = examine_documents(text, source, given)
    if not read:
        return [], [Places(source, ("",)).problem("there is no rule", (), allowed="a rule or more")]
    loaded = [rule for rule, _ in read if rule is not None]
    return loaded, [problem for _, problems in read for problem in problems]


def examine_documents(
    text: str, source: str, given: Mapping[str, object] = MappingProxyType({})
) -> list[tuple[LoadedRule | None, list[Problem]]]:
    """The same, document by document: the rule, if there is something of one, and its problems."""
    return [_load(_completed(document, given)) for document in read_documents(text, source)]


def _completed(document: Document, given: Mapping[str, object]) -> Document:
    if not given or not isinstance(document.data, dict):
        return document
    return replace(document, data={**given, **document.data})


def load_document(document: Document) -> LoadedRule:
    """The rule of one document; ``RuleSetError`` with all its problems."""
    rule, problems = _load(document)
    if rule is None or problems:
        raise RuleSetError(problems)
    return rule


def write_schema() -> str:
    """The JSON Schema of a rule document, as the text of its file."""
    return json.dumps(rule_schema(), indent=2, ensure_ascii=False) + "\n"


def _load(document: Document) -> tuple[LoadedRule | None, list[Problem]]:
    data = document.data
    if not isinstance(data, dict):
        problems = list(document.problems.values())
        if data is not UNREADABLE and not problems:
            allowed = "`id: …`, `pattern: …` and other keys"
            problems.append(
                document.places.problem("a rule must be a mapping", (), allowed=allowed)
            )
        return None, problems
    rule_id = data.get("id")
    around = replace(document.places, rule=rule_id if isinstance(rule_id, str) else None)
    ordinary, around, unsaid = rewritten(data, around)
    if ordinary is None:
        return None, unsaid
    data = ordinary
    written = _written_steps(data.get("pattern"), ("pattern",))
    steps = {path: step["step"] for path, step in written if isinstance(step.get("step"), str)}
    places = replace(
        around,
        steps=MappingProxyType(steps),
        texts=MappingProxyType(_texts(data)),
    )
    wrong = {path: replace(p, rule=places.rule) for path, p in document.problems.items()}
    empty = islice(_empty(data, ()), MOST_PROBLEMS)
    wrong |= {path: _no_value(path, places) for path in empty if path not in wrong}
    expressions, problems = _read_expressions(places)
    warnings: list[Problem] = []
    try:
        shape = RuleShape.model_validate(data)
    except ValidationError as error:
        misshapen = shape_problems(error, places, wrong)
        rest = _without(data, (*wrong, *misshapen))
        rule = None if rest is None else _rule(rest, expressions)
        problems += misshapen.values()
    else:
        rule = replace(_rule(shape, expressions), source=places.source)
        problems += _check_words(shape, places)
        found, warnings = check_rule(rule, places)
        problems += found
    problems = _first(sorted((*wrong.values(), *unsaid, *problems), key=_place), places)
    if rule is None:
        return None, problems
    return LoadedRule(rule, tuple(sorted(warnings, key=_place)), places), problems


def _first(problems: list[Problem], places: Places) -> list[Problem]:
    """As many as are looked for in a document, and that there may be more."""
    if len(problems) < MOST_PROBLEMS:
        return problems
    message = (
        f"{MOST_PROBLEMS:,} things or more are wrong with this rule; no others were looked for"
    )
    return [places.problem(message, ()), *problems[:MOST_PROBLEMS]]


def _empty(data: Mapping[str, Any], path: Path) -> Iterator[Path]:
    """The keys without a value, which would pass for absent ones."""
    for name, value in data.items():
        here = (*path, name)
        if value is None:
            yield here
        for number, item in enumerate(value) if isinstance(value, list) else ():
            if isinstance(item, dict):
                yield from _empty(item, (*here, number))
        if isinstance(value, dict):
            yield from _empty(value, here)


def _no_value(path: Path, places: Places) -> Problem:
    message = f"`{path[-1]}` has no value"
    return places.problem(message, path, allowed="a value; or leave the key out", at="key")


def _without(data: Mapping[str, Any], paths: Iterable[Path]) -> RuleShape | None:
    """The shape of what is left without these parts, if that is a rule at all."""
    rest = {"id": "?", **deepcopy(dict(data))}
    for *around, last in filter(None, paths):
        home: Any = rest
        with suppress(LookupError, TypeError):  # the part around it went before
            for part in around:
                home = home[part]
            if isinstance(home, dict) and last != "group":
                home.pop(last, None)
    try:
        return RuleShape.model_validate(rest)
    except ValidationError:
        return None


def _place(problem: Problem) -> tuple[int, int]:
    if problem.span is None or problem.field is not None:
        return 0, 0
    return problem.span.line, problem.span.column


def _written_steps(steps: object, path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The steps and groups by path, from data whose shape may be wrong."""
    for number, step in enumerate(steps if isinstance(steps, list) else ()):
        if isinstance(step, dict):
            here = (*path, number)
            yield here, step
            yield from _written_steps(step.get("group"), (*here, "group"))


def _texts(data: Mapping[str, Any]) -> dict[Path, str]:
    """The text of each expression in the data by path, stripped. What is empty as it was written
    is left to the shape."""
    key, emit = data.get("key"), data.get("emit")
    measures = emit.get("measures") if isinstance(emit, dict) else None
    found: dict[Path, object] = {}
    for number, text in enumerate(key if isinstance(key, list) else [key]):
        found[("key", number)] = text
    for path, step in _written_steps(data.get("pattern"), ("pattern",)):
        found |= {(*path, field): step.get(field) for field in ("where", "until")}
    for name, text in measures.items() if isinstance(measures, dict) else ():
        found[("emit", "measures", name)] = text
    return {path: text.strip() for path, text in found.items() if text and isinstance(text, str)}


def _read_expressions(places: Places) -> tuple[dict[Path, Expression], list[Problem]]:
    """The expressions by path; those that are wrong are left out, and said."""
    names = frozenset(places.steps.values())
    expressions: dict[Path, Expression] = {}
    problems: list[Problem] = []

    @cache  # by aliases, one text may be the condition of thousands of steps
    def read(text: str, root: str) -> Expression | ExpressionError:
        steps = frozenset() if root == "key" else names
        try:
            return parse(text, steps=steps, measure=root == "emit")
        except ExpressionError as error:
            return error

    for path, text in places.texts.items():
        if len(problems) > MOST_PROBLEMS:
            break
        found = read(text, str(path[0]))
        if isinstance(found, Expression):
            expressions[path] = found
        else:
            cut = _CUT if places.ends_at_comment(path) and _is_open(text) else None
            for problem in {p.message: p for p in reversed(found.problems)}.values():
                offsets = (problem.start, problem.end)
                allowed = cut or problem.allowed
                problems.append(
                    places.problem(problem.message, path, allowed=allowed, offsets=offsets)
                )
    return expressions, problems


_CUT = "quotes around the whole value: ` #` begins a comment in YAML"


def _is_open(text: str) -> bool:
    return any(text.count(quote) % 2 for quote in ("'", '"'))


def _check_words(shape: RuleShape, places: Places) -> list[Problem]:
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
            matches=shape.limits.matches,
        ),
        cooldown_ms=shape.cooldown,
        description=shape.description,
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


if __name__ == "__main__":
    if sys.argv[1:] != ["schema"]:
        sys.exit("usage: python -m service.pattern.document schema")
    sys.stdout.write(write_schema())
