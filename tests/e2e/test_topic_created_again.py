"""An input topic that is deleted and created again, between two starts and while the job runs."""

from __future__ import annotations

import pytest

from spark_cep.errors import StateError
from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def test_offsets_of_another_topic_are_refused(scenario: Scenario) -> None:
    """With more records than the old one had, the checkpoint's offsets would pass over some of
    them; who wants that says so."""
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b"))
    stream.send(("k", "a", 0), ("k", "b", 1))
    # The second start finds the ids of the first in the offset log, and goes on.
    scenario.run()
    scenario.run()
    scenario.kafka.delete_topics([stream.topic])
    scenario.kafka.create_topics({stream.topic: 1})
    stream.send(("n", "a", 10), ("n", "x", 11), ("n", "a", 12), ("n", "b", 13))
    with pytest.raises(StateError, match=f"^{stream.topic}: deleted and created again since"):
        scenario.run()
    outputs = scenario.decide(source={"fail_on_data_loss": False})
    assert found("ab", "n", at(13), a=2, b=3) in outputs.of("ab")[0]


@pytest.mark.parametrize("pairs", [0, 5], ids=["fewer records", "more records"])
def test_while_the_job_runs(scenario: Scenario, pairs: int) -> None:
    """It ends before anything of the new topic is read, whether that has more records or fewer;
    what it has found stays."""
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b"))
    stream.send(("k", "a", 0), ("k", "b", 1), ("k", "x", 2))
    with pytest.raises(StateError, match="deleted and created again while the job ran"):
        _run_over_another_topic(scenario, stream, pairs)
    assert [match.key for match in scenario.outputs().matches] == [b"k"]


def _run_over_another_topic(scenario: Scenario, stream: Stream, pairs: int) -> None:
    with scenario.running():
        scenario.wait_for(lambda outputs: len(outputs.matches) == 1)
        scenario.kafka.delete_topics([stream.topic])
        scenario.kafka.create_topics({stream.topic: 1})
        stream.send(*[("n", "a", 10), ("n", "b", 11)] * pairs)
        scenario.wait_until_failed()
