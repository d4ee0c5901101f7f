"""What must come out of a stream, from the definitions of the example rules alone.

Nothing here knows the engine: each of the four rules in ``examples/rules``, and the one
that is added while the stream runs, is one short function
over the events of one key in the order of their times. What a stream's records become otherwise
(late, dead letter, tombstone) follows from how they were made.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from examples.demo.stream import ALLOWED_DISORDER_MS, Wave

_SECOND, _MINUTE = 1_000, 60_000
_LARGE = 40


class Found(NamedTuple):
    """Results of one rule for one key."""

    matches: int
    timeouts: int


@dataclass
class Counts:
    """How many results: matches and timeouts by rule and key, late events by topic, dead letters
    by reason."""

    matches: Counter[tuple[str, str]] = field(default_factory=Counter)
    timeouts: Counter[tuple[str, str]] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    dead_letters: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """All records in all output topics."""
        parts = (self.matches, self.timeouts, self.late, self.dead_letters)
        return sum(part.total() for part in parts)


class Reading(NamedTuple):
    """One event: its time, record type and fields, and the number of its wave."""

    time: int
    type: str | None
    fields: Mapping[str, Any]
    wave: int = 0


def log_anomaly(events: Sequence[Reading], _now: int) -> Found:
    """Each failure after each success, when the session ends later. No window, no timeout."""
    statuses = [event.fields["status"] for event in events]
    last_end = max((n for n, status in enumerate(statuses) if status == "end"), default=-1)
    pairs = [
        (first, second)
        for second in range(last_end)
        for first in range(second)
        if statuses[first] == "success" and statuses[second] == "fail"
    ]
    return Found(len(pairs), 0)


def cost_timeout(events: Sequence[Reading], now: int) -> Found:
    """A cost above 10, then at once one above 100, less than ten seconds later."""
    matches = timeouts = 0
    for event, after in pairwise([*events, None]):
        if event is None or event.fields["cost"] <= 10:
            continue
        deadline = event.time + 10 * _SECOND
        if after is not None and after.time < deadline:
            matches += after.fields["cost"] > 100
        else:
            timeouts += deadline <= now
    return Found(matches, timeouts)


def brute_force(events: Sequence[Reading], now: int) -> Found:
    """Three or more failures and then a success within a minute, each event used once."""
    matches = 0
    waiting: list[int] = []
    timeouts = 0
    for event in events:
        timeouts += sum(start + _MINUTE <= event.time for start in waiting)
        waiting = [start for start in waiting if start + _MINUTE > event.time]
        if event.fields["event_type"] == "login_fail":
            waiting.append(event.time)
        elif event.fields["event_type"] == "login_ok" and len(waiting) >= 3:
            matches += 1
            waiting = []
    return Found(matches, timeouts + sum(start + _MINUTE <= now for start in waiting))


def order_not_paid(events: Sequence[Reading], now: int) -> Found:
    """An order without a payment within ten minutes; that is a match, at its deadline."""
    matches = 0
    for event in events:
        deadline = event.time + 10 * _MINUTE
        if event.type != "demo.OrderPlaced" or deadline > now:
            continue
        payments = [other for other in events if other.type == "demo.OrderPaid"]
        matches += not any(event.time < payment.time < deadline for payment in payments)
    return Found(matches, 0)


def large_order(events: Sequence[Reading], now: int) -> Found:
    """An order of 40 or more."""
    placed = [e for e in events if e.type == "demo.OrderPlaced" and e.time <= now]
    return Found(sum(event.fields["amount"] >= _LARGE for event in placed), 0)


_RULES: Mapping[str, tuple[str, Callable[[Sequence[Reading], int], Found]]] = {
    "log-anomaly": ("logs", log_anomaly),
    "cost-timeout": ("sensors", cost_timeout),
    "brute-force": ("logins", brute_force),
    "order-not-paid": ("orders", order_not_paid),
    "large-order": ("orders", large_order),
}
RULES = tuple(_RULES)


def expected(waves: Sequence[Wave]) -> Counts:
    """What must come out once everything was read and the last event is the newest. A rule that a
    wave adds sees the events from that wave on."""
    counts = Counts()
    by_key: dict[tuple[str, str], list[Reading]] = defaultdict(list)
    newest = 0
    added = {wave.adds: number for number, wave in enumerate(waves) if wave.adds is not None}
    for number, item in ((n, item) for n, wave in enumerate(waves) for item in wave.items):
        if item.damage is not None:
            counts.dead_letters[item.damage.reason] += 1
        elif item.late:
            counts.late[item.topic] += 1
        elif item.fields is not None and item.key is not None:
            newest = max(newest, item.time)
            by_key[item.topic, item.key].append(Reading(item.time, item.type, item.fields, number))
    now = newest - ALLOWED_DISORDER_MS - 1
    for rule, (topic, definition) in _RULES.items():
        for (read_from, key), events in by_key.items():
            if read_from == topic:
                seen = [event for event in events if event.wave >= added.get(rule, 0)]
                found = definition(sorted(seen, key=lambda event: event.time), now)
                counts.matches += Counter({(rule, key): found.matches})
                counts.timeouts += Counter({(rule, key): found.timeouts})
    return counts
