"""The longest time between two repetitions: which events it parts, and when it ends a match."""

from __future__ import annotations

import pytest

from tests.matcher.runs import matched, run, timed_out

GAPS = """
within: 100 ms
pattern:
  - {{step: a, where: "name = 'a'", times: {times}, gap: 5 ms}}
  - {{step: b, after: followed_by, where: "name = 'b'"}}
"""


@pytest.mark.parametrize(
    ("times", "events", "matches"),
    [
        ("2", "a@0 a@4 b@50", ["a0 a1 b2"]),
        ("2", "a@0 a@5 b@50", []),
        ("3", "a@0 a@4 a@8 b@50", ["a0 a1 a2 b3"]),
        ("3", "a@0 a@4 a@9 b@50", []),
        ("1+", "a@0 a@4 b@5", ["a0 a1 b2", "a0 b2", "a1 b2"]),
        ("1+", "a@0 a@5 b@6", ["a0 b2", "a1 b2"]),
        ("2+", "a@0 a@4 a@9 b@10", ["a0 a1 b3"]),
        ("2..3", "a@0 a@4 a@9 b@10", ["a0 a1 b3"]),
    ],
)
def test_gap_between_every_two_repetitions(times: str, events: str, matches: list[str]) -> None:
    """The gap holds before the last repetition, and inside a loop without end."""
    assert [text for text, _ in matched(run(GAPS.format(times=times), events))] == matches


def test_gap_that_ends_a_partial_match() -> None:
    """Where only repetitions can follow, the gap is the deadline; of an idle key too."""
    one = run(GAPS.format(times="2"), "a@0")
    assert timed_out(one) == [("a0", 5, False)]


@pytest.mark.parametrize("events", ["a@0 a@2", "a@0 a@2 x@3", "a@0 a@2 x@30"])
def test_gap_of_a_loop_that_may_be_left(events: str) -> None:
    """Where something else can follow, the window is; an event between changes nothing."""
    one = run(GAPS.format(times="2..3"), events)
    assert timed_out(one) == [("a0 a1", 100, False), ("a1", 7, False)]


@pytest.mark.parametrize("events", ["a@0 a@2 b@50", "a@0 a@2 x@3 b@50"])
def test_gap_that_ran_out_before_the_match(events: str) -> None:
    """What went on by another way does not time out for the repetition it did not take."""
    one = run(GAPS.format(times="2..3"), events)
    assert len(matched(one)) == 1
    assert timed_out(one) == [("a1", 7, False)]


@pytest.mark.parametrize("events", ["a@0 c@20", "a@0 x@1 c@20"])
def test_gap_of_a_greedy_loop(events: str) -> None:
    """What follows a greedy loop may come later than the loop's gap."""
    rule = GAPS.format(times="1+").replace("gap: 5 ms", "gap: 5 ms, greedy: true")
    one = run(rule.replace("'b'", "'c'"), events)
    assert [time for _, time in matched(one)] == [20]
    assert timed_out(one) == []


@pytest.mark.parametrize("events", ["a@0", "a@0 x@1"])
def test_gap_before_absence(events: str) -> None:
    """A NOT at the end is awaited to the end of the window, though the loop is long over."""
    rule = GAPS.format(times="1+").replace("followed_by", "not_followed_by")
    one = run(rule, events)
    assert (matched(one), timed_out(one)) == ([("a0", 100)], [])


def test_gap_before_not_next() -> None:
    """The next event decides, however late it comes."""
    rule = GAPS.format(times="1+").replace("followed_by", "not_next")
    assert matched(run(rule, "a@0 x@20")) == [("a0", 20)]
    assert timed_out(run(rule, "a@0")) == [("a0", 100, False)]
