"""The results of ``spark-cep check`` for programs: JSON, SARIF 2.1.0, annotations of GitHub."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from spark_cep import __version__
from spark_cep.cli.authoring.checking import CheckReport
from spark_cep.cli.authoring.forms import CheckForm
from spark_cep.errors import Problem, Span
from spark_cep.pattern.check_codes import Code

_PAGE: Final = "docs/checks.md"
_REFUSED: Final = "refused"
_NOTED: Final = "noted"
#: The codes of results that have none of their own.
_OTHERS: Final = {
    _REFUSED: "A reason for which a rule cannot run",
    _NOTED: "A remark on a set of rules",
}


def written(report: CheckReport, form: CheckForm) -> str:
    """The report in a form for programs."""
    match form:
        case CheckForm.SARIF:
            return json.dumps(_sarif(report), indent=2, ensure_ascii=False) + "\n"
        case CheckForm.GITHUB:
            return "".join(f"{line}\n" for line in _annotations(report))
    return json.dumps(_document(report), indent=2, ensure_ascii=False) + "\n"


def _results(report: CheckReport) -> Iterator[tuple[str, Problem]]:
    """Each result with its level."""
    yield from (("error", problem) for problem in report.problems)
    yield from (("warning", warning) for warning in report.warnings)


def _code(level: str, problem: Problem) -> str:
    return problem.code or (_REFUSED if level == "error" else _NOTED)


# JSON.


def _document(report: CheckReport) -> dict[str, Any]:
    return {
        "errors": len(report.problems),
        "warnings": len(report.warnings),
        "results": [_entry(level, problem) for level, problem in _results(report)],
    }


def _entry(level: str, problem: Problem) -> dict[str, Any]:
    span = _placed(problem)
    return {
        "level": level,
        "code": _code(level, problem),
        "message": problem.message,
        "help": problem.allowed,
        "file": problem.source,
        "line": span and span.line,
        "column": span and span.column,
        "end_column": span and span.column + span.length,
        "rule": problem.rule,
        "step": problem.step,
        "field": problem.field,
        "fix": problem.fix,
        "related": [
            {
                "message": each.message,
                "line": each.span.line,
                "column": each.span.column,
                "end_column": each.span.column + each.span.length,
            }
            for each in problem.related
        ],
    }


def _placed(problem: Problem) -> Span | None:
    """The place of a problem in its file."""
    return problem.span if problem.field is None else None


# SARIF.


def _sarif(report: CheckReport) -> dict[str, Any]:
    rules = {code.value: code.means for code in Code} | _OTHERS
    numbers = {code: number for number, code in enumerate(rules)}
    silenced = [(each, reason) for each, reason in report.silenced]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "spark-cep",
                        "semanticVersion": __version__,
                        "rules": [_rule(code, means) for code, means in rules.items()],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [
                    *(_result(level, each, numbers) for level, each in _results(report)),
                    *(
                        _result("warning", each, numbers)
                        | {"suppressions": [{"kind": "inSource", "justification": reason}]}
                        for each, reason in silenced
                    ),
                ],
            }
        ],
    }


def _rule(code: str, means: str) -> dict[str, Any]:
    level = "error" if code == _REFUSED else "warning"
    rule: dict[str, Any] = {
        "id": code,
        "shortDescription": {"text": means},
        "defaultConfiguration": {"level": level},
    }
    if code not in _OTHERS:
        rule["help"] = {"text": f"See {_PAGE}, section {code}."}
    return rule


def _result(level: str, problem: Problem, numbers: dict[str, int]) -> dict[str, Any]:
    code = _code(level, problem)
    text = problem.message if problem.allowed is None else f"{problem.message}\n{problem.allowed}"
    result: dict[str, Any] = {
        "ruleId": code,
        "ruleIndex": numbers[code],
        "level": level,
        "message": {"text": text},
    }
    if problem.source is not None:
        place: dict[str, Any] = {"artifactLocation": {"uri": _uri(problem.source)}}
        span = _placed(problem)
        if span is not None:
            place["region"] = _region(span)
        location: dict[str, Any] = {"physicalLocation": place}
        if problem.rule is not None:
            location["logicalLocations"] = [{"name": problem.rule, "kind": "rule"}]
        result["locations"] = [location]
        if problem.related:
            result["relatedLocations"] = [
                {
                    "message": {"text": each.message},
                    "physicalLocation": {
                        "artifactLocation": place["artifactLocation"],
                        "region": _region(each.span),
                    },
                }
                for each in problem.related
            ]
        if problem.fix is not None and span is not None:
            change = {
                "artifactLocation": place["artifactLocation"],
                "replacements": [
                    {"deletedRegion": _region(span), "insertedContent": {"text": problem.fix}}
                ],
            }
            result["fixes"] = [
                {"description": {"text": "Write what is meant."}, "artifactChanges": [change]}
            ]
    return result


def _uri(source: str) -> str:
    return quote(PurePath(source).as_posix(), safe="/:@")


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.line,
        "endColumn": span.column + span.length,
    }


# Annotations of GitHub's workflows.


def _annotations(report: CheckReport) -> Iterator[str]:
    for level, problem in _results(report):
        properties = {"file": problem.source or ""}
        span = _placed(problem)
        if span is not None:
            end = span.column + max(span.length, 1) - 1
            properties |= {"line": str(span.line), "col": str(span.column), "endColumn": str(end)}
        about = "" if problem.rule is None else f"rule {problem.rule}: "
        properties["title"] = f"{about}{_code(level, problem)}"
        shown = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
        help_ = "" if problem.allowed is None else f"\nhelp: {problem.allowed}"
        yield f"::{level} {shown}::{_data(problem.message + help_)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
