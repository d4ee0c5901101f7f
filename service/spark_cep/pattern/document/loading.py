"""Rule documents: YAML or JSON text in, rules out, or every problem of the text at once.

A text is read in stages: plain data with places (``spark_cep.documents``), its shape (``shape``),
the SQL expressions in it, the tree, and the checks of the tree (``validation``). Expressions are
read even where the shape is wrong, so one look shows both; the tree is checked only once the shape
is right. What is right of a wrong rule can still be held against schemas (:func:`examine_rules`).

``python -m spark_cep.pattern.document.loading schema`` prints the JSON Schema of a document, which
is kept in ``schemas/rule.schema.json``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from spark_cep.documents.places import Path, Places
from spark_cep.documents.reading import UNREADABLE, Document, read_documents
from spark_cep.errors import MOST_PROBLEMS, Problem, RuleSetError
from spark_cep.pattern.checks import sql_rule
from spark_cep.pattern.checks.validation import (
    check_rule,
    loop_on_single,
    optional_after_greedy,
    place_findings,
)
from spark_cep.pattern.document.allowed import (
    Allowed,
    codes_of,
    read_comments,
    wrong_comments,
)
from spark_cep.pattern.document.canonical import to_yaml
from spark_cep.pattern.document.expression_texts import (
    expression_texts,
    read_expressions,
    written_steps,
)
from spark_cep.pattern.document.rule_of_shape import rule_of_fields, rule_of_query, rule_of_steps
from spark_cep.pattern.document.schema import rule_schema
from spark_cep.pattern.document.shape import RuleFields, RuleShape, SqlRuleShape, StepShape
from spark_cep.pattern.document.shape_problems import shape_problems
from spark_cep.pattern.document.sql_file import SUFFIX as SQL_SUFFIX
from spark_cep.pattern.document.sql_file import read_sql_file
from spark_cep.pattern.sql import examine_query
from spark_cep.pattern.tree import Contiguity, Rule
from spark_cep.pattern.ververica.rewriting import rewritten

_Fields = TypeVar("_Fields", bound=RuleFields)
#: The field with a rule's test cases (:mod:`spark_cep.cases`).
CASES = "cases"
_ONE_RULE = "`id: …` at the beginning of a line, without `- `; `---` on a line between two rules"
_SCHEMAS = "schemas in another folder, named by `--schema` or in the settings"
#: Documents that people keep beside rules: a key of each, what it is, and where it belongs.
_OTHERS = {
    "$schema": ("this is a JSON Schema", _SCHEMAS),
    "fields": ("this is a schema of Avro", _SCHEMAS),
    "inputs": ("these are settings of a job", "settings in another folder"),
    CASES: ("these are test cases", "a file whose name ends with `.cases.yaml`"),
}
_SELECT = re.compile(r"SELECT\b", re.IGNORECASE)
_NO_NAME = re.compile(r"[^\w.$-]")


@dataclass(frozen=True)
class LoadedRule:
    """A rule that may run, the warnings about it, and where its parts stand in the text.
    ``allowed``: its comments that allow warnings; ``silenced``: those that are."""

    rule: Rule
    warnings: tuple[Problem, ...]
    places: Places
    allowed: tuple[Allowed, ...] = ()
    silenced: tuple[Problem, ...] = ()

    def divided(self, warnings: Iterable[Problem]) -> tuple[list[Problem], list[Problem]]:
        """Further warnings about the rule: those to tell, and those that its comments allow."""
        codes = codes_of(self.allowed)
        told: list[Problem] = []
        silenced: list[Problem] = []
        for warning in warnings:
            (silenced if warning.code in codes else told).append(warning)
        return told, silenced

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
    return _examined(examine_documents(text, source, given), source)


def examine_sql_file(text: str, source: str) -> tuple[list[LoadedRule], list[Problem]]:
    """Examine a file with a statement (:mod:`spark_cep.pattern.document.sql_file`)."""
    return _examined([_load(read_sql_file(text, source))], source)


def _examined(
    read: Sequence[tuple[LoadedRule | None, list[Problem]]], source: str
) -> tuple[list[LoadedRule], list[Problem]]:
    if not read:
        return [], [Places(source, ("",)).problem("there is no rule", (), allowed="a rule or more")]
    loaded = [rule for rule, _ in read if rule is not None]
    return loaded, [problem for _, problems in read for problem in problems]


def examine_documents(
    text: str, source: str, given: Mapping[str, object] = MappingProxyType({})
) -> list[tuple[LoadedRule | None, list[Problem]]]:
    """Examine each document: yield its rule, as far as it could be read, and its problems."""
    return [_load(_completed(document, given)) for document in read_documents(text, source)]


def _completed(document: Document, given: Mapping[str, object]) -> Document:
    if not given or not isinstance(document.data, dict):
        return document
    return replace(document, data={**given, **document.data})


def _no_mapping(data: object, places: Places) -> Problem:
    allowed = "`id: …`, `pattern: …` and other keys"
    if isinstance(data, list):
        allowed = _ONE_RULE
    elif isinstance(data, str) and _SELECT.match(data):
        allowed = f"a statement in SQL in a file whose name ends with `{SQL_SUFFIX}`"
    return places.problem("a rule must be a mapping", (), allowed=allowed)


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
            problems.append(_no_mapping(data, document.places))
        return None, problems
    if "id" not in data and isinstance(data.get("rules"), list):
        message = "a document is one rule, without `rules` around it"
        problem = document.places.problem(message, ("rules",), allowed=_ONE_RULE, at="key")
        return None, [problem]
    other = next((key for key in _OTHERS if key in data), None)
    if other is not None and not data.keys() & {"id", "pattern", sql_rule.FIELD}:
        what, allowed = _OTHERS[other]
        return None, [document.places.problem(f"{what}, not a rule", (), allowed=allowed)]
    rule_id = data.get("id")
    # Also where it is no valid Unicode: problems are written to logs and topics.
    named = rule_id.encode(errors="replace").decode() if isinstance(rule_id, str) else None
    around = replace(document.places, rule=named)
    in_sql = sql_rule.FIELD in data
    if in_sql:
        field_problems = sql_rule.beside_statement(data, around)
        data = {n: value for n, value in data.items() if n not in sql_rule.IN_STATEMENT}
    else:
        ordinary, around, field_problems = rewritten(data, around)
        if ordinary is None:
            return None, field_problems
        data = ordinary
    written = written_steps(data.get("pattern"), ("pattern",))
    steps = {path: step["step"] for path, step in written if isinstance(step.get("step"), str)}
    places = replace(
        around,
        steps=MappingProxyType(steps),
        texts=MappingProxyType(expression_texts(data)),
    )
    wrong = {path: replace(p, rule=places.rule) for path, p in document.problems.items()}
    # In a test case a column may well be NULL.
    of_rule = {name: value for name, value in data.items() if name != CASES}
    empty = islice(_empty(of_rule, ()), MOST_PROBLEMS)
    wrong |= {path: _no_value(path, places) for path in empty if path not in wrong}
    read = (_of_statement if in_sql else _of_steps)(data, places, wrong)
    problems = sorted((*wrong.values(), *field_problems, *read.problems), key=_place)
    if read.rule is None:
        return None, _first(problems, places)
    comments = read_comments(places)
    loaded = LoadedRule(read.rule, (), places, comments)
    told, silenced = loaded.divided(read.warnings)
    warnings = sorted((*told, *wrong_comments(comments, places)), key=_place)
    loaded = replace(loaded, warnings=tuple(warnings), silenced=tuple(silenced))
    return loaded, _first(problems, places)


class _Read(NamedTuple):
    """The parts of a rule that could be read."""

    rule: Rule | None
    problems: list[Problem]
    warnings: list[Problem]


def _of_steps(data: dict[str, Any], places: Places, wrong: Mapping[Path, Problem]) -> _Read:
    """The rule of a document with steps, in which ``wrong`` is known to be."""
    expressions, problems = read_expressions(places)
    try:
        shape = RuleShape.model_validate(data)
    except ValidationError as error:
        misshapen = shape_problems(error, RuleShape, places, wrong)
        rest = _without(RuleShape, data, (*wrong, *misshapen))
        rule = None if rest is None else rule_of_steps(rest, expressions)
        return _Read(rule, [*problems, *misshapen.values()], [])
    rule = replace(rule_of_steps(shape, expressions), source=places.source)
    refused, warnings = check_rule(rule, places)
    return _Read(rule, [*problems, *_check_words(shape, places), *refused], warnings)


def _of_statement(data: dict[str, Any], places: Places, wrong: Mapping[Path, Problem]) -> _Read:
    """Read a document in SQL."""
    text = places.texts.get(sql_rule.PATH)
    query, wrong_parts = (None, []) if text is None else examine_query(text, places.source)
    problems, _ = place_findings(map(sql_rule.finding, wrong_parts), places)
    try:
        shape = SqlRuleShape.model_validate(data)
    except ValidationError as error:
        misshapen = shape_problems(error, SqlRuleShape, places, wrong)
        rest = _without(SqlRuleShape, data, (*wrong, *misshapen))
        rule = None if rest is None or query is None else rule_of_query(rest, query)
        return _Read(rule, [*problems, *misshapen.values()], [])
    if query is None:
        refused, _ = place_findings(sql_rule.check_fields(rule_of_fields(shape)), places)
        return _Read(None, [*problems, *refused], [])
    rule = replace(rule_of_query(shape, query), source=places.source)
    refused, warnings = check_rule(rule, places)
    return _Read(rule, [*problems, *refused], warnings)


def _first(problems: list[Problem], places: Places) -> list[Problem]:
    """Return the first problems, up to the limit of a document, and a note that there may be
    more."""
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
    allowed = "a value; or leave the key out"
    if str(path[-1]).isdigit():
        # What stands behind the comma of `where: amount > 1,5` in braces.
        allowed = "decimals behind a point, as 1.5; quotes around a condition with a comma"
    elif _NO_NAME.search(str(path[-1])):
        allowed = "quotes around a condition with a comma: inside `{…}` a comma ends it"
    return places.problem(message, path, allowed=allowed, at="key")


def _without(kind: type[_Fields], data: Mapping[str, Any], paths: Iterable[Path]) -> _Fields | None:
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
        return kind.model_validate(rest)
    except ValidationError:
        return None


def _place(problem: Problem) -> tuple[int, int]:
    if problem.span is None or problem.field is not None:
        return 0, 0
    return problem.span.line, problem.span.column


def _check_words(shape: RuleShape, places: Places) -> list[Problem]:
    """Return problems of wording, where the tree has one form for two ways to write."""
    problems: list[Problem] = []

    def check(steps: list[StepShape], path: Path) -> None:
        for number, step in enumerate(steps):
            here = (*path, number)
            wrong: list[tuple[str, str, str]] = []
            times = step.times
            if step.optional and times is not None and times.minimum == 0:
                wrong.append(
                    (
                        f"`optional` on `{step.step}`, whose `times` from 0 says it already",
                        "optional",
                        "`times` from 0, or `optional`, not both",
                    )
                )
            elif step.optional and number and steps[number - 1].greedy and _bounded(step):
                wrong.append(optional_after_greedy(step.step, steps[number - 1].step))
            if step.loop == "relaxed" and times is None and not _negative(step):
                wrong.append(loop_on_single(step.step, step.loop))
            for message, field, allowed in wrong:
                problems.append(places.problem(message, (*here, field), allowed=allowed))
            check(step.group or [], (*here, "group"))

    check(shape.pattern, ("pattern",))
    return problems


def _bounded(step: StepShape) -> bool:
    """Return whether ``times: 0..n`` could say the step, so that the tree's check lets it pass."""
    return step.times is not None and step.times.minimum == 1 and step.times.maximum is not None


def _negative(step: StepShape) -> bool:
    return step.after is not None and Contiguity(step.after).negative


if __name__ == "__main__":
    if sys.argv[1:] != ["schema"]:
        sys.exit("usage: python -m spark_cep.pattern.document.loading schema")
    sys.stdout.write(write_schema())
