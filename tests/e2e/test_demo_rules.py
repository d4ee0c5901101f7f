"""The rules of the demo, run once over a stream of each kind: exactly what each of them finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spark_cep.rules.sources.folder import rule_files
from tests.e2e.outputs import Outputs, found
from tests.e2e.scenario import Scenario
from tests.e2e.schemas import MILLIS, record
from tests.kafka_access import Sent

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

RULES = Path(__file__).parents[2] / "examples" / "rules"
SECOND = 1000
LOGS_BEGIN = 1656914303000
COSTS_BEGIN = 1605532639940
LOGINS_BEGIN = 1700000000000
ORDERS_BEGIN = 1700000000000

STATUSES = [
    "success",
    "fail",
    "fail",
    "success",
    "fail",
    "success",
    "fail",
    "success",
    "fail",
    "fail",
    "success",
    "end",
]
COSTS = [("a", 200), ("a", 10), ("a", 120), ("a", 50), ("b", 90), ("b", 150), ("a", 101)]
LOGINS = [
    ("u1", "login_fail"), ("u1", "login_fail"), ("u2", "login_fail"), ("u1", "login_fail"),
    ("u2", "login_fail"), ("u1", "login_fail"), ("u1", "login_ok"), ("u2", "login_ok"),
    ("u1", "login_ok"),
]  # fmt: skip


@pytest.fixture(scope="module")
def outputs(new_scenario: Callable[[], Scenario]) -> Outputs:
    """What all the demo's rules together make of their inputs."""
    scenario = new_scenario()
    for rule in rule_files(RULES):
        scenario.rule(rule.read_text("utf-8"))
    _logs(scenario)
    _costs(scenario)
    _logins(scenario)
    _orders(scenario)
    return scenario.decide()


def _logs(scenario: Scenario) -> None:
    scenario.input("logs")
    log = record("demo.Log", user_id="string", status="string", ts=MILLIS)
    schema = scenario.register("logs", log)
    for number, status in enumerate(STATUSES):
        event = {"user_id": "1001", "status": status, "ts": LOGS_BEGIN + number * SECOND}
        scenario.send("logs", Sent(scenario.avro(schema, event)))


def _costs(scenario: Scenario) -> None:
    scenario.input("sensors")
    cost_record = record("demo.Cost", name="string", cost="double", ts=MILLIS)
    schema = scenario.register("sensors", cost_record)
    for number, (name, cost) in enumerate(COSTS):
        event = {"name": name, "cost": cost, "ts": COSTS_BEGIN + number * 4 * SECOND}
        scenario.send("sensors", Sent(scenario.avro(schema, event)))


def _logins(scenario: Scenario) -> None:
    scenario.input("logins")
    schema = scenario.register(
        "logins",
        record("demo.Login", user_id="string", event_type="string", ip="string", ts=MILLIS),
    )
    for number, (user, kind) in enumerate(LOGINS):
        login = {
            "user_id": user, "event_type": kind, "ip": f"10.0.0.{number}",
            "ts": LOGINS_BEGIN + number * SECOND,
        }  # fmt: skip
        scenario.send("logins", Sent(scenario.avro(schema, login)))


def _orders(scenario: Scenario) -> None:
    scenario.input("orders")
    placed = record("demo.OrderPlaced", order_id="string", amount="double", ts=MILLIS)
    paid = record("demo.OrderPaid", order_id="string", ts=MILLIS)
    schema = scenario.register("orders", [placed, paid])

    def order(kind: str, order_id: str, seconds: int, **more: float) -> Sent:
        datum = {"order_id": order_id, "ts": ORDERS_BEGIN + seconds * SECOND, **more}
        return Sent(scenario.avro(schema, (f"demo.{kind}", datum)))

    scenario.send(
        "orders",
        order("OrderPlaced", "o1", 0, amount=10.0),
        order("OrderPlaced", "o2", 1, amount=20.5),
        order("OrderPaid", "o1", 599),
        order("OrderPaid", "o2", 601),
        order("OrderPlaced", "o3", 602, amount=7.0),
    )


def test_log_anomaly_finds_fifteen(outputs: Outputs) -> None:
    """Every success with every later failure, all ended by the one end; nothing times out."""
    pairs = [
        (s, f)
        for s in range(12)
        for f in range(s + 1, 12)
        if (STATUSES[s], STATUSES[f]) == ("success", "fail")
    ]
    end = LOGS_BEGIN + 11 * SECOND
    expected = [found("log-anomaly", "1001", end, success=s, fail=f, end=11) for s, f in pairs]
    assert len(expected) == 15
    assert outputs.of("log-anomaly") == (sorted(expected), [])


def test_cost_timeout_ends_also_for_the_name_that_falls_silent(outputs: Outputs) -> None:
    """One match, and three timeouts at their exact deadlines; b sends nothing after the fifth."""
    at = [COSTS_BEGIN + n * 4 * SECOND for n in range(len(COSTS))]
    matches, timeouts = outputs.of("cost-timeout")
    assert matches == [found("cost-timeout", "b", at[5], start=4, end=5)]
    assert timeouts == sorted(
        found("cost-timeout", name, at[n] + 10 * SECOND, start=n)
        for n, name in ((3, "a"), (6, "a"), (5, "b"))
    )


def test_brute_force_takes_all_failures_once(outputs: Outputs) -> None:
    """Four failures and a success are one match; two failures and a success are none."""
    matches, _ = outputs.of("brute-force")
    assert matches == [
        found("brute-force", "u1", LOGINS_BEGIN + 6 * SECOND, fail=(0, 1, 3, 5), ok=6)
    ]
    (match,) = [m for m in outputs.matches if m.body["rule_id"] == "brute-force"]
    assert match.body["measures"] == {
        "failures": 4,
        "first_ip": "10.0.0.0",
        "last_ip": "10.0.0.6",
        "first_failure": "2023-11-14T22:13:20Z",
    }


def test_order_not_paid_matches_at_the_deadline(outputs: Outputs) -> None:
    """An order paid in time is no match; one paid a second too late, and one never paid, are."""
    window = 600 * SECOND
    assert outputs.of("order-not-paid") == (
        [
            found("order-not-paid", "o2", ORDERS_BEGIN + 1 * SECOND + window, placed=1),
            found("order-not-paid", "o3", ORDERS_BEGIN + 602 * SECOND + window, placed=4),
        ],
        [],
    )


def test_nothing_is_late_and_nothing_broken(outputs: Outputs) -> None:
    """Sound events in order give neither late events nor dead letters."""
    assert (outputs.late, outputs.dead_letters) == ([], [])
