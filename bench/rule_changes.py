"""What rules that change while the job runs cost.

Publish to active: a rule file is put into the folder while events come at a steady rate; from then
on counts what a reader of ``/rules`` waits until Spark has committed a batch under it. And the
speed over a filled topic, of log-ins and of payments, with a new version of a rule every two
seconds, next to none.
"""

from __future__ import annotations

import itertools
import shutil
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.events import SCHEMA, logins
from bench.feed import Feed
from bench.latency import percentiles
from bench.live_events import LINGER_MS, LiveEvents, before, send_steadily
from bench.payments import payments
from bench.rules import document, payments_rules, write_rules
from bench.side import Side
from bench.testbed import DISORDER_MS, OUTPUTS, PARTITIONS, TestBed, Topic, output_topic

_WITHIN_MS = 20_000
_EVERY_SECONDS = 2.0
_AIM = (2.5, 5.0)
_KEPT_SPEED = 0.8
_WARM_UP_EVENTS = 100_000
_SETTLING_SECONDS = 15.0
_DRAIN_SECONDS = 8.0
#: Rules that change, each for a thousandth of the keys.
_OF_LOGINS = document("open", _WITHIN_MS, share="999", number=10**6)
_OF_PAYMENTS = """\
id: changing
key: card.id
pattern:
  - {step: a, where: "amount > 100 AND card.id LIKE '%999'"}
  - {step: b, after: followed_by, where: "amount > 150 AND card.id LIKE '%999'"}
within: 20 seconds
"""


@dataclass(frozen=True)
class Changes:
    """``count`` changes, one every two seconds, with ``rules`` rules, at ``rate`` events/s."""

    count: int
    rules: int
    rate: int


class Author(threading.Thread):
    """Puts a new version of a rule into a folder, every two seconds until told to end. ``rule``: in
    YAML, without the version."""

    def __init__(self, folder: Path, rule: str, settling: float = 0.0) -> None:
        super().__init__(name="author", daemon=True)
        self._folder, self._rule, self._settling = folder, rule, settling
        self._ended = threading.Event()
        #: When each version was there, in seconds since 1970.
        self.published: list[float] = []

    def run(self) -> None:
        """Publish."""
        if self._ended.wait(self._settling):
            return
        for version in itertools.count(1):
            fresh = self._folder / ".changing"
            fresh.write_text(f"{self._rule}version: {version}\n", "utf-8")
            fresh.replace(self._folder / "changing.yaml")
            self.published.append(time.time())
            if self._ended.wait(_EVERY_SECONDS):
                return

    def end(self) -> None:
        """Publish no more."""
        self._ended.set()
        self.join()


def rule_changes(bed: TestBed, changes: Changes, events: int, runs: int) -> dict[str, Any]:
    """Percentiles from publish to active, and the share of the speed that is kept."""
    side = bed.our_side()
    small = bed.filled("logins-warm-up", logins(_WARM_UP_EVENTS), _WARM_UP_EVENTS)
    bed.say("warming up")
    rules = _rules(bed, 1)
    warm = bed.settings(bed.next_run("warm-up"), small.name, rules, batch=_WARM_UP_EVENTS)
    side.ask({"do": "run", "settings": warm})
    bed.say(f"{changes.count} changes among {changes.rules:,} rules, {changes.rate:,} events/s")
    waited, batches = _publish(bed, side, changes)
    # Payments take six times as long.
    few = events // 6
    speed = {
        "log-ins": _speeds(
            bed,
            side,
            bed.filled("logins", logins(events), events),
            lambda: _rules(bed, 23),
            _OF_LOGINS,
            runs,
        ),
        "payments": _speeds(
            bed,
            side,
            bed.filled("payments", payments(few), few),
            lambda: payments_rules(bed.folder / "rules" / bed.next_run("changing")),
            _OF_PAYMENTS,
            runs,
        ),
    }
    return {
        "publish_to_active": {
            **percentiles(waited),
            "aim_median": _AIM[0],
            "aim_99th": _AIM[1],
            "changes": changes.count,
        },
        "batches": batches,
        "speed": speed,
    }


def _rules(bed: TestBed, count: int) -> Path:
    folder = bed.folder / "rules" / bed.next_run("changing")
    return write_rules(folder, "fails", _WITHIN_MS, untouched=count - 1)


def _publish(bed: TestBed, side: Side, changes: Changes) -> tuple[list[float], dict[str, Any]]:
    topic = bed.next_run("live-changes")
    schema_id = bed.topic(topic, SCHEMA)
    rules = _rules(bed, changes.rules)
    settings = _continuous(bed, topic, rules)
    seconds = _SETTLING_SECONDS + changes.count * _EVERY_SECONDS
    feed = Feed(bed.broker.bootstrap, topic, LINGER_MS)
    events = LiveEvents(schema_id, disorder_ms=DISORDER_MS)
    author = Author(rules, _OF_LOGINS, _SETTLING_SECONDS)
    side.send({"do": "run", "settings": settings, "until_asked": True})
    author.start()
    send_steadily(feed, events, changes.rate, before(time.time() + seconds - 1))
    author.end()
    send_steadily(feed, events, changes.rate, before(time.time() + _DRAIN_SECONDS))
    feed.flush()
    side.send({"do": "stop"})
    answer = side.answer(600.0)
    active = [when for _, when in answer["rule_sets"]]
    waited = [
        min((when for when in active if when > published), default=float("inf")) - published
        for published in author.published
    ]
    took = sorted(batch["seconds"] for batch in answer["batches"])
    return waited, {"count": len(took), "median_seconds": round(took[len(took) // 2], 3)}


def _speeds(
    bed: TestBed, side: Side, topic: Topic, rules: Callable[[], Path], changing: str, runs: int
) -> dict[str, Any]:
    """Medians of runs in turn without changes and with them."""
    results: dict[str, list[float]] = {"no change": [], "a change every 2 s": []}
    for _ in range(runs):
        for name, found in results.items():
            rule = None if name == "no change" else changing
            found.append(_speed(bed, side, topic, rules(), rule))
            bed.say(f"{topic.name}, {name}: {found[-1]:,.0f} events/s")
    whole, kept = map(statistics.median, results.values())
    return {
        "no_change": round(whole),
        "changes": round(kept),
        "kept": round(kept / whole, 3),
        "aim": _KEPT_SPEED,
    }


def _speed(bed: TestBed, side: Side, topic: Topic, rules: Path, changing: str | None) -> float:
    """Events per second; ``changing``: a rule that gets new versions meanwhile."""
    settings = _continuous(bed, topic.name, rules)
    author = None if changing is None else Author(rules, changing)
    side.send({"do": "run", "settings": settings, "until_events": topic.records})
    if author is not None:
        author.start()
    answer = side.answer(600.0)
    if author is not None:
        author.end()
    if answer["events"] != topic.records:
        raise ValueError(f"the job read {answer['events']:,} of {topic.records:,} events")
    shutil.rmtree(settings["state"]["checkpoint"], ignore_errors=True)
    return float(answer["events"] / answer["seconds"])


def _continuous(bed: TestBed, topic: str, rules: Path) -> dict[str, Any]:
    run = bed.next_run(topic)
    topics = {kind: output_topic(run, kind) for kind in OUTPUTS}
    bed.broker.create_topics(dict.fromkeys(topics.values(), PARTITIONS))
    changed = {
        "trigger": {"mode": "continuous", "latency": "0 ms"},
        "lifecycle": {"stop_grace": "5 minutes"},
    }
    return bed.settings(run, topic, rules, batch=250_000, changed=changed)
