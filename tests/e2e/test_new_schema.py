"""Schema ids that appear while the job runs: those the registry knows, and one that it does not."""

from __future__ import annotations

import pytest

from service.codecs.framing import frame
from service.pipeline.wire.reports import Count
from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.schemas import field, record
from tests.e2e.stream import EVENT, Stream, at, sequence
from tests.kafka_access import Sent

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

UNKNOWN_ID = 912_345
(EXTRA,) = record("e2e.Event", extra=field("string", default="d"))["fields"]
NEWER = {**EVENT, "fields": [*EVENT["fields"], EXTRA]}


def test_a_new_schema_loses_and_doubles_nothing(scenario: Scenario) -> None:
    """The query is rebuilt by itself, and the batch with the new ids runs again as a whole:
    known and new ids go on, the unknown one is a dead letter, what follows is processed."""
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    with scenario.running():
        stream.send(("k", "a", 0), ("k", "b", 1), ("k", "a", 2))
        scenario.wait_for_records(3)
        newer = scenario.register("events", NEWER)
        datum = {"ts": at(4), "k": "k", "name": "b", "v": 0.0, "extra": "e"}
        unknown = frame(UNKNOWN_ID, b"whatever")
        stream.send(
            stream.event("k", "x", 3),
            Sent(scenario.avro(newer, datum)),
            Sent(unknown, b"key"),
            stream.event("k", "a", 5),
        )
        scenario.wait_for_records(7)
        stream.send(Sent(scenario.avro(newer, {**datum, "ts": at(6)})), Sent(unknown))
        stream.send(("k", "x", 7))
        outputs = scenario.wait_for(lambda out: len(out.matches) >= 3)
    expected = [
        found("ab", "k", at(end), a=a, b=b) for a, b, end in ((0, 1, 1), (2, 4, 4), (6, 7, 6))
    ]
    assert outputs.of("ab") == (expected, [])
    assert outputs.reasons() == [(5, "unknown_schema_id"), (8, "unknown_schema_id")]
    assert (scenario.total(Count.RECORDS), outputs.late) == (10, [])
    assert outputs.dead_letters[0].body["record_value"] == unknown
    restarts = scenario.metric("spark_cep_query_restarts_total", reason="new_schema")
    assert restarts == 1
