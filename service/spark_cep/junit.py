"""Test results as the text of a JUnit file, which CI systems show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring


@dataclass(frozen=True, slots=True)
class JUnitCase:
    """The result of one test. ``text`` is the detail of a failure or error, and the output of a
    test that passed."""

    group: str
    name: str
    result: Literal["passed", "failure", "error"] = "passed"
    message: str = ""
    text: str | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class JUnitSuite:
    """The tests of one suite, and the time that they took together."""

    name: str
    cases: Sequence[JUnitCase]
    seconds: float


def junit_text(suites: Sequence[JUnitSuite]) -> str:
    """The text of the file."""
    root = Element("testsuites", _totals(suites))
    for suite in suites:
        inside = SubElement(root, "testsuite", {"name": suite.name, **_totals([suite])})
        for case in suite.cases:
            _add(inside, case)
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _totals(suites: Sequence[JUnitSuite]) -> dict[str, str]:
    results = [case.result for suite in suites for case in suite.cases]
    return {
        "tests": str(len(results)),
        "failures": str(results.count("failure")),
        "errors": str(results.count("error")),
        "time": _time(sum(suite.seconds for suite in suites)),
    }


def _add(suite: Element, case: JUnitCase) -> None:
    attributes = {"classname": case.group, "name": case.name}
    if case.seconds is not None:
        attributes["time"] = _time(case.seconds)
    element = SubElement(suite, "testcase", attributes)
    if case.result != "passed":
        SubElement(element, case.result, {"message": case.message}).text = case.text
    elif case.text is not None:
        SubElement(element, "system-out").text = case.text


def _time(seconds: float) -> str:
    return f"{seconds:.3f}"
