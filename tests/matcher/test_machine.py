"""One rule over one key: windows, deadlines, gaps, absence, cooldown, failures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import FOREVER
from spark_cep.model import Coordinates, Event
from tests.matcher.runs import (
    END_OF_TIME,
    BothMatchers,
    compiled,
    job,
    matched,
    run,
    timed_out,
    written,
)
from tests.reference.keyed import KeyedMatcher, KeyState

A_THEN_B = """
within: 10 ms
pattern:
  - {step: a, where: "name = 'a'"}
  - {step: b, after: followed_by, where: "name = 'b'"}
"""


@pytest.mark.parametrize(
    ("events", "matches", "timeouts"),
    [
        ("a@0 b@9", [("a0 b1", 9)], []),
        ("a@0 b@10", [], [("a0", 10, False)]),
        ("a@-20 b@-10", [], [("a0", -10, False)]),
        ("a@-5 b@4", [("a0 b1", 4)], []),
        ("a@0", [], [("a0", 10, False)]),
    ],
)
def test_window_ends_before_its_length(
    events: str, matches: list[tuple[str, int]], timeouts: list[tuple[str, int, bool]]
) -> None:
    """An event at start + window does not match; the deadline is exact, before 1970 too."""
    one = run(A_THEN_B, events)
    assert (matched(one), timed_out(one)) == (matches, timeouts)


def _steps(*steps: str, within: str = "10 ms") -> str:
    return "\n".join([f"within: {within}", "pattern:", *(f"  - {{{step}}}" for step in steps)])


A = """step: a, where: "name = 'a'\""""
B, C, N = (
    f"step: {name}, after: {after}, where: \"name = '{name}'\""
    for name, after in (("b", "followed_by_any"), ("c", "followed_by"), ("n", "not_followed_by"))
)


@pytest.mark.parametrize(
    ("rule", "events", "matches", "timeouts"),
    [
        (_steps(A, B), "a@0 b@1", [("a0 b1", 1)], [("a0", 10, True)]),
        (_steps(A, B), "a@0 b@10", [], [("a0", 10, False)]),
        (
            _steps(A, B, f'{C[:-1]} AND price > LAST(b.price)"'),
            "a@0 b=1@1 b=7@2 c=5@3",
            [("a0 b1 c3", 3)],
            [("a0", 10, True), ("a0 b2", 10, False)],
        ),
        (
            _steps(f"{A}, times: 2, loop: combinations", N),
            "a@0 a@1",
            [("a0 a1", 10)],
            [("a0", 10, True), ("a1", 11, False)],
        ),
        (_steps(f"{A}, times: 2, loop: combinations", N), "a@0 a@1 n@2", [], []),
    ],
)
def test_already_matched(
    rule: str, events: str, matches: list[tuple[str, int]], timeouts: list[tuple[str, int, bool]]
) -> None:
    """A timeout says whether a match begins with its events, or its events with a match."""
    one = run(rule, events)
    assert (matched(one), timed_out(one)) == (matches, timeouts)


@pytest.mark.parametrize("start", [-7, 0, 5])
def test_deadline_of_an_idle_key(start: int) -> None:
    """The watermark alone brings the timeout, not before its time and stamped with it."""
    one = run(A_THEN_B, f"a@{start}", start + 9)
    assert timed_out(one) == []
    one.advance([], start + 10)
    assert timed_out(one) == [("a0", start + 10, False)]
    one.advance([], END_OF_TIME)
    assert len(timed_out(one)) == 1


def test_deadlines_in_their_own_order() -> None:
    """One leap of the watermark brings all deadlines, the earliest first."""
    one = run(A_THEN_B, "a@0 a@3 a@7")
    assert [timeout.deadline for timeout in one.outputs.timeouts] == [10, 13, 17]


def test_key_state_names_what_is_due() -> None:
    """A key's deadline is its first waiting event or its first deadline; then it is idle."""
    partitioning = job(A_THEN_B).plan.partitionings[0]
    matcher = KeyedMatcher(partitioning)
    everything = (1 << len(partitioning.conditions)) - 1
    state = KeyState()
    outputs = Outputs()
    assert (state.idle, state.deadline) == (True, FOREVER)
    matcher.advance("k", state, [Event(5, Coordinates("t", 0, 0), everything)], 4, outputs)
    assert (state.idle, state.deadline) == (False, 5)
    matcher.advance("k", state, [], 5, outputs)
    assert (state.idle, state.deadline) == (False, 15)
    matcher.advance("k", state, [], 15, outputs)
    assert state.idle


def test_whole_gap() -> None:
    """``within.gap`` is from one taken event to the next, its end exclusive."""
    rule = A_THEN_B.replace("10 ms", "{gap: 10 ms}")
    third = "  - {step: c, after: followed_by, where: \"name = 'c'\"}\n"
    one = run(rule + third, "a@0 b@9 c@18 a@30 b@39 c@49")
    assert matched(one) == [("a0 b1 c2", 18)]
    assert timed_out(one) == [("a3 b4", 49, False)]


