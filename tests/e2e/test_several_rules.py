"""Rules with keys of their own side by side, and the early filter under strict contiguity."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.e2e.outputs import Outputs, found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


@pytest.fixture(scope="module")
def outputs(new_scenario: Callable[[], Scenario]) -> Outputs:
    """Rules by name, by value, by both and by nothing, over two inputs."""
    scenario = new_scenario()
    stream, other = Stream(scenario), Stream(scenario, "others")
    number = "CAST(v AS INT)"
    for rule in (
        sequence("by-key", "a", "followed_by b", events="events"),
        sequence("by-value", "a", "followed_by b", key=number, events="events"),
        sequence("by-both", "a", "followed_by b", key=["k", number], events="events"),
        sequence("global", "a", "followed_by b", "followed_by c", key=None, events="events"),
        sequence("two-inputs", "c", "followed_by d", key="k", events=["events", "others"]),
        sequence("strict", "a", "next b", events="events"),
        sequence("not-next", "c", "not_next d", "followed_by e", events="events"),
    ):
        scenario.rule(rule)
    stream.send(
        ("k1", "a", 0, 1),
        ("k2", "b", 1, 1),
        ("k1", "irrelevant", 2, 2),
        ("k1", "b", 3, 2),
        ("k3", "a", 4, 3),
        ("k2", "irrelevant", 5, 9),
        ("k3", "b", 6, 3),
        ("k4", "c", 7, 4),
        ("k4", "irrelevant", 8, 4),
        ("k4", "e", 9, 4),
    )
    other.send(("k4", "d", 7.5, 9), ("k3", "d", 8, 9))
    for each in (stream, other):
        each.send(("end", "end", 1000))
    return scenario.run()


def test_each_rule_has_its_own_key(outputs: Outputs) -> None:
    """The same events match by one column, by another, and by both together."""
    assert outputs.of("by-key")[0] == [
        found("by-key", "k1", at(3), a=0, b=3),
        found("by-key", "k3", at(6), a=4, b=6),
    ]
    assert outputs.of("by-value")[0] == [
        found("by-value", "1", at(1), a=0, b=1),
        found("by-value", "3", at(6), a=4, b=6),
    ]
    assert outputs.of("by-both")[0] == [found("by-both", '["k3","3"]', at(6), a=4, b=6)]


def test_a_rule_without_key_sees_all_events(outputs: Outputs) -> None:
    """One global partition: its record has no key."""
    matches = [m for m in outputs.matches if m.body["rule_id"] == "global"]
    assert sorted(m.found.steps for m in matches) == [
        (("a", (0,)), ("b", (1,)), ("c", (7,))),
        (("a", (4,)), ("b", (6,)), ("c", (7,))),
    ]
    assert {m.key for m in matches} == {None}


def test_one_rule_reads_two_inputs(outputs: Outputs) -> None:
    """Events of two topics are one stream, ordered by their time."""
    assert outputs.of("two-inputs")[0] == [found("two-inputs", "k4", at(7.5), c=7, d=0)]


def test_an_irrelevant_event_breaks_a_strict_sequence(outputs: Outputs) -> None:
    """An event that no condition wants, of the same key, stands between; of another it does not."""
    assert outputs.of("strict")[0] == [found("strict", "k3", at(6), a=4, b=6)]


def test_an_irrelevant_event_decides_not_next(outputs: Outputs) -> None:
    """What follows directly is not d, so the sequence goes on."""
    assert outputs.of("not-next")[0] == [found("not-next", "k4", at(9), c=7, e=9)]
