"""The outcome of cases as a JUnit file, which CI systems show."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent, tostring

from spark_cep.cases.outcome import CaseOutcome
from spark_cep.rules.sources.folder import shown_name


def junit(outcomes: Sequence[CaseOutcome]) -> str:
    """The text of the file: a suite for each file of cases."""
    root = Element("testsuites", _totals(outcomes))
    for path, several in groupby(outcomes, key=lambda each: each.suite.file.path):
        mine = list(several)
        suite = SubElement(root, "testsuite", {"name": shown_name(path), **_totals(mine)})
        for each in mine:
            _add(suite, each)
    tree = ElementTree(root)
    indent(tree)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _totals(outcomes: Sequence[CaseOutcome]) -> dict[str, str]:
    errors = sum(each.run.problem is not None for each in outcomes)
    failed = sum(not each.passed for each in outcomes)
    return {
        "tests": str(len(outcomes)),
        "failures": str(failed - errors),
        "errors": str(errors),
        "time": f"{sum(each.seconds for each in outcomes):.3f}",
    }


def _add(suite: Element, outcome: CaseOutcome) -> None:
    file = outcome.suite.file
    of = {"classname": file.rule or file.path.name, "name": outcome.case.name}
    case = SubElement(suite, "testcase", {**of, "time": f"{outcome.seconds:.3f}"})
    if not outcome.passed:
        kind = "failure" if outcome.run.problem is None else "error"
        told = SubElement(case, kind, {"message": outcome.summary})
        told.text = "\n".join([outcome.case.place, *outcome.lines()])
