"""Diagnostics of a text, as ``spark-cep check``, ``test`` and ``run`` say it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from spark_cep.cases.document.loading import examine_cases, unknown_names
from spark_cep.config.settings import problems_of_text
from spark_cep.documents.nearest import instead
from spark_cep.errors import Problem, Span
from spark_cep.language.answers import (
    Diagnostic,
    Edit,
    RelatedPlace,
    Severity,
    TextPosition,
    TextRange,
)
from spark_cep.language.documents import Language, OpenDocument
from spark_cep.language.findings import findings_of
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.several_types import InputRecord
from spark_cep.pattern.sql_types import at_input
from spark_cep.rules.rule_set import RuleSet, examine
from spark_cep.rules.sources.source import rule_file


def diagnostics(document: OpenDocument) -> list[Diagnostic]:
    """Everything that is wrong with a text, in the order of the places."""
    if not document.text.strip():
        return []
    found = [_placed(document, severity, each) for severity, each in _found(document)]
    return sorted(dict.fromkeys(found), key=lambda each: (each.range, each.severity))


def rules_in(document: OpenDocument) -> RuleSet:
    """The rules of a text, as far as they can be read, with their problems."""
    return examine([rule_file(document.text, document.name)], document.name)


def records_of(document: OpenDocument, loaded: LoadedRule) -> Sequence[InputRecord]:
    """The record types of a rule's events, as far as they are known."""
    query = loaded.rule.query
    return document.records(loaded.rule.events if query is None else [query.input])


def _found(document: OpenDocument) -> Iterator[tuple[Severity, Problem]]:
    path = Path(document.name)
    if document.language is Language.SETTINGS:
        for problem in problems_of_text(path, document.text):
            yield Severity.ERROR, problem
        return
    if document.language is Language.CASES:
        rules: Sequence[LoadedRule] = document.rules
    else:
        read = rules_in(document)
        rules = read.loaded
        found = findings_of(read, lambda one: records_of(document, one))
        inputs = (each for one in rules for each in _unknown_inputs(document, one))
        for problem in (*found.problems, *inputs):
            yield Severity.ERROR, problem
        # With a problem in one of them, those of the others count all the same.
        wrong = {problem.rule for problem in found.problems}
        sound = (one for one in rules if wrong and one.rule.id not in wrong)
        for warning in (*found.warnings, *(each for one in sound for each in one.warnings)):
            yield Severity.WARNING, warning
    for problem in _of_cases(path, document.text, rules):
        yield Severity.ERROR, problem


def _of_cases(path: Path, text: str, rules: Sequence[LoadedRule]) -> Iterator[Problem]:
    """Problems of test cases, among them names of rules and steps that do not exist."""
    files, problems = examine_cases(path, text)
    yield from problems
    for file in files:
        mine = [one for one in rules if file.rule in (None, one.rule.id)]
        for case in file.cases if mine else ():
            yield from unknown_names(case, mine)


def _unknown_inputs(document: OpenDocument, loaded: LoadedRule) -> Iterator[Problem]:
    """Problems of inputs that a rule names and that there are not, where inputs are known."""
    inputs = document.inputs
    for number, name in enumerate(loaded.rule.events if inputs is not None else ()):
        if inputs is not None and name not in inputs:
            message, allowed = f"there is no input `{name}`", instead(name, inputs, "inputs")
            if loaded.rule.query is not None:
                yield at_input(loaded, message, allowed)
            else:
                yield loaded.places.problem(message, ("events", number), allowed=allowed)


def _placed(document: OpenDocument, severity: Severity, problem: Problem) -> Diagnostic:
    around = _range(document, problem.span)
    return Diagnostic(
        around,
        severity,
        problem.message,
        problem.code,
        problem.allowed,
        problem.rule,
        problem.step,
        tuple(RelatedPlace(each.message, _range(document, each.span)) for each in problem.related),
        fix=None if problem.fix is None else _fix(document, around, problem.fix),
    )


def _range(document: OpenDocument, span: Span | None) -> TextRange:
    """The characters of a span, all of the first line where there is none."""
    if span is None:
        return TextRange(TextPosition(0, 0), TextPosition(0, len(document.lines[0])))
    line = min(span.line, len(document.lines)) - 1
    length = len(document.lines[line])
    start = min(span.column - 1, length)
    return TextRange(
        TextPosition(line, start), TextPosition(line, min(start + span.length, length))
    )


def _fix(document: OpenDocument, around: TextRange, text: str) -> Edit:
    """The change that a fix is. A comment that goes leaves no blanks, and no empty line."""
    (line, start), end = around
    if text:
        return Edit(around, text)
    before = document.lines[line][:start].rstrip()
    if before or line + 1 >= len(document.lines):
        return Edit(TextRange(TextPosition(line, len(before)), end), "")
    return Edit(TextRange(TextPosition(line, 0), TextPosition(line + 1, 0)), "")
