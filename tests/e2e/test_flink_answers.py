"""The whole job gives the answers of Flink CEP 2.2, many patterns in one query."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance import Case, cases
from tests.conformance.answer import Answer, compare
from tests.conformance.through_spark import answers
from tests.e2e.scenario import Scenario

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

# Every other one: sixty of all twelve categories.
_SAMPLE = list(cases(Path(__file__).parents[1] / "spec" / "flink-answers.jsonl"))[::2]


@pytest.fixture(scope="module")
def answered(new_scenario: Callable[[], Scenario]) -> dict[str, Answer]:
    """The job's answers by the id of the case."""
    given = answers(_SAMPLE, new_scenario)
    return {case["id"]: answer for case, answer in zip(_SAMPLE, given, strict=True)}


@pytest.mark.parametrize("case", _SAMPLE, ids=lambda case: case["id"])
def test_whole_job(answered: dict[str, Answer], case: Case) -> None:
    """The job gives Flink's answer, or refuses what Flink refuses."""
    assert compare(case, answered[case["id"]]) is None
