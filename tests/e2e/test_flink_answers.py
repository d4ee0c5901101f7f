"""The whole job gives the answers of Flink CEP 2.2, many patterns in one query."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance import Case, cases, ververica_json
from tests.conformance.answer import Answer, compare
from tests.conformance.case import document
from tests.conformance.through_spark import answers
from tests.e2e.scenario import Scenario

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

_CASES = list(cases(Path(__file__).parents[1] / "spec" / "flink-answers.jsonl"))
# Of all twelve categories: sixty as rules, thirty others as Ververica's JSON.
_SAMPLES = [(document, _CASES[::2]), (ververica_json.document, _CASES[1::4])]
_SAMPLE = [case for _, chosen in _SAMPLES for case in chosen]


@pytest.fixture(scope="module")
def answered(new_scenario: Callable[[], Scenario]) -> dict[str, Answer]:
    """The job's answers by the id of the case."""
    return {
        case["id"]: answer
        for written, chosen in _SAMPLES
        for case, answer in zip(chosen, answers(chosen, new_scenario, written), strict=True)
    }


@pytest.mark.parametrize("case", _SAMPLE, ids=lambda case: case["id"])
def test_whole_job(answered: dict[str, Answer], case: Case) -> None:
    """The job gives Flink's answer, or refuses what Flink refuses."""
    assert compare(case, answered[case["id"]]) is None
