"""What stands in the output records: headers, keys, measures, events as the rule emits them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.e2e.outputs import Outputs, Record
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence
from tests.kafka_access import Sent

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

BROKEN = Sent(b"\x01not avro", b"key of the broken", headers=[("trace", b"1")])


class Run(NamedTuple):
    """One scenario after two runs from one checkpoint, and after a third from a fresh one."""

    topic: str
    sent: list[Sent]
    outputs: Outputs
    again: Outputs


@pytest.fixture(scope="module")
def run(new_scenario: Callable[[], Scenario]) -> Run:
    """A match of three rules that emit differently, a timeout, a late event, a broken record."""
    scenario = new_scenario()
    stream = Stream(scenario)
    measures = {
        "total": "SUM(b.v)", "peak": "MAX(b.v)", "first": "FIRST(b.v)", "taken": "COUNT(b.*)",
        "who": "LAST(a.name)", "since": "FIRST(a.ts)",
    }  # fmt: skip
    for events in ("all", "none", ["v", "name"]):
        rule_id = "columns" if isinstance(events, list) else events
        rule = sequence(rule_id, "a", "followed_by b", "followed_by c", within="1 minute")
        rule["pattern"][1]["times"] = 2
        scenario.rule({**rule, "version": 7, "emit": {"measures": measures, "events": events}})
    sent = [
        stream.event("ü1", "a", 0, 1, key=b"ignored"),
        stream.event("ü1", "b", 1, 2.5),
        stream.event("ü1", "b", 2, 4),
        stream.event("ü1", "c", 3),
        stream.event("u2", "a", 4),
        stream.event("u3", "x", 120),
    ]
    late = stream.event("u2", "b", 5, 9, key=b"\x00key", headers=[("trace", b"t1")])
    stream.send(*sent)
    scenario.run()
    stream.send(late, BROKEN)
    outputs = scenario.run()
    again = scenario.run(state={"checkpoint": str(scenario.folder / "other")})
    return Run(stream.topic, [*sent, late], outputs, again)


def _match(run: Run, rule: str) -> Record:
    (match,) = [m for m in run.outputs.matches if m.body["rule_id"] == rule]
    return match


def test_a_match_carries_key_and_headers(run: Run) -> None:
    """The record's key is the event key in UTF-8; headers say kind, rule, version and match id."""
    match = _match(run, "none")
    assert match.key == "ü1".encode()
    assert match.headers == {
        "spark-cep-kind": b"match",
        "spark-cep-rule-id": b"none",
        "spark-cep-rule-version": b"7",
        "spark-cep-match-id": match.body["match_id"].encode(),
    }
    assert (match.body["start"], match.body["time"]) == (at(0), at(3))


def test_measures_are_computed_over_the_matched_events(run: Run) -> None:
    """Aggregates and first and last values, each with the type of its column."""
    assert _match(run, "none").body["measures"] == {
        "total": 6.5, "peak": 4.0, "first": 2.5, "taken": 2, "who": "a",
        "since": "2023-11-14T22:13:20Z",
    }  # fmt: skip


@pytest.mark.parametrize("rule", ["all", "none", "columns"])
def test_events_are_emitted_as_the_rule_says(run: Run, rule: str) -> None:
    """Whole events as their original bytes, none of them, or some columns; coordinates always."""
    steps = _match(run, rule).body["steps"]
    assert [step["step"] for step in steps] == ["a", "b", "c"]
    events = [event for step in steps for event in step["events"]]
    assert [(e["topic"], e["partition"], e["offset"], e["time"]) for e in events] == [
        (run.topic, 0, offset, at(offset)) for offset in range(4)
    ]
    payloads = [sent.value if rule == "all" else None for sent in run.sent[:4]]
    assert [e["payload"] for e in events] == payloads
    columns = [{"v": v, "name": n} for v, n in ((1.0, "a"), (2.5, "b"), (4.0, "b"), (0.0, "c"))]
    assert [e["columns"] for e in events] == (columns if rule == "columns" else [None] * 4)


def test_a_timeout_says_when_and_what_it_had(run: Run) -> None:
    """The deadline is start plus window; the events taken so far are listed."""
    (timeout,) = [t for t in run.outputs.timeouts if t.body["rule_id"] == "none"]
    assert timeout.key == b"u2"
    assert timeout.headers["spark-cep-kind"] == b"timeout"
    body = timeout.body
    assert (body["start"], body["deadline"], body["already_matched"]) == (at(4), at(64), False)
    assert [(s["step"], [e["offset"] for e in s["events"]]) for s in body["steps"]] == [("a", [4])]


def test_the_same_match_has_the_same_id_in_every_run(run: Run) -> None:
    """A run from a fresh checkpoint finds the same ids; no two matches share one."""
    assert len(set(run.outputs.match_ids())) == 3
    assert run.again.match_ids() == sorted(run.outputs.match_ids() * 2)
    assert set(run.outputs.timeout_ids()) <= set(run.again.timeout_ids())


def test_a_late_record_is_passed_on_unchanged(run: Run) -> None:
    """Key, value and headers as they came, with headers more for where it stood and when."""
    (late,) = run.outputs.late
    assert (late.key, late.value) == (run.sent[-1].key, run.sent[-1].value)
    assert late.headers == {
        "trace": b"t1",
        "spark-cep-kind": b"late",
        "spark-cep-topic": run.topic.encode(),
        "spark-cep-partition": b"0",
        "spark-cep-offset": b"6",
        "spark-cep-event-time": b"%d" % at(5),
        "spark-cep-watermark": b"%d" % (at(120) - 1),
    }


def test_a_dead_letter_holds_the_original(run: Run) -> None:
    """Coordinates, reason, a sentence, and the record's bytes under its own key."""
    (letter,) = run.outputs.dead_letters
    assert letter.key == BROKEN.key
    assert letter.headers["spark-cep-kind"] == b"dead-letter"
    assert letter.headers["spark-cep-reason"] == b"not_framed"
    body = letter.body
    assert (body["topic"], body["partition"], body["offset"]) == (run.topic, 0, 7)
    assert (body["record_key"], body["record_value"]) == (BROKEN.key, BROKEN.value)
    assert (body["reason"], body["rule_id"], body["step"]) == ("not_framed", None, None)
    assert body["detail"]