ABSENCE = """
within: 10 ms
pattern:
  - {{step: a, where: "name = 'a'"}}
  - {{step: b, after: followed_by, where: "name = 'b'", times: {times}}}
  - {{step: n, after: not_followed_by, where: "name = 'n'"}}
"""


@pytest.mark.parametrize(
    ("events", "matches"),
    [
        ("a@0 b@1", [("a0 b1", 10)]),
        ("a@0 b@1 x@2", [("a0 b1", 10)]),
        ("a@0 b@1 n@9", []),
        ("a@0 b@1 n@10", [("a0 b1", 10)]),
        ("a@-30 b@-29", [("a0 b1", -20)]),
    ],
)
def test_absence_at_the_deadline(events: str, matches: list[tuple[str, int]]) -> None:
    """NOT at the end matches at the deadline, which an event at that time does not veto."""
    one = run(ABSENCE.format(times="1"), events)
    assert (matched(one), timed_out(one)) == (matches, [])


@pytest.mark.parametrize("events", ["a@0 b@1", "a@0 b@1 x@2"])
def test_absence_behind_a_loop(events: str) -> None:
    """A loop that could go on matches by absence, and times out as one that has matched."""
    one = run(ABSENCE.format(times="1+"), events)
    assert matched(one) == [("a0 b1", 10)]
    assert timed_out(one) == [("a0 b1", 10, True)]


@pytest.mark.parametrize(
    ("events", "matches", "timeouts"),
    [
        ("a@0 b@1", [], [("a0", 10, False)]),
        ("a@0 c@1", [("a0", 1)], []),
        ("a@0 c@10", [], [("a0", 10, False)]),
    ],
)
def test_not_next_at_the_end(
    events: str, matches: list[tuple[str, int]], timeouts: list[tuple[str, int, bool]]
) -> None:
    """The next event of the key decides; with an idle key it times out."""
    one = run(A_THEN_B.replace("followed_by", "not_next"), events)
    assert matched(one) == matches
    assert timed_out(one) == (timeouts if "b" not in events else [])


def test_timeout_says_whether_it_had_matched() -> None:
    """What had matched on its way says so; what only shares a start does not."""
    rule = A_THEN_B.replace("where: \"name = 'b'\"", "where: \"name = 'b'\", times: 2+")
    assert timed_out(run(rule, "a@0 b@1")) == [("a0 b1", 10, False)]
    one = run(rule, "a@0 b@1 b@2")
    assert matched(one) == [("a0 b1 b2", 2)]
    assert timed_out(one) == [("a0 b1 b2", 10, True)]


def test_identical_timeouts_are_one() -> None:
    """Ways of one sequence that an irrelevant event separated are one timeout."""
    rule = A_THEN_B.replace(
        "after: followed_by, where: \"name = 'b'\"",
        "after: followed_by, where: \"name = 'b'\", optional: true",
    )
    third = "  - {step: c, after: followed_by, where: \"name = 'c'\"}\n"
    assert timed_out(run(rule + third, "a@0 x@1 x@2")) == [("a0", 10, False)]


COOLDOWN = """
cooldown: 10 ms
pattern:
  - {step: a, where: "name = 'a'"}
"""


def test_cooldown() -> None:
    """After a match none for that long, its end exclusive; what is kept quiet starts nothing."""
    one = run(COOLDOWN, "a@0 a@9 a@10 a@19 a@20")
    assert [time for _, time in matched(one)] == [0, 10, 20]


def test_cooldown_survives_a_restart_and_ends() -> None:
    """It is part of the state, and the last thing that a key remembers."""
    one = job(COOLDOWN)
    one.advance(written("a@0"), 5)
    one.reload()
    one.advance(written("a@8"), 9)
    assert [time for _, time in matched(one)] == [0]
    assert [state.quiet_until for _, _, state in one.rule_states()] == [10]
    one.advance([], 10)
    assert list(one.rule_states()) == []


def test_cooldown_of_matches_held_back() -> None:
    """A held match is judged by its own time, and the cooldown stays until it is out."""
    rule = """
cooldown: 10 ms
after_match: skip_to_next
within: 30 ms
pattern:
  - {step: a, where: "name IN ('a', 'x')"}
  - {step: b, after: followed_by, where: "name = 'b' AND LAST(a.name) = 'a'"}
"""
    one = run(rule, "a@0 b@1 x@2 a@3 b@4", 20)
    assert [state.deadline for _, _, state in one.rule_states()] == [32]
    one.advance([], END_OF_TIME)
    assert matched(one) == [("a0 b1", 1)]
    assert timed_out(one) == [("a2", 32, False)]


def test_effective_from() -> None:
    """Earlier events do not exist for the rule."""
    rule = "effective_from: 1970-01-01T00:00:00.005Z\n" + A_THEN_B
    assert matched(run(rule, "a@0 a@5 b@6")) == [("a1 b2", 6)]


