"""Limits hold exactly after every event, whatever the policy, and keep the work bounded."""

from __future__ import annotations

import random
import time

import pytest

from spark_cep.matcher.batch.events import Names
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import RuleState
from spark_cep.matcher.keys import KeysMatcher, KeysState
from spark_cep.matcher.steps.tables import PlanTables
from spark_cep.pattern.tree import Limits
from spark_cep.pattern.work import HELD_EVENT
from tests.matcher.runs import END_OF_TIME, TYPES, BothMatchers, job, matched, timed_out, written
from tests.reference.limits import held_events
from tests.reference.local import EventReader

POLICIES = ("drop_oldest", "reject_new", "pause_rule")

EXPLOSIVE = """
limits: {{partial_matches: {partials}, events: {events}, on_limit: {policy}}}
{more}
pattern:
  - {{step: a, where: "name = 'a'", times: 1+, loop: combinations}}
  - {{step: b, after: followed_by_any, where: "name = 'b'", times: 1+, loop: combinations}}
  - {{step: c, after: followed_by, where: "name = 'c'"}}
"""

SEQUENCE = """
within: 1 minute
limits: {{partial_matches: {partials}, events: {events}, on_limit: {policy}}}
pattern:
  - {{step: a, where: "name = 'a'"}}
  - {{step: b, after: followed_by_any, where: "name = 'b'"}}
"""


LOOP_AND_ANY = """
limits: {{matches: {matches}, on_limit: {policy}}}
{more}
pattern:
  - {{step: a, where: "name = 'a'", times: 1+}}
  - {{step: z, after: followed_by_any, where: "name = 'z'"}}
"""


WORK = """
limits: {{work: {work}, on_limit: {policy}}}
pattern:
  - {{step: a, where: "{condition}", times: 1+, greedy: true}}
  - {{step: b, after: followed_by, where: "name = 'b'"}}
"""


def states(one: BothMatchers) -> list[RuleState]:
    """The rule states of every key."""
    return [state for _, _, state in one.rule_states()]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("skip", ["no_skip", "skip_to_next", "skip_past_last_event"])
@pytest.mark.parametrize(("partials", "events"), [(7, 1000), (1000, 5), (20, 6)])
@pytest.mark.slow
def test_limits_hold_after_every_event(policy: str, skip: str, partials: int, events: int) -> None:
    """Partial and held matches, and the events that they hold, restarts between."""
    more = f"after_match: {skip}"
    one = job(EXPLOSIVE.format(partials=partials, events=events, policy=policy, more=more))
    letters = random.Random(1)
    for number in range(60):
        record = written(f"{letters.choice('aaabbbc')}@{number}")[0]
        one.advance([record], number)
        for state in states(one):
            assert len(state.partials) + len(state.finished) <= partials
            assert held_events(state) <= events
        one.reload()
    reasons = {letter.reason for letter in one.outputs.dead_letters}
    assert reasons == {"limit_reached"}
    assert one.outputs.counts["r", "dropped"] > 0


@pytest.mark.parametrize("policy", POLICIES)
def test_a_full_limit_is_not_beyond_it(policy: str) -> None:
    """Exactly as many as allowed is allowed, and events of a match released are not held."""
    one = job(SEQUENCE.format(partials=2, events=2, policy=policy))
    one.advance(written("a@0 a@1 b@2"), 10)
    assert matched(one) == [("a0 b2", 2), ("a1 b2", 2)]
    assert one.outputs.dead_letters == []


@pytest.mark.parametrize(
    ("policy", "matches"),
    [("drop_oldest", ["a1 b3", "a2 b3"]), ("reject_new", ["a0 b3", "a1 b3"]), ("pause_rule", [])],
)
@pytest.mark.parametrize("limits", [{"partials": 2, "events": 99}, {"partials": 99, "events": 2}])
def test_what_each_policy_keeps(policy: str, matches: list[str], limits: dict[str, int]) -> None:
    """The newest starts, the oldest starts, or nothing any more."""
    one = job(SEQUENCE.format(policy=policy, **limits))
    one.advance(written("a@0 a@1 a@2 b@3 a@4 b@5"), 3)
    assert [text for text, _ in matched(one)] == matches
    (letter,) = one.outputs.dead_letters
    assert letter.reason == "limit_reached"
    assert letter.at.offset == 2
    assert policy in letter.detail
    assert str(limits["partials"]) in letter.detail
    assert str(limits["events"]) in letter.detail


def test_what_is_dropped_does_not_time_out() -> None:
    """A partial match beyond the limit leaves with a dead letter, not with a timeout."""
    one = job(SEQUENCE.format(partials=1, events=9, policy="drop_oldest"))
    one.advance(written("a@0 a@1"), END_OF_TIME)
    assert timed_out(one) == [("a1", 60_001, False)]


