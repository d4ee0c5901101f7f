"""Events per second where every event concerns several rules, each with a key of its own.

Strict steps of a user, to whom half of all events belong; an aggregate over the last ten events of
an address; and an absence for each event of a session. No event can be left out, and each is sent
to a key group for each rule.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.comparison import in_turn, profile, ratio
from bench.contenders import Course, ceiling, job
from bench.events import SCHEMA, closing, encoded, events
from bench.feed import Encoded, Stream
from bench.outputs import full_line_of
from bench.testbed import TestBed
from bench.throughput import runs_of, warm_up_events

RULES = Path(__file__).with_name("several.yaml")
_USERS, _ADDRESSES, _SESSIONS = 5_000, 2_000, 2_000
_HOUR_MS = 3_600_000


def several(bed: TestBed, *, events: int, runs: int) -> dict[str, Any]:
    """The three rules together, next to Spark, which only reads."""
    ours = bed.our_side()
    rules = bed.folder / "rules" / "several"
    rules.mkdir(parents=True, exist_ok=True)
    shutil.copy(RULES, rules)
    few = warm_up_events(events)
    course = Course(
        bed.filled("several", stream(events), events),
        bed.filled("several-warm-up", stream(few), few),
        "several",
        rules,
        lines=full_line_of,
    )
    results = in_turn([job(bed, ours, course), ceiling(bed, ours, course)], runs, bed.say)
    return {
        "ratios": [ratio("share of Spark's reading", results, "ours", "Spark alone").document()],
        "profile": profile(results["ours"]),
        "runs": runs_of(results),
    }


def stream(count: int) -> Stream:
    """The first ``count`` events, closed an hour later, by session: the user of half of them is in
    all partitions."""
    last = 0

    def by_session() -> Iterator[Encoded]:
        nonlocal last
        for number, event in enumerate(events(count, _USERS)):
            last = max(last, event["ts"])
            yield _sent(_shared(event, number))

    return Stream(SCHEMA, by_session(), lambda number: _sent(closing(number, last + _HOUR_MS)))


def _shared(event: dict[str, Any], number: int) -> dict[str, Any]:
    """An event with other keys: every second one of one user, and few addresses and sessions."""
    drawn = int(event["session"], 16)
    return event | {
        "user_id": "user-0000000" if number % 2 else event["user_id"],
        "ip": f"10.0.{drawn % _ADDRESSES}.7",
        "session": f"session-{drawn // _ADDRESSES % _SESSIONS:04d}",
    }


def _sent(event: dict[str, Any]) -> Encoded:
    _, body = encoded(event)
    return event["session"], body
