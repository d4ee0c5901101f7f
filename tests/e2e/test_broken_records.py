"""Records that cannot be processed: each gets its reason, and everything after it is processed.
Dead letters are in JSON here, and in Avro everywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from spark_cep.codecs.registry.framing import frame
from spark_cep.pipeline.wire.reports import Count
from tests.e2e.outputs import Outputs, found
from tests.e2e.scenario import Scenario
from tests.e2e.schemas import MILLIS, record
from tests.e2e.stream import at, sequence
from tests.kafka_access import Sent

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

EVENT = record("e2e.Event", name="string", k=["null", "string"], ts=["null", MILLIS])
OTHER = record("e2e.Other", text="string")
UNKNOWN_ID = 987_654
TEN_DAYS = 10 * 86_400_000


@pytest.fixture(scope="module")
def sent() -> dict[int, tuple[Sent, str | None]]:
    """What was sent, by offset, with the reason of its dead letter."""
    return {}


@pytest.fixture(scope="module")
def scenario(
    new_scenario: Callable[[], Scenario], sent: dict[int, tuple[Sent, str | None]]
) -> Scenario:
    """A run over sound events with all kinds of broken records between them."""
    scenario = new_scenario()
    scenario.input("events", record="Event")
    schema = scenario.register("events", [EVENT, OTHER])

    def event(name: str, seconds: float, **values: object) -> bytes:
        datum = {"name": name, "k": "k1", "ts": at(seconds), **values}
        return scenario.avro(schema, ("e2e.Event", datum))

    whole = event("a", 1)
    future = int(time.time() * 1000) + TEN_DAYS
    records = [
        (Sent(event("a", 0)), None),
        (Sent(bytes(range(100, 140)), b"k"), "not_framed"),
        (Sent(b"\x07" + whole[1:]), "not_framed"),
        (Sent(b""), "not_framed"),
        (Sent(b"\x00\x00"), "not_framed"),
        (Sent(whole[:9]), "undecodable"),
        (Sent(whole[:5]), "undecodable"),
        (Sent(frame(schema, b"\x00" + b"\xff" * 24), b"\xff"), "undecodable"),
        (Sent(frame(UNKNOWN_ID, whole[5:])), "unknown_schema_id"),
        (Sent(event("a", 2, k=None)), "missing_key"),
        (Sent(event("a", 2, ts=None)), "missing_event_time"),
        (Sent(event("a", 2, ts=future)), "event_time_out_of_bounds"),
        # Of use for no rule, and ahead of the clock alone.
        (Sent(event("x", 2, ts=future), timestamp=future), "event_time_out_of_bounds"),
        (Sent(None, b"tombstone"), None),
        (Sent(scenario.avro(schema, ("e2e.Other", {"text": "not read"}))), None),
        (Sent(event("b", 3)), None),
        (Sent(event("x", 100)), None),
    ]
    offsets = scenario.send("events", *(each for each, _ in records))
    sent.update(zip(offsets, records, strict=True))
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    scenario.run(outputs={"formats": {"dead_letters": "json"}})
    return scenario


@pytest.fixture(scope="module")
def outputs(scenario: Scenario) -> Outputs:
    """What the run wrote."""
    return scenario.outputs()


def test_each_has_its_reason(outputs: Outputs, sent: dict[int, tuple[Sent, str | None]]) -> None:
    """One dead letter for each broken record, with the right reason, and none for the others."""
    expected = [(offset, reason) for offset, (_, reason) in sent.items() if reason is not None]
    assert outputs.reasons() == expected


def test_original_bytes_are_kept(
    outputs: Outputs, sent: dict[int, tuple[Sent, str | None]]
) -> None:
    """Every dead letter holds the key and value of its record, byte for byte."""
    for letter in outputs.dead_letters:
        record_sent, _ = sent[letter.body["offset"]]
        assert letter.key == letter.body["record_key"] == record_sent.key
        assert letter.body["record_value"] == record_sent.value
        assert letter.body["detail"]


def test_everything_after_them_is_processed(outputs: Outputs) -> None:
    """The match that spans all the broken records is found, and no event counts as late."""
    assert outputs.of("ab") == ([found("ab", "k1", at(3), a=0, b=15)], [])
    assert outputs.late == []


def test_tombstones_and_other_types_are_counted_and_passed_over(scenario: Scenario) -> None:
    """Neither a record without value nor one of a type that no input reads is a dead letter."""
    assert scenario.total(Count.TOMBSTONES) == 1
    assert scenario.total(Count.RECORDS) == 17
