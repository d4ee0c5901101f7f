"""Limits in the running job: the metric, the dead letter, and what each policy keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from tests.e2e.outputs import Found, Outputs, Record, found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

#: Two partial matches, or two events, for one key: the third ``a`` is one too many.
RULES: dict[str, dict[str, Any]] = {
    "oldest": {"partial_matches": 2, "on_limit": "drop_oldest"},
    "newest": {"partial_matches": 2, "on_limit": "reject_new"},
    "paused": {"partial_matches": 2, "on_limit": "pause_rule"},
    "oldest-by-events": {"events": 2, "on_limit": "drop_oldest"},
    "newest-by-events": {"events": 2, "on_limit": "reject_new"},
    "paused-by-events": {"events": 2, "on_limit": "pause_rule"},
}

#: Offsets of the events beyond the limit that begin an episode, in the first run.
EPISODES = (2, 9)


class Runs(NamedTuple):
    """What was written after each run, and the metrics of the first."""

    outputs: tuple[Outputs, Outputs]
    topic: str
    dropped: Mapping[str, float | None]
    live: Mapping[str, float | None]
    letters: float | None


@pytest.fixture(scope="module")
def runs(new_scenario: Callable[[], Scenario]) -> Runs:
    """Four starts at once, twice as many as allowed; three more; and after a restart, two."""
    scenario = new_scenario()
    stream = Stream(scenario)
    for name, limits in RULES.items():
        scenario.rule(sequence(name, "a", "followed_by b", within="1 hour", limits=limits))
    stream.send(("k", "a", 0), ("k", "a", 1), ("k", "a", 2), ("k", "a", 3), ("k", "b", 4))
    stream.send(("q", "a", 5), ("q", "b", 6))
    stream.send(("k", "a", 7), ("k", "a", 8), ("k", "a", 9), ("k", "b", 10), ("k", "x", 11))
    first = scenario.run()

    def by_rule(metric: str) -> dict[str, float | None]:
        return {name: scenario.metric(metric, rule=name) for name in RULES}

    dropped = by_rule("spark_cep_partial_matches_dropped_total")
    live = by_rule("spark_cep_partial_matches")
    letters = scenario.metric("spark_cep_dead_letters_total", reason="limit_reached")
    stream.send(("k", "a", 20), ("k", "a", 21), ("k", "b", 22), ("k", "x", 9999))
    return Runs((first, scenario.run()), stream.topic, dropped, live, letters)


def kept(rule: str, *starts: int, end: int) -> list[Found]:
    """Matches of the busy key that begin with these offsets."""
    return [found(rule, "k", at(end), a=start, b=end) for start in starts]


@pytest.mark.parametrize("rule", RULES)
def test_what_is_kept(runs: Runs, rule: str) -> None:
    """The newest starts, the oldest, or none; another key is not touched; nothing times out."""
    policy = rule.partition("-")[0]
    of_k = {
        "oldest": [*kept(rule, 2, 3, end=4), *kept(rule, 8, 9, end=10)],
        "newest": [*kept(rule, 0, 1, end=4), *kept(rule, 7, 8, end=10)],
        "paused": [],
    }[policy]
    of_q = [found(rule, "q", at(6), a=5, b=6)]
    assert runs.outputs[0].of(rule) == ([*of_k, *of_q], [])


@pytest.mark.parametrize("rule", RULES)
def test_later_and_after_a_restart(runs: Runs, rule: str) -> None:
    """What fits the limit again matches; a paused rule stays paused for its key."""
    before = runs.outputs[0].of(rule)[0]
    new = [match for match in runs.outputs[1].of(rule)[0] if match not in before]
    ended = [match for match in new if match.time == at(22)]
    assert len(new) == len(ended) == (0 if rule.startswith("paused") else 2)
    assert runs.outputs[1].of(rule)[1] == []


def letters_of(outputs: Outputs, rule: str) -> list[Record]:
    """The dead letters that name the rule, by offset."""
    letters = [letter for letter in outputs.dead_letters if letter.body["rule_id"] == rule]
    return sorted(letters, key=lambda letter: letter.body["offset"])


@pytest.mark.parametrize("rule", RULES)
def test_dead_letters(runs: Runs, rule: str) -> None:
    """One for each episode, with the event's coordinates, the bound and the policy; none later."""
    letters = letters_of(runs.outputs[1], rule)
    expected = EPISODES[:1] if rule.startswith("paused") else EPISODES
    assert [letter.body["offset"] for letter in letters] == list(expected)
    limits = RULES[rule]
    for letter in letters:
        body = letter.body
        assert (body["reason"], body["rule_id"]) == ("limit_reached", rule)
        assert (body["topic"], body["partition"]) == (runs.topic, 0)
        assert limits["on_limit"] in body["detail"]
        (bound,) = (name for name in limits if name != "on_limit")
        assert f"{limits[bound]} {bound.replace('_', ' ')}" in body["detail"]


def test_metrics(runs: Runs) -> None:
    """What was dropped is counted by rule, dead letters by reason; what lives is within limits."""
    assert runs.dropped == dict.fromkeys(RULES, 3)
    assert runs.letters == sum(len(letters_of(runs.outputs[0], rule)) for rule in RULES) == 10
    assert all(not live for live in runs.live.values())


def test_matches_of_one_event(scenario: Scenario) -> None:
    """An event that completes more than the rule allows: the newest are written, the rest is
    counted, and the event is told of; an event that completes as many as allowed is not."""
    stream = Stream(scenario)
    limits = {"matches": 2}
    scenario.rule(sequence("many", "a", "followed_by_any z", within="1 hour", limits=limits))
    stream.send(("k", "a", 0), ("k", "a", 1), ("k", "z", 2), ("k", "a", 3), ("k", "z", 4))
    stream.send(("k", "x", 9))
    outputs = scenario.run()
    assert outputs.of("many")[0] == [
        found("many", "k", at(2), a=0, z=2), found("many", "k", at(2), a=1, z=2),
        found("many", "k", at(4), a=1, z=4), found("many", "k", at(4), a=3, z=4),
    ]  # fmt: skip
    (letter,) = letters_of(outputs, "many")
    assert (letter.body["offset"], letter.body["reason"]) == (4, "limit_reached")
    assert scenario.metric("spark_cep_matches_dropped_total", rule="many") == 1
    assert scenario.metric("spark_cep_partial_matches_dropped_total", rule="many") == 0
