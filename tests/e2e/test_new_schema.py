"""Schema ids that appear while the job runs: those the registry knows, and one that it does not."""

from __future__ import annotations

import json
import uuid
from io import BytesIO

import fastavro
import pytest

from spark_cep.codecs.registry.framing import frame
from spark_cep.errors import SparkCepError
from spark_cep.pipeline.driver.observe.progress import BatchReport
from spark_cep.pipeline.wire.reports import Count
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


def test_ids_that_nobody_knows_restart_nothing(scenario: Scenario) -> None:
    """Whoever may write to the topic can make them up: each costs a question, the batch goes on."""
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    made_up = [Sent(frame(UNKNOWN_ID + n, b"whatever")) for n in range(1_500)]
    stream.send(("k", "a", 0), stream.event("k", "x", 1), *made_up, ("k", "b", 2), ("k", "x", 9))
    outputs = scenario.run()
    assert outputs.of("ab") == ([found("ab", "k", at(2), a=0, b=1_502)], [])
    assert outputs.reasons() == [(2 + n, "unknown_schema_id") for n in range(1_500)]
    assert not scenario.metric("spark_cep_query_restarts_total", reason="new_schema")


def test_what_a_batch_took_for_unknown_stays_so_when_it_runs_again(scenario: Scenario) -> None:
    """It was written, and the registry has learnt the id before the batch runs again: the record
    is a dead letter and no event. From the next batch on the id is known."""
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b"))
    stream.send(("k", "a", 0))
    scenario.run()
    # Ids are counted up. By now the outputs' schemas have theirs, and this one is of nobody else.
    last = scenario.register("other", record(f"e2e.Other{uuid.uuid4().hex}", other="string"))
    # Nor is the schema of that id there before.
    (own,) = record("e2e.Event", **{f"own_{uuid.uuid4().hex}": field("string", default="")})[
        "fields"
    ]
    newest = {**NEWER, "fields": [*NEWER["fields"], own]}
    schema = fastavro.parse_schema(json.loads(json.dumps(newest)))

    def newer(name: str, second: float) -> Sent:
        body = BytesIO()
        datum = {"ts": at(second), "k": "k", "name": name, "v": 0.0, "extra": "e"}
        fastavro.schemaless_writer(body, schema, datum)
        return Sent(frame(last + 1, body.getvalue()))

    def crash(_report: BatchReport) -> None:
        raise RuntimeError("the driver is gone")

    stream.send(newer("b", 1), ("k", "x", 9))
    with pytest.raises(SparkCepError, match="the driver is gone"):
        scenario.service(on_batch=crash).run()
    assert scenario.outputs().reasons() == [(1, "unknown_schema_id")]
    assert scenario.register("events", newest) == last + 1
    assert scenario.run().of("ab") == ([], [])
    stream.send(newer("b", 10), ("k", "x", 19))
    outputs = scenario.run()
    assert outputs.of("ab") == ([found("ab", "k", at(10), a=0, b=3)], [])
    assert outputs.reasons() == [(1, "unknown_schema_id")]


def test_schemas_that_cannot_be_used_end_nothing(scenario: Scenario) -> None:
    """One is met while the job runs, and all of them at its next start: their records are dead
    letters that say why, and the events beside them are processed."""
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    itself = record("e2e.Itself", z=field({"type": "array", "items": record("e2e.Z", z="e2e.Z")}))
    with scenario.running():
        stream.send(("k", "a", 0))
        scenario.wait_for_records(1)
        # Of another subject: who may write to the topic may use its id.
        endless = scenario.register("other", itself)
        stream.send(Sent(frame(endless, b"\0")), ("k", "b", 1), ("k", "x", 9))
        scenario.wait_for(lambda out: len(out.matches) >= 1 and len(out.dead_letters) >= 1)
    broken = scenario.register("events", {**EVENT, "fields": [*EVENT["fields"], *itself["fields"]]})
    stream.send(Sent(frame(broken, b"\0")), ("k", "a", 10), ("k", "b", 11), ("k", "x", 19))
    outputs = scenario.run()
    expected = [found("ab", "k", at(end), a=a, b=b) for a, b, end in ((0, 2, 1), (5, 6, 11))]
    assert outputs.of("ab") == (expected, [])
    assert outputs.reasons() == [(1, "unreadable_schema"), (4, "unreadable_schema")]
    for letter in outputs.dead_letters:
        assert "the record e2e.Z contains itself without end" in letter.body["detail"]
