"""A sample of Trino's answers to MATCH_RECOGNIZE, given by the row pattern matcher.

``spec/trino-answers.jsonl`` holds a case a line, one of each kind: columns and rows, the text of
the clause, and the rows that Trino 435 and 483 answer with, or why they refuse it.
"""

from __future__ import annotations

import pathlib

import pytest

from tests.conformance import cases
from tests.conformance.match_recognize import ON_PURPOSE, Case, difference

pytestmark = pytest.mark.slow

CASES = list(cases(pathlib.Path(__file__).parent / "spec" / "trino-answers.jsonl"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_matcher(case: Case) -> None:
    """The matcher gives Trino's answer, or refuses what Trino refuses; where it differs on purpose,
    it does."""
    reason = ON_PURPOSE.get(case["features"][0])
    found = difference(case)
    assert found is None if reason is None else reason in (found or "")


def test_count_distinct() -> None:
    """COUNT(DISTINCT …), which Trino refuses, counts values once."""
    case = {
        "id": "count-distinct",
        "columns": {"k": "VARCHAR", "ts": "BIGINT", "v": "BIGINT"},
        "rows": [["x", 1, 5], ["x", 2, 5], ["x", 3, 7], ["x", 4, None]],
        "match_recognize": "PARTITION BY k ORDER BY ts MEASURES COUNT(DISTINCT v) AS n "
        "PATTERN (A+) DEFINE A AS TRUE",
        "select": "*",
        "features": ["aggregate-distinct"],
        "expect": {"columns": ["k", "n"], "rows": [["x", 2]]},
    }
    assert difference(case) is None
    assert difference({**case, "expect": {"columns": ["k", "n"], "rows": [["x", 3]]}}) is not None
