"""A stream with broken records of every kind: every good one is processed, as if it were alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest

from spark_cep.codecs.registry.framing import frame
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.model import Coordinates
from spark_cep.pipeline.wire.reports import Count
from spark_cep.rules.sources.folder import read_rules
from tests.e2e import poison
from tests.e2e.outputs import Outputs
from tests.e2e.poison import Broken
from tests.e2e.scenario import Scenario
from tests.e2e.stream import at
from tests.kafka_access import Sent
from tests.reference.local import LocalJob, Record

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

#: Broken records for each good one.
SHARES = {"1 %": 1 / 99, "50 %": 1.0}
ALL_OVER = 1_000_000.0


class Run(NamedTuple):
    """What one job was given and wrote."""

    scenario: Scenario
    outputs: Outputs
    broken: dict[int, Broken]
    expected: tuple[list[str], list[str]]


def good_events(count: int) -> list[dict[str, Any]]:
    """Sound events in order of time, the odd but legal ones among them."""
    random = Random(count)
    # Before all others: it is of the first batch, so nothing makes it late.
    events = [poison.values("old", name, poison.YEAR_1 + n) for n, name in enumerate("ab")]
    for number in range(count):
        key = random.choice(["", "k1", "k2", "ключ", "k" * 1000])
        v = random.choice([math.nan, math.inf, -math.inf, -0.0, 1.5, 2.5])
        event = poison.values(key, random.choice("abcdx"), at(number), v)
        events.append(event | {"tags": random.choice([[], [""], ["x"] * 500])})
    events[count // 2] |= {"name": "a" * 900_000}
    events[count // 3] |= {"name": ""}
    return [*events, poison.values("k1", "x", at(ALL_OVER))]


@pytest.fixture(scope="module", params=SHARES)
def run(request: pytest.FixtureRequest, new_scenario: Callable[[], Scenario]) -> Run:
    """A job over a mixed stream, in several batches, and what the core says of the good alone."""
    scenario = new_scenario()
    topic = scenario.input("events", record="Event")
    nested = scenario.register("events", poison.NESTED)
    flat = scenario.register("events", poison.EVENT)
    for rule in poison.rules():
        scenario.rule(rule)
    kinds = poison.broken_kinds(flat, nested)
    share = SHARES[request.param]
    good = good_events(max(200, round(len(kinds) / share)))
    broken = kinds * max(1, round(len(good) * share / len(kinds)))
    Random(1).shuffle(broken)
    # Late comes before without a key, so these are of the first batch, where nothing is late.
    broken.sort(key=lambda each: each.reason != "missing_key")

    records: list[Sent | Broken] = []
    due = 0.0
    waiting = iter(broken)
    for number, event in enumerate(good):
        body = poison.body(event)
        if number % 50 == 3:
            # Deep, but not too deep; a writer that the reader schema knows less of.
            tree = poison.number(1) * 3_000 + poison.number(0)
            records.append(Sent(frame(nested, tree + body)))
        else:
            records.append(Sent(frame(flat, body)))
        due += len(broken) / len(good) if number < len(good) - 1 else len(broken)
        while due >= 1 and (each := next(waiting, None)) is not None:
            records.append(each)
            due -= 1
    offsets = scenario.send("events", *(r if isinstance(r, Sent) else r.sent for r in records))
    sent = dict(zip(offsets, records, strict=True))

    job = LocalJob(compile_rules(read_rules(scenario.rules_folder).enabled))
    sound = [offset for offset, each in sent.items() if isinstance(each, Sent)]
    job.advance(
        [
            Record(
                Coordinates(topic, 0, offset),
                round((event["ts"] - poison.EPOCH).total_seconds() * 1000),
                event,
                input="events",
                type="e2e.Event",
            )
            for offset, event in zip(sound, good, strict=True)
        ],
        at(ALL_OVER) - 1,
    )
    expected = (
        sorted(m.match_id for m in job.outputs.matches),
        sorted(t.match_id for t in job.outputs.timeouts),
    )
    outputs = scenario.run(source={"max_offsets_per_trigger": len(records) // 3 + 1})
    bad = {offset: each for offset, each in sent.items() if isinstance(each, Broken)}
    return Run(scenario, outputs, bad, expected)


def test_good_records_are_processed_as_if_alone(run: Run) -> None:
    """The same matches and timeouts as the core's over the good records, each once; none late."""
    assert len(run.expected[0]) > 50
    assert (run.outputs.match_ids(), run.outputs.timeout_ids()) == run.expected
    assert run.outputs.late == []


def test_every_broken_record_has_one_dead_letter(run: Run) -> None:
    """By coordinates and with its reason; none for a good record."""
    expected = [(offset, each.reason) for offset, each in sorted(run.broken.items())]
    what = {offset: each.what for offset, each in run.broken.items()}
    found = run.outputs.reasons()
    assert [(o, r, what.get(o)) for o, r in found] == [(o, r, what[o]) for o, r in expected]
    assert run.scenario.total(Count.DEAD_LETTERS) == len(expected)


def test_dead_letters_hold_the_original_bytes(run: Run) -> None:
    """Key and value, byte for byte, and a detail."""
    for letter in run.outputs.dead_letters:
        sent = run.broken[letter.body["offset"]].sent
        assert letter.key == letter.body["record_key"] == sent.key
        assert letter.body["record_value"] == sent.value
        assert letter.body["detail"]


def test_the_job_took_several_batches(run: Run) -> None:
    """The clock went on over the broken records from batch to batch."""
    assert sum(report.total(Count.RECORDS) > 0 for report in run.scenario.reports) >= 3
