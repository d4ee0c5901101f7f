"""Rules that change between two runs from one checkpoint: which partial matches stay, which go.

Partial matches belong to a rule's id, version and plan. All changes are made in one rules folder at
once, between the first and the second run; a third run shows what a rule that was off has kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.e2e.outputs import Found, Outputs, found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

#: Keys that have an event in the first run and none in the second.
SILENT = tuple(f"silent-{number}" for number in range(12))


def rule(rule_id: str, **changes: Any) -> dict[str, Any]:
    """``a``, then a ``b`` whose value is larger, within an hour."""
    made = sequence(rule_id, "a", "followed_by b", within="1 hour")
    made["pattern"][1]["where"] += " AND v > LAST(a.v)"
    return {**made, **changes}


def spelled_otherwise(rule_id: str) -> dict[str, Any]:
    """The same rule in other words."""
    made = rule(rule_id, within={"max": "60 minutes"}, after_match="no_skip")
    made["pattern"][0]["where"] = "(name='a')"
    return dict(reversed(made.items()))


def another_condition(rule_id: str) -> dict[str, Any]:
    """Another pattern."""
    made = rule(rule_id, version=2)
    made["pattern"][1]["where"] = "name = 'b' AND v >= LAST(a.v)"
    return made


#: The rule as it is in the second run, for each kind of change that keeps partial matches.
KEPT: dict[str, dict[str, Any]] = {
    "unchanged": rule("unchanged"),
    "described": rule("described", description="Now with a text."),
    "spelled-otherwise": spelled_otherwise("spelled-otherwise"),
    "limited": rule("limited", limits={"partial_matches": 5, "on_limit": "reject_new"}),
    "cooled": rule("cooled", cooldown="1 ms"),
    "measured": rule(
        "measured",
        emit={"measures": {"old": "LAST(a.v)", "new": "LAST(a.name)", "end": "LAST(b.name)"}},
    ),
    "columns": rule("columns", emit={"events": ["name", "v"]}),
}

#: And for each kind that drops them; all have another version.
DROPPED: dict[str, dict[str, Any]] = {
    "new-version": rule("new-version", version=2),
    "another-condition": another_condition("another-condition"),
    "another-window": rule("another-window", version=2, within="2 hours"),
    "another-strategy": rule("another-strategy", version=2, after_match="skip_to_next"),
    "another-key": rule("another-key", version=2, key=["k", "k"]),
}


class Runs(NamedTuple):
    """The outputs, and live partial matches by rule, after each run."""

    outputs: tuple[Outputs, ...]
    live: tuple[dict[str, float | None], ...]


@pytest.fixture(scope="module")
def runs(new_scenario: Callable[[], Scenario]) -> Runs:
    """One ``a`` before the change; an ``a`` and a ``b`` after it; deadlines at the end."""
    scenario = new_scenario()
    stream = Stream(scenario)
    names = [*KEPT, *DROPPED, "removed", "switched", "zz-added"]

    def live() -> dict[str, float | None]:
        return {name: scenario.metric("spark_cep_partial_matches", rule=name) for name in names}

    for name in (*KEPT, *DROPPED, "removed", "switched"):
        scenario.rule(rule(name))
    stream.send(("k", "a", 0, 1), *((key, "a", 1, 1) for key in SILENT), ("k", "x", 10))
    first, first_live = scenario.run(), live()

    for changed in (*KEPT.values(), *DROPPED.values()):
        scenario.rule(changed)
    scenario.rule(rule("switched", enabled=False))
    (scenario.rules_folder / "removed.yaml").unlink()
    # Before and behind all others, so that every number of a rule, condition and column is another.
    for name in ("aa-added", "zz-added"):
        scenario.rule(sequence(name, "x", "followed_by b", within="1 hour"))
    stream.send(("k", "a", 20, 2), ("k", "b", 21, 3), ("k", "x", 30))
    second, second_live = scenario.run(), live()

    scenario.rule(rule("switched"))
    stream.send(*((key, "b", 40, 3) for key in SILENT), ("k", "b", 41, 9), ("k", "x", 9999))
    third, third_live = scenario.run(), live()
    return Runs((first, second, third), (first_live, second_live, third_live))


OLD, NEW, B = 0, 2 + len(SILENT), 3 + len(SILENT)


def of_key(outputs: Outputs, name: str) -> list[Found]:
    """The matches of the key that goes on."""
    return [match for match in outputs.of(name)[0] if match.key in ("k", '["k","k"]')]


@pytest.mark.parametrize("name", KEPT)
def test_partial_matches_that_stay(runs: Runs, name: str) -> None:
    """The ``a`` of the first run matches in the second, although the numbers of conditions and
    columns have changed with the rules around it."""
    assert of_key(runs.outputs[0], name) == []
    expected = [found(name, "k", at(21), a=OLD, b=B), found(name, "k", at(21), a=NEW, b=B)]
    if name == "cooled":
        # Both end with one event, and the second is within the cooldown of the first.
        assert len(of_key(runs.outputs[1], name)) == 1
        assert of_key(runs.outputs[1], name)[0] in expected
    else:
        assert of_key(runs.outputs[1], name) == expected
    silent = [match for match in runs.outputs[2].of(name)[0] if match.key in SILENT]
    assert len(silent) == len(SILENT)


@pytest.mark.parametrize("name", DROPPED)
def test_partial_matches_that_go(runs: Runs, name: str) -> None:
    """Neither a match nor a timeout of what began before the change; new ones from then on."""
    (match,) = of_key(runs.outputs[1], name)
    assert (match.steps, match.time) == ((("a", (NEW,)), ("b", (B,))), at(21))
    third = runs.outputs[2]
    assert [m for m in third.of(name)[0] if m.key in SILENT] == []
    assert third.of(name)[1] == []


def test_a_rule_that_is_removed(runs: Runs) -> None:
    """Its partial matches go without timeouts."""
    assert runs.outputs[2].of("removed") == ([], [])


def test_a_rule_that_is_added(runs: Runs) -> None:
    """It begins with the events that are new."""
    assert of_key(runs.outputs[1], "zz-added") == []
    (match,) = of_key(runs.outputs[2], "zz-added")
    assert match.time == at(41)


def test_a_new_measure_is_null_for_events_already_held(runs: Runs) -> None:
    """What the old rule read of an event is there; a column that it did not keep is NULL."""
    old, new = sorted(
        (m for m in runs.outputs[1].matches if m.body["rule_id"] == "measured"),
        key=lambda match: match.found,
    )
    assert old.body["measures"] == {"old": 1.0, "new": None, "end": "b"}
    assert new.body["measures"] == {"old": 2.0, "new": "a", "end": "b"}


def test_new_columns_are_null_for_events_already_held(runs: Runs) -> None:
    """The same for the columns that travel with a match's events."""
    bodies = [m.body for m in runs.outputs[1].matches if m.body["rule_id"] == "columns"]
    by_start = {body["steps"][0]["events"][0]["offset"]: body for body in bodies}
    columns = {
        offset: dict(body["steps"][0]["events"][0]["columns"]) for offset, body in by_start.items()
    }
    assert columns == {OLD: {"name": None, "v": 1.0}, NEW: {"name": "a", "v": 2.0}}


