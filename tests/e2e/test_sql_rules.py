"""Rules in SQL through the whole job, beside rules of steps."""

from __future__ import annotations

import time

import pytest

from spark_cep.errors import RuleSetError
from spark_cep.pipeline.driver.service import Service
from tests.e2e.scenario import Scenario
from tests.e2e.schemas import record
from tests.kafka_access import Sent

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

SCHEMA = record(
    "Tick", symbol=["null", "string"], ts="long", price="long", place=record("Place", city="string")
)

V_SHAPE = """
    SELECT * FROM ticks MATCH_RECOGNIZE (
      PARTITION BY symbol ORDER BY ts
      MEASURES FIRST(start_.price) AS before, LAST(down.price) AS bottom, LAST(up.price) AS after
      AFTER MATCH SKIP PAST LAST ROW
      PATTERN (start_ down+ up{2})
      DEFINE down AS price < PREV(price), up AS price > PREV(price))
"""
PICKED = """
    SELECT symbol, after - bottom AS rise, UPPER(symbol) AS name
    FROM (SELECT * FROM ticks t WHERE t.price <> 9 AND t.Place.City = 'X') MATCH_RECOGNIZE (
      PARTITION BY symbol ORDER BY ts, price DESC
      MEASURES LAST(down.price) AS bottom, LAST(up.price) AS after
      PATTERN (start_ down up{2})
      DEFINE down AS price < PREV(price), up AS price > PREV(price)) ORDER BY symbol
"""
TWO_IN_TIME = """
    SELECT * FROM ticks MATCH_RECOGNIZE (
      PARTITION BY symbol ORDER BY ts
      MEASURES CLASSIFIER() AS kind, COUNT(*) AS n
      ALL ROWS PER MATCH WITH UNMATCHED ROWS
      PATTERN (low high) WITHIN INTERVAL '10' MILLISECONDS
      DEFINE low AS price < 10, high AS price >= 10)
"""


