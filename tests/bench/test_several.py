"""The stream and the rules of the benchmark of which every event concerns several rules."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

import fastavro

from bench.events import SCHEMA
from bench.several import RULES, stream
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.model import Coordinates
from spark_cep.pattern.document.loading import load_rules
from tests.reference.local import LocalJob, Record

EVENTS = 6_000


def decoded() -> list[dict[str, Any]]:
    """The events, whose keys are their sessions."""
    schema = fastavro.parse_schema(SCHEMA)
    found = []
    for key, body in stream(EVENTS).events:
        event: Any = fastavro.schemaless_reader(io.BytesIO(body), schema, None)
        assert event["session"] == key
        found.append(event)
    return found


def test_half_of_the_events_are_of_one_user() -> None:
    """The addresses and sessions have some each."""
    events = decoded()
    users = Counter(event["user_id"] for event in events).most_common(2)
    assert users[0] == ("user-0000000", EVENTS // 2)
    assert users[1][1] < 10
    for name in ("ip", "session"):
        assert 0 < max(Counter(event[name] for event in events).values()) < 20


def test_each_event_concerns_each_rule() -> None:
    """Each rule finds something, and drops no event before the matcher."""
    rules = [loaded.rule for loaded in load_rules(RULES.read_text("utf-8"), "several")]
    job = LocalJob(compile_rules(rules))
    records = [
        # Fewer addresses, so that some have ten events.
        Record(
            Coordinates("several", 0, number),
            int(event["ts"].timestamp() * 1000),
            event | {"ip": event["ip"][:6]},
        )
        for number, event in enumerate(decoded())
    ]
    job.advance(records, 2**50)
    found = Counter(match.rule_id for match in job.outputs.matches)
    assert found.keys() == {"rising", "above-ten", "silent"}
    assert found["silent"] > EVENTS / 10