def test_a_paused_rule_stays_paused() -> None:
    """For its key, over a restart, while other keys go on."""
    one = job(SEQUENCE.format(partials=1, events=9, policy="pause_rule"))
    one.advance(written("a@0 a@1"), 2)
    one.reload()
    one.advance([*written("a@3 b@4"), *written("a@3 b@4", key="other")], END_OF_TIME)
    assert [match.key for match in one.outputs.matches] == ["other"]
    assert len(one.outputs.dead_letters) == 1


def test_dropping_what_holds_a_match_back_releases_it() -> None:
    """Once the earlier partial match is gone, the held match is free."""
    rule = SEQUENCE.replace("within: 1 minute", "after_match: skip_past_last_event")
    rule = rule.replace("after: followed_by_any, where: \"name = 'b'\"", "after: next")
    rule = rule.replace("after: next", 'after: followed_by, where: "price = LAST(a.price)"')
    one = job(rule.format(partials=2, events=99, policy="drop_oldest"))
    one.advance(written("a=1@0 a=2@1 b=2@2"), 2)
    assert matched(one) == []
    one.advance(written("a=3@3"), 3)
    assert matched(one) == [("a1 b2", 2)]


def test_a_held_match_can_be_rejected() -> None:
    """It is newer than the partial match that holds it back, which stays."""
    rule = """
limits: {partial_matches: 3, on_limit: reject_new}
within: 100 ms
after_match: skip_to_next
pattern:
  - {step: a, where: "name = 'a'"}
  - {step: b, after: followed_by, where: "price = LAST(a.price)"}
"""
    one = job(rule)
    one.advance(written("a=1@0 a=2@1 b=2@2 a=3@3 b=3@4 a=4@5 a=5@6 b=1@7"), 50)
    assert matched(one) == [("a0 b7", 7), ("a1 b2", 2), ("a3 b4", 4)]
    one.advance([], END_OF_TIME)
    assert timed_out(one) == []
    assert one.outputs.counts["r", "dropped"] == 2


@pytest.mark.parametrize("policy", POLICIES)
def test_adversarial_stream(policy: str) -> None:
    """Hundreds of events of one key that would double the partial matches each time."""
    one = job(EXPLOSIVE.format(partials=300, events=500, policy=policy, more=""))
    one.advance(written(" ".join(random.Random(2).choices("aaabbb", k=400))), END_OF_TIME)
    assert all(len(state.partials) <= 300 for state in states(one))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.slow
def test_adversarial_stream_in_bounded_time_and_memory(policy: str) -> None:
    """A thousand of them within the limits that rules have by default, and what is found never
    together in memory."""
    default = Limits()
    rule = EXPLOSIVE.format(
        partials=default.partial_matches, events=default.events, policy=policy, more=""
    )
    (part,) = job(rule).plan.partitionings
    kernel, reader = KeysMatcher(part, TYPES), EventReader(part, TYPES)
    stream = written(" ".join(random.Random(2).choices("aaabbb", k=1000)) + " c")
    state, names = KeysState(), Names()
    events = [reader.event(record, Outputs()) for record in stream]
    batch = InputBatch.of({"k": events}, names, kernel.slots)
    started = time.process_time()
    most = total = 0
    for outputs in kernel.advance(state, batch, END_OF_TIME, names):
        taken = sum(len(results.events) for results in outputs.results)
        most, total = max(most, taken), total + sum(map(len, outputs.results))
        # Making what is found is no part of matching, and its size is the rule's doing.
        if total > 500:
            break
    assert time.process_time() - started < 20
    assert most <= 51_001


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("cut", [1, 2, 5])
def test_work_of_one_event(policy: str, cut: int) -> None:
    """Partial matches that cost the event more than is allowed are dropped before it is applied,
    however events are cut; the first such event is told of."""
    condition = "name = 'a' AND COUNT(DISTINCT a.price) < 9"
    (steps,) = job(WORK.format(condition=condition, work=10**9, policy=policy)).plan.partitionings
    most = int(PlanTables(steps, TYPES)._rules["most_cost"][0])
    # Of those that have taken one event, the condition is asked, and of the one that may begin.
    # What they have taken counts, too: 3 + 2 + 1 events for the fourth.
    held, work = 6 * HELD_EVENT, 3 * most + 6 * HELD_EVENT - 2
    one = job(WORK.format(condition=condition, work=work, policy=policy))
    events = written("a=0@0 a=1@1 a=2@2 a=3@3")
    for start in range(0, len(events), cut):
        one.advance(events[start : start + cut], events[min(start + cut, len(events)) - 1].time)
        one.reload()
    (letter,) = one.outputs.dead_letters
    assert (letter.reason, letter.at.offset) == ("limit_reached", 3)
    dropped = 3 if policy == "pause_rule" else 1
    assert letter.detail == (
        f"{4 * most + held} steps of work of one key and event, more than {work}:"
        f" {policy} dropped {dropped} partial matches"
    )
    assert one.outputs.counts["r", "dropped"] == dropped


