"""Calls of Python out of the compiled loop, and what comes of those that fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_cep.compiler.record_types import RecordTypes
from tests.matcher.runs import END_OF_TIME, BothMatchers, compiled, matched, written

RULE = """
pattern:
  - {{step: a, where: "name = 'a'"}}
  - {{step: b, after: followed_by_any, where: "name = 'b' AND {0}"}}
"""


def called(condition: str, events: str, *wrong: int) -> BothMatchers:
    """A job without types, so that Python is called; the prices of events ``wrong`` are no
    numbers."""
    one = BothMatchers(compiled(RULE.format(condition)), RecordTypes())
    records = written(events)
    for place in wrong:
        values = {**records[place].values, "price": "much"}
        records[place] = replace(records[place], values=values)
    one.advance(records, END_OF_TIME)
    return one


@pytest.mark.parametrize(
    "condition",
    [
        "price + LAST(a.price) > 1",
        "NOT (price + LAST(a.price) > 1)",
        "(price + LAST(a.price)) IS NULL",
        "(price + LAST(a.price)) IS NOT NULL",
        "(LAST(a.price) IS NULL OR price + LAST(a.price) > 1)",
        "COALESCE(price + LAST(a.price), 5) = 5",
    ],
)
def test_a_failing_call(condition: str) -> None:
    """Whatever is asked of what failed, the condition is not true, and there is one dead letter
    with rule, step and event."""
    one = called(condition, "a=1 b=2", 1)
    assert matched(one) == []
    (letter,) = one.outputs.dead_letters
    assert (letter.reason, letter.rule_id, letter.step) == ("condition_failed", "r", "b")
    assert letter.at.offset == 1
    assert "price + LAST(a.price)" in letter.detail
    assert "Error(" in letter.detail
    assert one.outputs.counts["r", "failed"] == 1


def test_other_events_go_on() -> None:
    """What failed of one event, or of one partial match, is no matter for the others."""
    one = called("price + LAST(a.price) > 1", "a=1 b=2 a=1 b=2 b=3", 1, 2)
    assert matched(one) == [("a0 b3", 4), ("a0 b4", 5)]
    assert sorted(letter.at.offset for letter in one.outputs.dead_letters) == [1, 3, 4]


def test_two_failing_conditions() -> None:
    """Each is told of, with its own text."""
    one = called("LAST(a.price + 1) > price OR LAST(a.price - 1) > price", "a=1 b=2", 0)
    assert matched(one) == []
    details = sorted(letter.detail for letter in one.outputs.dead_letters)
    assert len(details) == len(set(details)) > 0
    assert all("Error(" in detail for detail in details)


def test_values_of_look_backs() -> None:
    """Look-backs over expressions see the events of their step, last first, and NULL where there
    are not so many."""
    one = called("LAST(a.price + 1, 1) IS NULL AND MAX(a.price * 2) = price", "a=3 b=6 b=7")
    assert matched(one) == [("a0 b1", 2)]
    assert one.outputs.dead_letters == []
