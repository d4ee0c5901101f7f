"""Records whose output would be larger than a topic takes: a dead letter says so, the job lives."""

from __future__ import annotations

import pytest

from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence
from tests.kafka_access import Sent

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

LARGEST = 999_800  # that the tests' producer sends, with what a record adds


def test_what_does_not_fit_its_topic(scenario: Scenario) -> None:
    """A match whose key is in it twice, a late event with our headers, and a broken record in its
    envelope; what comes behind them is processed."""
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b"))
    long_key = "k" * 600_000
    stream.send((long_key, "a", 0), (long_key, "b", 1), ("k", "a", 2), ("k", "x", 3))
    scenario.run()
    late = stream.event("", "a", 0)
    assert late.value is not None
    late = stream.event("l" * (LARGEST - len(late.value) - 2), "a", 0)
    stream.send(late, Sent(b"\x07" * LARGEST), ("k", "b", 4), ("k", "x", 5))
    outputs = scenario.run()

    assert outputs.of("ab") == ([found("ab", "k", at(4), a=2, b=6)], [])
    assert outputs.late == []
    assert outputs.reasons() == [
        (1, "output_too_large"),
        (4, "output_too_large"),
        (5, "not_framed"),
    ]
    of_match, of_late, of_broken = sorted(outputs.dead_letters, key=lambda r: r.body["offset"])
    assert of_match.body["rule_id"] == "ab"
    for letter in (of_late, of_broken):
        assert letter.body["record_value"] is None
        assert "left out, too large for this topic: the value, 9998" in letter.body["detail"]
    assert scenario.metric("spark_cep_dead_letters_total", reason="output_too_large") == 1
