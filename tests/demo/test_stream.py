"""The demo's stream: what it holds, and that what must come of it is known without the engine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from io import BytesIO
from pathlib import Path

import fastavro
import pytest

from examples.demo.expected import (
    Reading,
    brute_force,
    cost_timeout,
    expected,
    log_anomaly,
    order_not_paid,
)
from examples.demo.feed import SCHEMAS, encode_body
from examples.demo.scenes import costs_of_a_and_b, user_1001, waves
from examples.demo.stream import (
    ALLOWED_DISORDER_MS,
    BEGINNING,
    LARGEST_DISORDER_MS,
    TOPICS,
    Damage,
    Item,
)

ROOT = Path(__file__).parents[2]
ITEMS = [item for wave in waves() for item in wave.items]


def _story(items: list[Item]) -> list[tuple[int, str | None, object]]:
    return [
        (item.time - items[0].time, item.key, (item.fields or {}).get("status")) for item in items
    ]


def test_what_must_come_of_the_stream() -> None:
    """The counts of the whole demo, written out."""
    counts = expected(waves())
    assert +counts.matches == {
        ("log-anomaly", "1001"): 15,
        ("cost-timeout", "b"): 1,
        ("cost-timeout", "mixer"): 1,
        ("brute-force", "mallory"): 1,
        ("brute-force", "trent"): 1,
        ("brute-force", "oscar"): 1,
        ("order-not-paid", "o-102"): 1,
        ("order-not-paid", "o-106"): 1,
        ("order-not-paid", "o-107"): 1,
        # Not o-104 and the others that came before the rule.
        ("large-order", "o-107"): 1,
    }
    assert +counts.timeouts == {
        ("cost-timeout", "a"): 2,
        ("cost-timeout", "b"): 1,
        ("brute-force", "carol"): 1,
        ("brute-force", "eve"): 3,
        ("brute-force", "peggy"): 2,
    }
    assert counts.late == dict.fromkeys(TOPICS, 1)
    assert counts.dead_letters == {
        "not_framed": 1,
        "unknown_schema_id": 1,
        "undecodable": 2,
        "missing_key": 1,
        "event_time_out_of_bounds": 1,
    }
    assert counts.total == 43


def test_the_log_of_user_1001() -> None:
    """Twelve lines, one a second, with fifteen matches."""
    items = list(user_1001(0))
    statuses = [status for _, _, status in _story(items)]
    assert statuses == [
        "success", "fail", "fail", "success", "fail", "success",
        "fail", "success", "fail", "fail", "success", "end",
    ]  # fmt: skip
    assert [time for time, _, _ in _story(items)] == list(range(0, 12_000, 1_000))
    readings = [Reading(item.time, None, item.fields or {}) for item in items]
    assert log_anomaly(readings, 0) == (15, 0)


def test_the_costs_of_a_and_b() -> None:
    """Seven costs in 24 seconds; ``a`` times out twice, ``b`` matches and times out once."""
    items = list(costs_of_a_and_b(0))
    assert [item.time - BEGINNING for item in items] == list(range(0, 25_000, 4_000))
    found = {
        key: cost_timeout(
            [Reading(i.time, None, i.fields or {}) for i in items if i.key == key], 2**62
        )
        for key in "ab"
    }
    assert found == {"a": (0, 2), "b": (1, 1)}


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("fff o", (1, 0)),
        ("ff o", (0, 2)),
        ("ffff", (0, 4)),
        ("fofoffo", (1, 0)),
        ("fff oo fff o", (2, 0)),
    ],
)
def test_failures_before_a_login(text: str, outcome: tuple[int, int]) -> None:
    """Three failures match with the next good login; failures left over time out."""
    what = {"f": "login_fail", "o": "login_ok"}
    readings = [
        Reading(second * 1_000, None, {"event_type": what[letter]})
        for second, letter in enumerate(text)
        if letter != " "
    ]
    assert brute_force(readings, 2**62) == outcome


@pytest.mark.parametrize(
    ("paid_after_ms", "matches"), [(None, 1), (599_999, 0), (600_000, 1), (700_000, 1)]
)
def test_a_payment_counts_before_the_deadline(paid_after_ms: int | None, matches: int) -> None:
    """The deadline itself is too late."""
    events = [Reading(0, "demo.OrderPlaced", {})]
    if paid_after_ms is not None:
        events.append(Reading(paid_after_ms, "demo.OrderPaid", {}))
    assert order_not_paid(events, 600_000) == (matches, 0)
    assert order_not_paid(events[:1], 599_999) == (0, 0)


def test_ordinary_records_are_within_the_allowed_disorder() -> None:
    """No record is behind what arrived before it by more than the job allows, wherever batches are
    cut, but some are out of order; late ones are minutes behind."""
    newest = BEGINNING
    behind: Counter[bool] = Counter()
    for item in ITEMS:
        if item.late:
            assert newest - item.time > 10 * ALLOWED_DISORDER_MS
            continue
        assert newest - item.time <= LARGEST_DISORDER_MS < ALLOWED_DISORDER_MS
        behind[item.time < newest] += 1
        newest = max(newest, item.time)
    assert behind[True] > 50


def test_late_records_wait_for_the_watermark() -> None:
    """A wave with late records begins only when the time of the newest of them has passed."""
    waiting = [wave for wave in waves() if wave.waits_for is not None]
    assert len(waiting) == 1
    assert all(i.time <= (waiting[0].waits_for or 0) for i in waiting[0].items if i.late)


def test_no_key_has_two_events_of_one_time() -> None:
    """So results do not depend on partitions or offsets."""
    seen = Counter((item.topic, item.key, item.time) for item in ITEMS if item.sound)
    assert seen.most_common(1)[0][1] == 1


def test_the_stream_is_the_same_in_every_run() -> None:
    """Another interpreter comes to the same records."""
    source = "from examples.demo.scenes import waves\nprint([i for w in waves() for i in w.items])"
    done = subprocess.run(
        [sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(ITEMS)


def test_expectations_do_not_need_the_engine() -> None:
    """Neither the stream nor what must come of it imports the service."""
    source = (
        "import sys, examples.demo.scenes, examples.demo.expected\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('spark_cep', 'pyspark')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_every_event_fits_its_schema() -> None:
    """Each record is read back, by the schema that wrote it, as it was."""
    for item in ITEMS:
        if not item.sound:
            continue
        schema = fastavro.parse_schema(
            json.loads((SCHEMAS / f"{item.schema.name}.avsc").read_text())
        )
        read = fastavro.schemaless_reader(BytesIO(encode_body(item, schema)), schema, None)
        assert isinstance(read, dict)
        assert round(read.pop("ts").timestamp() * 1000) == item.time
        assert read.items() >= dict(item.fields or {}).items()


def test_every_kind_of_damage_is_there() -> None:
    """One record of each."""
    assert Counter(item.damage for item in ITEMS if item.damage) == dict.fromkeys(Damage, 1)


def test_the_stream_comes_again() -> None:
    """The same so much later, behind all windows; what is new in the first is known."""
    first, again = waves(), waves(2)
    assert [len(each.items) for each in again] == [len(each.items) for each in first]
    moved = {b.time - a.time for one, two in zip(first, again, strict=True)
             for a, b in zip(one.items, two.items, strict=True)}  # fmt: skip
    (distance,) = moved
    assert distance > 2 * (max(item.arrival for item in ITEMS) - BEGINNING)
    assert not any(each.registers or each.adds for each in again)
