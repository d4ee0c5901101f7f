"""The outcome of cases as a JUnit file, which CI systems show."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from spark_cep.cases.running.outcome import CaseOutcome
from spark_cep.junit import JUnitCase, JUnitSuite, junit_text
from spark_cep.rules.sources.folder import shown_name


def junit(outcomes: Sequence[CaseOutcome]) -> str:
    """The text of the file: a suite for each file of cases."""
    suites = []
    for path, several in groupby(outcomes, key=lambda each: each.suite.file.path):
        mine = list(several)
        seconds = sum(each.seconds for each in mine)
        suites.append(JUnitSuite(shown_name(path), [_case(each) for each in mine], seconds))
    return junit_text(suites)


def _case(outcome: CaseOutcome) -> JUnitCase:
    file = outcome.suite.file
    group, name = file.rule or file.path.name, outcome.case.name
    if outcome.passed:
        return JUnitCase(group, name, seconds=outcome.seconds)
    result: Final = "failure" if outcome.run.problem is None else "error"
    text = "\n".join([outcome.case.place, *outcome.lines()])
    return JUnitCase(group, name, result, outcome.summary, text, outcome.seconds)
