"""The circuit breaker in the running job: it stops the job behind a written batch, or pauses one
rule."""

from __future__ import annotations

import pytest

from spark_cep.errors import CircuitBreakerError
from spark_cep.pipeline.wire.reports import Count
from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence
from tests.kafka_access import Sent

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def test_it_stops_the_job_and_nothing_is_lost(scenario: Scenario) -> None:
    """The batch that blows it is written and committed, the next one is not begun; the next start
    goes on behind it, and in the end everything is there once."""
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b"))
    broken = [Sent(b"\x07broken")] * 11 + [Sent(b"")]
    stream.send(("k", "a", 0), *broken, *[("k", "x", 1)] * 7)
    stream.send(*[("k", "x", 2)] * 18, ("k", "b", 3), ("k", "x", 4))
    limits = {"max_share": 0.5, "min_records": 20}
    with pytest.raises(CircuitBreakerError) as stopped:
        scenario.run(source={"max_offsets_per_trigger": 20}, circuit_breaker=limits)
    text = str(stopped.value)
    assert "12 dead letters for 20 records" in text
    assert "60.00%; circuit_breaker.max_share allows 50.00%; reasons: not_framed 12;" in text
    assert scenario.topic("dead_letters") in text
    assert scenario.total(Count.RECORDS) == 20
    assert len(scenario.outputs().dead_letters) == 12

    outputs = scenario.run(source={"max_offsets_per_trigger": 20}, circuit_breaker=limits)
    assert outputs.of("ab") == ([found("ab", "k", at(3), a=0, b=38)], [])
    assert outputs.reasons() == [(offset, "not_framed") for offset in range(1, 13)]
    assert scenario.total(Count.RECORDS) == 40


def test_it_pauses_one_rule(scenario: Scenario) -> None:
    """A rule with too many dead letters takes no part from the next batch on, its partial matches
    gone without timeouts, also after a restart; the others go on. Another version of it begins from
    nothing."""
    stream = Stream(scenario)
    limits = {"partial_matches": 1, "on_limit": "drop_oldest"}
    steps = ("a", "followed_by b")
    scenario.rule(sequence("noisy", *steps, within="1 hour", limits=limits))
    # All by itself in its partitioning.
    scenario.rule(sequence("lonely", *steps, within="1 hour", limits=limits, key="k || ''"))
    scenario.rule(sequence("calm", *steps, within="1 hour"))
    keys = [f"k{number}" for number in range(9)]
    stream.send(*[(key, "a", n) for n in range(2) for key in keys], *[("q", "x", 2)] * 2)
    stream.send(*[(key, "b", 3) for key in keys], *[("q", "x", 4)] * 11)
    stream.send(*[("q", name, second) for second in range(5, 9) for name in "axbx"])
    stream.send(*[("q", "x", 10)] * 4)
    breaker = {"max_rule_share": 0.4, "min_records": 10}
    section = {"max_offsets_per_trigger": 20}
    service = scenario.service(source=section, circuit_breaker=breaker)
    service.run()
    outputs = scenario.outputs()

    gone = {("noisy", 1): 9, ("lonely", 1): 9}
    assert [report.gone for report in scenario.reports if report.gone] == [gone]
    assert outputs.of("noisy") == outputs.of("lonely") == ([], [])
    assert len(outputs.of("calm")[0]) == 2 * 9 + 4
    ids = [letter.body["rule_id"] for letter in outputs.dead_letters]
    assert sorted(ids) == ["lonely"] * 9 + ["noisy"] * 9
    paused = {rule["id"]: rule["state"] == "paused" for rule in service.rules()}
    assert paused == {"calm": False, "lonely": True, "noisy": True}
    assert scenario.metric("spark_cep_rule_paused_info", rule="noisy", version="1") == 1

    stream.send(("z", "b", 11), ("z", "a", 12), ("z", "b", 13), ("z", "x", 14))
    scenario.rule(sequence("noisy", *steps, within="1 hour", limits=limits, version=2))
    after = scenario.run(source=section, circuit_breaker=breaker)
    assert after.of("noisy") == ([found("noisy", "z", at(13), a=61, b=62)], [])
    assert after.of("lonely") == ([], [])
    assert len(after.of("calm")[0]) == 2 * 9 + 4 + 1
    for rule, value in (("noisy", None), ("lonely", 1)):
        assert scenario.metric("spark_cep_rule_paused_info", rule=rule, version="1") == value


@pytest.mark.parametrize("at_end", ["decide", "wait"])
def test_it_pauses_a_rule_in_the_last_batch(scenario: Scenario, at_end: str) -> None:
    """A run to the end of input does one more batch for it, so the next start has the pause."""
    stream = Stream(scenario)
    limits = {"partial_matches": 1, "on_limit": "drop_oldest"}
    scenario.rule(sequence("noisy", "a", "followed_by b", within="1 hour", limits=limits))
    stream.send(*[(key, "a", second) for second in range(3) for key in "kl"], ("q", "x", 4))
    breaker = {"max_rule_share": 0.1, "min_records": 4}
    trigger = {"mode": "available_now", "at_end_of_input": at_end}
    service = scenario.service(circuit_breaker=breaker, trigger=trigger)
    service.run()
    assert [rule["state"] for rule in service.rules()] == ["paused"]
    stream.send(("k", "b", 5), ("k", "x", 6))
    service = scenario.service(circuit_breaker=breaker, trigger=trigger)
    service.run()
    assert [rule["state"] for rule in service.rules()] == ["paused"]
    assert scenario.outputs().of("noisy") == ([], [])
