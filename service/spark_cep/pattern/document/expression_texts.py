"""The expressions of a rule document: where their texts stand, and what is read of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from spark_cep.documents.places import Path, Places
from spark_cep.errors import MOST_PROBLEMS, Problem
from spark_cep.pattern.checks import sql_rule
from spark_cep.pattern.expressions import Expression, ExpressionError, parse

_CUT: Final = "quotes around the whole value: ` #` begins a comment in YAML"


def written_steps(steps: object, path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The steps and groups by path, from data whose shape may be wrong."""
    for number, step in enumerate(steps if isinstance(steps, list) else ()):
        if isinstance(step, dict):
            here = (*path, number)
            yield here, step
            yield from written_steps(step.get("group"), (*here, "group"))


def expression_texts(data: Mapping[str, Any]) -> dict[Path, str]:
    """The text of each expression in the data by path, stripped. What is empty as it was written
    is left to the shape."""
    key, emit = data.get("key"), data.get("emit")
    measures = emit.get("measures") if isinstance(emit, dict) else None
    texts: dict[Path, object] = {}
    for number, text in enumerate(key if isinstance(key, list) else [key]):
        texts[("key", number)] = text
    for path, step in written_steps(data.get("pattern"), ("pattern",)):
        texts |= {(*path, field): step.get(field) for field in ("where", "until")}
    for name, text in measures.items() if isinstance(measures, dict) else ():
        texts[("emit", "measures", name)] = text
    texts[sql_rule.PATH] = data.get(sql_rule.FIELD)
    return {path: text.strip() for path, text in texts.items() if text and isinstance(text, str)}


def read_expressions(places: Places) -> tuple[dict[Path, Expression], list[Problem]]:
    """The expressions by path; those that are wrong are left out, with their problems."""
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
        result = read(text, str(path[0]))
        if isinstance(result, Expression):
            expressions[path] = result
        else:
            cut = _CUT if places.ends_at_comment(path) and _is_open(text) else None
            for problem in {p.message: p for p in reversed(result.problems)}.values():
                allowed = cut or problem.allowed
                fix = None if cut else problem.fix
                problems.append(
                    places.problem(
                        problem.message, path, allowed=allowed, offsets=problem.span, fix=fix
                    )
                )
    return expressions, problems


def _is_open(text: str) -> bool:
    return any(text.count(quote) % 2 for quote in ("'", '"'))