class Ticks:
    """The topic of a scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        scenario.input("ticks", event_time_unit="millis")
        self._schema = scenario.register("ticks", SCHEMA)

    def send(self, *ticks: tuple[str | None, int, int]) -> None:
        """Symbol, time and price of each."""
        values = [
            {"symbol": symbol, "ts": time, "price": price, "place": {"city": "X"}}
            for symbol, time, price in ticks
        ]
        avro = (Sent(self._scenario.avro(self._schema, value)) for value in values)
        self._scenario.send("ticks", *avro)


def test_both_kinds_of_rules(scenario: Scenario) -> None:
    """Share inputs, keys and state; what a batch begins the next ends, also over a restart; NULL is
    a key to those in SQL, and for those of steps one dead letter."""
    ticks = Ticks(scenario)
    scenario.rule({"id": "v-shape", "sql": V_SHAPE})
    scenario.rule({"id": "two", "sql": TWO_IN_TIME})
    scenario.rule({"id": "picked", "sql": PICKED})
    scenario.rule(
        {
            "id": "steps",
            "key": "symbol",
            "within": "10 ms",
            "pattern": [
                {"step": "low", "where": "price < 10"},
                {"step": "high", "after": "next", "where": "price >= 10"},
            ],
        }
    )
    ticks.send(("a", 1, 12), ("b", 1, 5), ("a", 2, 9), (None, 2, 1))
    scenario.run()
    ticks.send(
        ("a", 3, 8), ("a", 4, 10), ("b", 11, 20), ("a", 15, 11), ("c", 30, 1), (None, 3, 10)
    )  # fmt: skip
    scenario.run()
    outputs = scenario.decide()
    (found,) = [match for match in outputs.matches if match.body["rule_id"] == "v-shape"]
    assert found.key == b"a"
    assert found.body["measures"] == {"symbol": "a", "before": 12, "bottom": 8, "after": 11}
    assert [(step["step"], len(step["events"])) for step in found.body["steps"]] == [
        ("START_", 1), ("DOWN", 2), ("UP", 2),
    ]  # fmt: skip
    (picked,) = [match for match in outputs.matches if match.body["rule_id"] == "picked"]
    assert picked.body["measures"] == {"symbol": "a", "rise": 3, "name": "A"}
    assert outputs.of("two")[0] == []
    rows = [
        (row.body["offset"], row.body["variable"], row.body["row"], row.body["columns"]["n"])
        for row in outputs.match_rows
        if row.key == b"a"
    ]
    of_null = [row for row in outputs.match_rows if row.key is None]
    assert [(row.body["key"], row.body["offset"]) for row in of_null] == [(None, 3), (None, 9)]
    assert rows == [(0, None, 1, None), (2, None, 1, None), (4, "LOW", 1, 1), (5, "HIGH", 2, 2),
                    (7, None, 1, None)]  # fmt: skip
    steps, timeouts = outputs.of("steps")
    assert [(match.key, match.time) for match in steps] == [("a", 4)]
    in_sql = outputs.of("two")[1]
    for found_timeouts in (timeouts, in_sql):
        assert [(each.key, each.time) for each in found_timeouts] == [("b", 11), ("c", 40)]
    assert outputs.reasons() == [(3, "missing_key"), (9, "missing_key")]


def test_an_idle_key_is_settled_at_its_time(scenario: Scenario) -> None:
    """WITHIN ends an attempt of a key without further rows as soon as time has passed it."""
    ticks = Ticks(scenario)
    scenario.rule({"id": "two", "sql": TWO_IN_TIME})
    ticks.send(("a", 5, 1), ("b", 20, 50))
    outputs = scenario.run()
    assert [(each.key, each.time) for each in outputs.of("two")[1]] == [("a", 15)]


def test_all_columns_and_a_change_of_rules(scenario: Scenario) -> None:
    """``*`` is the input's columns; another rule that comes and goes changes nothing of a rule in
    SQL, and another version of it begins afresh."""
    ticks = Ticks(scenario)
    every = """SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts {}
      PATTERN (x y) DEFINE y AS price > PREV(price))"""
    scenario.rule({"id": "all", "sql": every.format("ALL ROWS PER MATCH")})
    scenario.rule({"id": "other", "sql": every.format("MEASURES x.price AS p")})
    ticks.send(("a", 1, 1), ("z", 2, 0))
    scenario.run()
    third = [{"step": "s", "where": "price > 9"}]
    scenario.rule({"id": "third", "key": "symbol", "pattern": third})
    scenario.rule({"id": "other", "version": 2, "sql": every.format("MEASURES x.price AS q")})
    ticks.send(("a", 2, 2), ("z", 3, 0))
    outputs = scenario.run()
    assert [match.body["rule_id"] for match in outputs.matches] == []
    assert [row.body["columns"] for row in outputs.match_rows] == [
        {"symbol": "a", "ts": ts, "price": ts, "place": '{"city":"X"}'} for ts in (1, 2)
    ]


def test_a_rule_is_promoted_and_drains_while_the_job_runs(scenario: Scenario) -> None:
    """What it begins in shadow mode it finishes as a live rule, and there the next version lets it
    finish what it has begun."""
    two = """SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts
      MEASURES low.price AS low PATTERN (low high{}) WITHIN INTERVAL '1' HOUR
      DEFINE low AS price < 10, high AS price >= 10)"""
    rule = {"id": "two", "sql": two.format("")}
    ticks = Ticks(scenario)
    scenario.rule({**rule, "mode": "shadow"})
    folder = {"folder": str(scenario.rules_folder), "refresh_interval": "100 ms"}
    with scenario.running(rules=folder) as service:
        ticks.send(("a", 1, 1), ("a", 2, 11), ("a", 3, 2), ("z", 4, 0))
        scenario.wait_for(lambda outputs: len(outputs.shadow) == 1)
        scenario.rule(rule)
        _until_version(service, 1)
        ticks.send(("a", 4, 12), ("a", 5, 3), ("z", 6, 0))
        scenario.wait_for(lambda outputs: len(outputs.matches) == 1)
        scenario.rule(
            {"id": "two", "version": 2, "sql": two.format("{2}"), "previous_version": "drain"}
        )
        _until_version(service, 2)
        ticks.send(("a", 6, 13), ("a", 7, 4), ("a", 8, 14), ("a", 9, 15), ("z", 10, 0))
        outputs = scenario.wait_for(lambda outputs: len(outputs.matches) == 3)
    found = [
        (match.body["rule_version"], match.body["measures"]["low"])
        for match in (*outputs.shadow, *outputs.matches)
    ]
    assert sorted(found) == [(1, 1), (1, 2), (1, 3), (2, 4)]


def _until_version(service: Service, version: int) -> None:
    deadline = time.monotonic() + 60
    while ("active", version) not in {(r["state"], r["version"]) for r in service.rules()}:
        assert time.monotonic() < deadline, f"timed out; there is: {service.rules()}"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("pattern", "told"),
    [("x y? $", "a stream has no last row"), ("x+ y??", "takes any row, as often as it can")],
)
def test_what_only_the_end_decides(scenario: Scenario, pattern: str, told: str) -> None:
    """Is refused where the input does not end, and runs where it does."""
    ticks = Ticks(scenario)
    text = f"""SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts
      MEASURES COUNT(*) AS n PATTERN ({pattern}) DEFINE y AS TRUE)"""
    scenario.rule({"id": "end", "sql": text})
    ticks.send(("a", 1, 1), ("a", 2, 1))
    with pytest.raises(RuleSetError, match=told):
        scenario.run()
    outputs = scenario.decide()
    (found,) = outputs.matches
    assert found.body["measures"]["n"] == 2