def test_live_partial_matches(runs: Runs) -> None:
    """The gauge goes on for what stays; for what goes it begins again, and ends with the rule."""
    before, after, last = runs.live
    count = 1 + len(SILENT)
    for name in (*KEPT, *DROPPED, "removed", "switched"):
        assert before[name] == count
    for name in KEPT:
        assert after[name] == len(SILENT)
    for name in DROPPED:
        assert not after[name]
    assert (after["removed"], after["switched"]) == (None, None)
    assert {name: last[name] for name in KEPT} == dict.fromkeys(KEPT, 0)


def test_nothing_is_late_or_broken(runs: Runs) -> None:
    """A change makes no dead letters."""
    assert (runs.outputs[2].late, runs.outputs[2].reasons()) == ([], [])


def test_a_rule_switched_off_and_on(runs: Runs) -> None:
    """Of the keys that had events while it was off nothing is left."""
    assert runs.outputs[1].of("switched") == ([], [])
    assert of_key(runs.outputs[2], "switched") == []


def test_a_silent_key_of_a_rule_switched_off_and_on(runs: Runs) -> None:
    """Nor of the others: the rule has not seen what came meanwhile."""
    assert runs.outputs[2].of("switched") == ([], [])


def test_live_partial_matches_of_a_rule_switched_off_and_on(runs: Runs) -> None:
    """The gauge never falls below nothing."""
    assert (runs.live[2]["switched"] or 0) >= 0
