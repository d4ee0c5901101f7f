"""The expectations of a back-test as a JUnit file, which CI systems show."""

from __future__ import annotations

from collections.abc import Sequence

from spark_cep.backtest.expectations import ExpectationVerdict
from spark_cep.junit import JUnitCase, JUnitSuite, junit_text


def junit(verdicts: Sequence[ExpectationVerdict], name: str, seconds: float) -> str:
    """The text of the file: a case for each expectation."""
    cases = [_case(each, name) for each in verdicts]
    return junit_text([JUnitSuite(name, cases, seconds)])


def _case(verdict: ExpectationVerdict, suite: str) -> JUnitCase:
    if verdict.failed:
        return JUnitCase(suite, verdict.title, "failure", verdict.wrong or "")
    return JUnitCase(suite, verdict.title, text=verdict.wrong if verdict.warning else None)