@pytest.mark.parametrize(("policy", "dropped"), [("drop_oldest", 1), ("reject_new", 2),
                                                 ("pause_rule", 5)])  # fmt: skip
@pytest.mark.parametrize("cut", [1, 2, 6])
@pytest.mark.parametrize("skip", ["no_skip", "skip_past_last_event"])
def test_events_taken_are_work(policy: str, dropped: int, cut: int, skip: str) -> None:
    """Each that a partial match holds; so much is dropped that an eighth is free again."""
    # At the sixth event 5 partial matches have taken 15 events.
    most = 6 + 15 * HELD_EVENT - 1
    rule = WORK.format(condition="name = 'a'", work=most, policy=policy)
    one = job(rule + f"after_match: {skip}")
    events = written("a@0 a@1 a@2 a@3 a@4 a@5")
    for start in range(0, len(events), cut):
        one.advance(events[start : start + cut], events[min(start + cut, len(events)) - 1].time)
        one.reload()
    (letter,) = one.outputs.dead_letters
    assert (letter.reason, letter.at.offset) == ("limit_reached", 5)
    assert letter.detail == (
        f"{most + 1} steps of work of one key and event, more than {most}:"
        f" {policy} dropped {dropped} partial matches"
    )


def test_events_that_partial_matches_share_are_counted_once() -> None:
    """Those of one start have the events before they parted in common."""
    rule = """
limits: {{work: {work}}}
pattern:
  - {{step: a, where: "name = 'a'", times: 3}}
  - {{step: b, after: followed_by_any, where: "name = 'b'"}}
  - {{step: c, after: followed_by, where: "name = 'c'"}}
"""
    # Three starts hold 3, 2 and 1 events, and the first has taken each b behind its three.
    held = 3 + 2 + 1 + 4
    work = 3 + 4 + 1 + held * HELD_EVENT
    for allowed in (work, work - 1):
        one = job(rule.format(work=allowed))
        one.advance(written("a@0 a@1 a@2 b@3 b@4 b@5 b@6 c@7"), 7)
        assert bool(one.outputs.dead_letters) is (allowed < work)


@pytest.mark.parametrize(
    ("policy", "written_matches"),
    [
        ("drop_oldest", ["a1 z3", "a2 z3", "a1 z4", "a2 z4"]),
        ("reject_new", ["a0 a1 a2 z3", "a0 a1 z3", "a0 a1 a2 z4", "a0 a1 z4"]),
        ("pause_rule", []),
    ],
)
@pytest.mark.parametrize("cut", [1, 2, 5])
def test_matches_of_one_event(policy: str, written_matches: list[str], cut: int) -> None:
    """So many at most are written: those that started last, those that started first, or none any
    more, however the events are cut; the rest is counted, and the first event is told of."""
    events = written("a@0 a@1 a@2 z@3 z@4")
    one = job(LOOP_AND_ANY.format(matches=2, policy=policy, more=""))
    for start in range(0, len(events), cut):
        one.advance(events[start : start + cut], events[min(start + cut, len(events)) - 1].time)
        one.reload()
    found = {text for text, _ in matched(one)}
    assert len(found) == len(written_matches)
    (letter,) = one.outputs.dead_letters
    assert (letter.reason, letter.at.offset) == ("limit_reached", 3)
    assert "more than 2 matches of one key and event" in letter.detail
    assert policy in letter.detail
    assert one.outputs.counts["r", "dropped_matches"] == (6 if policy == "pause_rule" else 8)
    assert one.outputs.counts["r", "matched"] == len(written_matches)
    assert found == set(written_matches)


def test_as_many_matches_as_allowed_are_written() -> None:
    """The limit is the rule's: without one in the rule there are a thousand."""
    one = job(LOOP_AND_ANY.format(matches=6, policy="reject_new", more=""))
    one.advance(written("a@0 a@1 a@2 z@3"), 3)
    assert len(matched(one)) == 6
    assert one.outputs.dead_letters == []
    assert Limits().matches == 1_000


def test_matches_that_a_skip_strategy_lets_go_together() -> None:
    """What was held back counts for the event that lets it go; matches that a cooldown holds back
    count for none."""
    skip = "after_match: {skip_to_first: z}"
    one = job(LOOP_AND_ANY.format(matches=1, policy="reject_new", more=skip))
    one.advance(written("a@0 a@1 a@2 z@3"), 3)
    quiet = job(LOOP_AND_ANY.format(matches=1, policy="reject_new", more="cooldown: 1 minute"))
    quiet.advance(written("a@0 a@1 a@2 z@3"), 3)
    assert [len(matched(each)) for each in (one, quiet)] == [1, 1]
    assert quiet.outputs.dead_letters == []