SKIP_TO = """
after_match: {{{strategy}: b{on_miss}}}
within: 100 ms
pattern:
  - {{step: a, where: "name = 'a'"}}
  - {{step: b, after: followed_by, where: "name = 'b'", optional: true}}
  - {{step: c, after: followed_by, where: "name = 'c'"}}
"""


@pytest.mark.parametrize("strategy", ["skip_to_first", "skip_to_last"])
def test_on_miss(strategy: str) -> None:
    """A match without the step's event is an error where the rule says so, and is emitted."""
    strict = run(SKIP_TO.format(strategy=strategy, on_miss=", on_miss: error"), "a c")
    plain = run(SKIP_TO.format(strategy=strategy, on_miss=""), "a c")
    assert matched(strict) == matched(plain) == [("a0 c1", 2)]
    (letter,) = strict.outputs.dead_letters
    assert (letter.reason, letter.step, letter.rule_id) == ("skip_failed", "b", "r")
    assert letter.at == Coordinates("t", 0, 1)
    assert plain.outputs.dead_letters == []


def test_skip_to_the_first_event_of_the_match_itself() -> None:
    """Skipping to where the match began would find it again, so it is an error too."""
    rule = SKIP_TO.format(strategy="skip_to_first", on_miss=", on_miss: error")
    one = run(rule.replace("skip_to_first: b", "skip_to_first: a"), "a c")
    assert [letter.reason for letter in one.outputs.dead_letters] == ["skip_failed"]


def test_condition_with_several_look_backs() -> None:
    """Each looks at the events of its own step; one beyond them is NULL."""
    rule = """
pattern:
  - {step: a, where: "name = 'a'"}
  - {step: b, after: followed_by, where: "name = 'b'", times: 1..2}
  - {step: c, after: followed_by, where: "price > LAST(a.price) + LAST(b.price, 1)"}
"""
    one = run(rule, "a=1@0 b=2@1 c=9@2 b=3@3 c=3@4 c=4@5")
    assert matched(one) == [("a0 b1 b3 c5", 5)]


FAILING = """
emit: {measures: {total: "SUM(a.price)", last: "LAST(b.name)"}}
pattern:
  - {step: a, where: "name = 'a'"}
  - {step: b, after: followed_by, where: "name = 'b' AND price + LAST(a.price) > 1"}
"""


def test_failing_condition() -> None:
    """It counts as not matching; rule, step and event are named, and later events go on."""
    one = BothMatchers(job(FAILING).plan, RecordTypes())
    first, bad, good = written("a=1 b=2 b=3")
    bad = replace(bad, values={**bad.values, "price": "much"})
    one.advance([first, bad, good], END_OF_TIME)
    assert matched(one) == [("a0 b2", 3)]
    (letter,) = one.outputs.dead_letters
    assert (letter.reason, letter.rule_id, letter.step) == ("condition_failed", "r", "b")
    assert letter.at == Coordinates("t", 0, 1)
    assert "price + LAST(a.price) > 1" in letter.detail
    assert one.outputs.counts["r", "failed"] == 1


def test_failing_measure() -> None:
    """It is NULL in the match, which is emitted, and named in a dead letter."""
    plan = compiled(FAILING.replace("price + LAST(a.price) > 1", "price > 1"))
    # A value that is not of its column's type is refused where types are known.
    one = BothMatchers(plan, RecordTypes())
    first, second = written("a=1 b=2")
    first = replace(first, values={**first.values, "price": object()})
    one.advance([first, second], END_OF_TIME)
    (match,) = one.outputs.matches
    assert match.measures == {"total": None, "last": "b"}
    (letter,) = one.outputs.dead_letters
    assert (letter.reason, letter.detail.split(":")[0]) == ("measure_failed", "total")


def test_counts() -> None:
    """What happened is counted by rule: events, what each was tested against (the partial matches,
    and the one that might begin), and what became of partial matches."""
    one = run(A_THEN_B, "a@0 b@1 a@2")
    assert one.outputs.counts == {
        ("r", "events"): 3,
        ("r", "tested"): 1 + 2 + 1,
        ("r", "started"): 2,
        ("r", "matched"): 1,
        ("r", "timed_out"): 1,
    }


def test_pruned_partial_matches_are_counted() -> None:
    """Those that the skip strategy gives up for a match, complete or not, and no others."""
    skipping = A_THEN_B + "after_match: skip_past_last_event\n"
    one = run(skipping, "a@0 a@1 a@2 b@3")
    counts = one.outputs.counts
    assert (counts["r", "started"], counts["r", "matched"]) == (3, 1)
    assert counts["r", "pruned"] == 2
    one = run(skipping.replace("followed_by", "followed_by_any"), "a@0 b@1 b@2")
    assert (one.outputs.counts["r", "matched"], one.outputs.counts["r", "pruned"]) == (1, 1)
    assert run(A_THEN_B, "a@0 a@1 a@2 b@3").outputs.counts["r", "pruned"] == 0
