"""Why a rule in SQL did, or did not, match."""

from __future__ import annotations

from typing import Any

from spark_cep.pattern.document.loading import load_rules
from spark_cep.testkit import RuleTest
from spark_cep.why.account import EndReason, EventState, Passed, Unmet

SCHEMA = {
    "type": "record",
    "name": "Trade",
    "fields": [
        {"name": "symbol", "type": "string"},
        {"name": "price", "type": "int"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
RULE = """
id: dip
version: 1
{limits}
sql: |
  SELECT * FROM {source} MATCH_RECOGNIZE (
    PARTITION BY symbol ORDER BY at
    MEASURES A.price AS first_price
    ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
    PATTERN ({pattern}) {within}
    DEFINE {first}D AS price < PREV(price), U AS price > 10 AND price > PREV(price)
  )
"""


def rule_text(
    within: str = "",
    pattern: str = "A D+ U",
    source: str = "trades",
    first: str = "",
    limits: str = "",
) -> str:
    """The rule with some of its parts; ``first``: the condition of A."""
    defined = f"A AS {first}, " if first else ""
    return RULE.format(within=within, pattern=pattern, source=source, first=defined, limits=limits)


def kit_of(*prices: int, **parts: str) -> RuleTest:
    """A kit after trades, one a second."""
    kit = RuleTest(load_rules(rule_text(**parts), "dip.yaml"), schemas={"trades": SCHEMA})
    for price in prices:
        kit.send(symbol="X", price=price, at=kit.now)
        kit.advance("1 second")
    return kit


def test_a_match() -> None:
    """The ways of the attempt are its partial matches, and the last row completes one."""
    kit = kit_of(12, 11, 13)
    account = kit.why("X").account
    assert account.matches == [match.match_id for match in kit.matches]
    (ending,) = {p.ending for p in account.partials.values() if p.ending and p.ending.result}
    assert ending.reason is EndReason.MATCH


def test_the_parts_that_stood_in_the_way() -> None:
    """Parts on the row alone, and those that read other rows, with the values of both."""
    kit = kit_of(12, 11, 5, 9)
    account = kit.why("X").account
    last = account.moments[-1]
    turn = next(each for each in last.turns if each.ending)
    assert turn.ending is not None
    assert turn.ending.reason is EndReason.CONTIGUITY
    assert turn.passed == (
        Passed("D", (Unmet("price < PREV(price)", {"price": 9, "PREV(price)": 5}),)),
        Passed("U", (Unmet("price > 10", {"price": 9}),)),
    )
    assert "U: price > 10 is not true: price is 9" in repr(kit.why("X"))


def test_within() -> None:
    """The end of WITHIN."""
    kit = kit_of(12, 11, within="WITHIN INTERVAL '5' SECOND")
    kit.advance("1 minute")
    account = kit.why("X").account
    reasons: list[Any] = [p.ending.reason for p in account.partials.values() if p.ending]
    assert set(reasons) == {EndReason.WINDOW}


def test_open_ways() -> None:
    """The attempt under way says what it has taken, what it waits for, and until when."""
    kit = kit_of(12, 11, within="WITHIN INTERVAL '5' SECOND")
    (way,) = kit.why("X").account.open
    taken = {name: [each.number for each in events] for name, events in way.steps.items()}
    assert taken == {"A": [1], "D": [2]}
    assert way.waits_for == ("D", "U")
    assert kit.time(way.deadline or 0) == kit.time("2026-01-01T00:00:05Z")
    assert "(events A 1, D 2) waits for D or U, until 2026-01-01T00:00:05Z" in repr(kit.why("X"))


def test_a_way_that_is_preferred() -> None:
    """Ways behind the one that matches end with it."""
    kit = kit_of(12, 11, 13, pattern="A D U | A B B B")
    account = kit.why("X").account
    ended = [each.ending for each in account.partials.values() if each.ending]
    assert [each.reason for each in ended] == [EndReason.MATCH, EndReason.PREFERRED]
    assert [each.result for each in ended] == [*account.matches, None]
    (match_id,) = account.matches
    assert ended[1].detail == f"a way of the attempt that is preferred matched: {match_id}"
    assert "ended:" not in kit.explain()


def test_ways_that_meet() -> None:
    """Of ways from which the rest of the pattern is the same, the preferred one goes on."""
    account = kit_of(12, 11, 10, pattern="(A D D | A B C) U").why("X").account
    (ending,) = [each.ending for each in account.partials.values() if each.ending]
    assert ending.reason is EndReason.PREFERRED
    assert ending.detail == (
        "a way of the attempt that is preferred goes on from here as this one would"
    )
    assert len(account.open) == 1


def test_the_limit() -> None:
    """The limit that was reached."""
    kit = kit_of(12, 11, 10, limits="limits: {events: 2}")
    ended = [each.ending for each in kit.why("X").account.partials.values() if each.ending]
    assert {each.reason for each in ended} == {EndReason.LIMIT}
    assert "ended: dip, key 'X': A 1, D 1 at " in kit.explain()


def test_rows_that_where_leaves_out() -> None:
    """They are no rows, and say why."""
    kit = kit_of(12, 1, source="(SELECT * FROM trades WHERE price > 5)")
    moment = kit.why("X").account.moments[-1]
    assert moment.state is EventState.PASSED
    assert moment.not_started == (Passed("WHERE", (Unmet("price > 5", {"price": 1}),)),)
    assert "no row of the pattern" in repr(kit.why("X"))


def test_a_rule_that_never_begins() -> None:
    """What the first variable lacked, and the values seen."""
    kit = kit_of(12, 11, first="price > 100 AND price > PREV(price)")
    account = kit.why("X").account
    assert account.partials == {}
    by_part = {each.text: (each.true_of, each.values) for each in account.starts.conditions}
    assert by_part["price > 100"] == (0, [{"price": 12}, {"price": 11}])
    assert by_part["price > PREV(price)"] == (
        0,
        [{"price": 12, "PREV(price)": None}, {"price": 11, "PREV(price)": 12}],
    )
    text = repr(kit.why("X"))
    assert "The rule never began." in text
    assert "A: price > 100 was true of 0 of 2 events" in text


def test_an_attempt_that_begins_at_an_earlier_row() -> None:
    """The text names the row."""
    text = repr(kit_of(12, 11, 10, 9, pattern="A D D U").why("X"))
    assert "2 begins with event 2 as A" in text
    assert "Open\n  2 (events A 2, D 3 4) waits for U, for ever" in text
