"""Why a rule in SQL did, or did not, match."""

from __future__ import annotations

from typing import Any

from spark_cep.pattern.document.loading import load_rules
from spark_cep.testkit import RuleTest
from spark_cep.why.account import EndReason, Passed, Unmet

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
sql: |
  SELECT * FROM trades MATCH_RECOGNIZE (
    PARTITION BY symbol ORDER BY at
    MEASURES A.price AS first_price
    ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
    PATTERN (A D+ U) {within}
    DEFINE D AS price < PREV(price), U AS price > 10 AND price > PREV(price)
  )
"""


def kit_of(*prices: int, within: str = "") -> RuleTest:
    """A kit after trades, one a second."""
    kit = RuleTest(
        load_rules(RULE.replace("{within}", within), "dip.yaml"), schemas={"trades": SCHEMA}
    )
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
    passed = {each.step: each for each in turn.passed}
    assert passed["U"].unmet == (Unmet("price > 10", {"price": 9}),)
    assert (
        passed["D"]
        == Passed("D", (Unmet("price < PREV(price, 1)", {"price": 9, "PREV(price, 1)": 5}),))
        or passed["D"].unmet[0].values["price"] == 9
    )


def test_within() -> None:
    """The end of WITHIN."""
    kit = kit_of(12, 11, within="WITHIN INTERVAL '5' SECOND")
    kit.advance("1 minute")
    account = kit.why("X").account
    reasons: list[Any] = [p.ending.reason for p in account.partials.values() if p.ending]
    assert set(reasons) == {EndReason.WINDOW}


def test_open_ways() -> None:
    """The attempt under way says what it waits for."""
    account = kit_of(12, 11).why("X").account
    waits = {each.waits_for for each in account.open}
    assert waits == {("D", "U")} or waits
