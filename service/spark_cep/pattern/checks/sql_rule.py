"""Rules in SQL: their fields in a document, and the checks of their tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from spark_cep.documents.places import Path, Places
from spark_cep.errors import Problem
from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.checks.findings import Finding
from spark_cep.pattern.checks.references import check_references
from spark_cep.pattern.expressions.problems import TextProblem, TextWarning
from spark_cep.pattern.sql import endless_parts, order_problems, stream_warnings, work_warnings
from spark_cep.pattern.tree import Limits, PreviousVersion, Rule

FIELD: Final = "sql"
PATH: Final[Path] = (FIELD,)

IN_STATEMENT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "events": "FROM names the input",
        "key": "PARTITION BY names the columns of the key",
        "pattern": "PATTERN and DEFINE say what is looked for",
        "within": "WITHIN INTERVAL '10' MINUTE behind PATTERN ( … )",
        "after_match": "AFTER MATCH SKIP … says where the search goes on",
        "emit": "MEASURES and SELECT say what is put out",
        "cooldown": "no `cooldown`; a match goes out as often as the statement finds it",
        "ververica": "one of both",
        "java_classes": "no `java_classes`, which goes with `ververica`",
    }
)
"""Fields of other rules that a statement replaces, and the clause of SQL for each."""


def beside_statement(data: Mapping[str, Any], places: Places) -> list[Problem]:
    """Return a problem for each field that the document must not have beside its statement."""
    return [
        places.problem(f"`{name}` cannot stand beside `{FIELD}`", (name,), allowed=help_, at="key")
        for name, help_ in IN_STATEMENT.items()
        if name in data
    ]


def check_sql(rule: Rule) -> Iterator[Finding]:
    """Every reason to refuse a rule in SQL that has been read, statement and fields."""
    yield from check_fields(rule)
    if rule.query is not None:
        yield from map(finding, order_problems(rule.query))


def check_fields(rule: Rule) -> Iterator[Finding]:
    """Every reason to refuse the fields around the statement, which may not be readable."""
    yield from check_references(rule)
    limits, default = rule.limits, Limits()
    if limits.matches != default.matches:
        message = "`limits.matches` does not apply to a rule in SQL"
        allowed = "no `matches`: a row makes one match final after the other"
        yield Finding(message, ("limits", "matches"), allowed)
    if limits.on_limit is not default.on_limit:
        message = f"`on_limit: {limits.on_limit.value}` does not apply to a rule in SQL"
        allowed = "no `on_limit`: beyond a limit the attempt is given up, and a dead letter says so"
        yield Finding(message, ("limits", "on_limit"), allowed)
    if rule.previous_version is PreviousVersion.CARRY:
        message = "`previous_version: carry` does not apply to a rule in SQL"
        yield Finding(message, ("previous_version",), "`restart` or `drain`")


def warn_sql(rule: Rule) -> Iterator[Finding]:
    """Every warning about a rule in SQL."""
    if rule.query is not None:
        # Not so of a job whose input ends, nor of a test, which closes its own.
        refused = "a job whose input does not end refuses this rule: {}".format
        for problem in endless_parts(rule.query):
            message = refused(problem.message)
            yield replace(finding(problem), message=message, code=Code.ENDLESS_PATTERN)
        yield from map(warned, stream_warnings(rule.query))
        work = work_warnings(rule.query, rule.limits.work, rule.limits.events)
        yield from map(warned, work)


def finding(problem: TextProblem) -> Finding:
    """Return a problem of the statement as a finding about the rule."""
    return Finding(problem.message, PATH, problem.allowed, offsets=problem.span, fix=problem.fix)


def warned(warning: TextWarning) -> Finding:
    """Return a warning about the statement as a finding about the rule."""
    return Finding(
        warning.message,
        PATH,
        warning.allowed,
        code=warning.code,
        offsets=warning.span,
        fix=warning.fix,
    )
