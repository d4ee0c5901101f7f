"""From the moment at which the watermark may pass an event to the committed match.

Events come at a steady rate, with times of now, up to a second out of order. The watermark trails
by that second, so it may pass an event a second after its time: from then on counts what a consumer
of committed records waits for the match, or, from a second after the deadline on, for the timeout.
The clock is one: feed and consumer are in this process.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from bench.avro_pieces import double, long, text
from bench.events import SCHEMA, logins
from bench.feed import Feed
from bench.outputs import decoder
from bench.rules import write_rules
from bench.side import Side
from bench.testbed import DISORDER_MS, OUTPUTS, PARTITIONS, TestBed, output_topic
from spark_cep.codecs.registry.framing import frame

_WITHIN_MS = 20_000
_USERS = 10_000
_TYPES = {"login_ok": 10, "login_fail": 8, "view": 40, "click": 30, "purchase": 7, "logout": 5}
_TICK_SECONDS = 0.02
#: As producers do by default since Kafka 4.
_LINGER_MS = 5
#: A batch of no more records than this is a tiny one.
_TINY = 100
_TINY_RATE = 10
_DRAIN_SECONDS = 10.0
_WARM_UP_EVENTS = 100_000


@dataclass(frozen=True)
class Load:
    """``rate`` events a second for ``seconds``, the first ``settling`` of them not counted."""

    rate: int
    seconds: float
    settling: float


class LiveEvents:
    """Encodes events of now: all but the time is made beforehand."""

    def __init__(self, schema_id: int, seed: int = 7) -> None:
        source = random.Random(seed)
        self._source = source
        self._heads = [frame(schema_id, text(f"user-{user:07d}")) for user in range(_USERS)]
        self._kinds = [
            text(kind) for kind in source.choices([*_TYPES], [*_TYPES.values()], k=1_000)
        ]
        self._amounts = [double(source.random() * 500) for _ in range(1_000)]
        self._tails = [
            text(f"10.{n % 256}.{n % 100}.7") + text(f"{source.getrandbits(64):016x}")
            for n in range(1_000)
        ]

    def event(self, now_ms: int) -> tuple[int, bytes]:
        """A user's number, and an event that is up to the allowed disorder older than now."""
        draw = self._source.getrandbits(60)
        user = draw % _USERS
        age = (draw >> 14) % DISORDER_MS
        value = b"".join(
            (
                self._heads[user],
                self._kinds[(draw >> 24) % 1_000],
                self._amounts[(draw >> 34) % 1_000],
                long(now_ms - age),
                self._tails[(draw >> 44) % 1_000],
            )
        )
        return user, value


class Pace(threading.Thread):
    """Sends events at a steady rate, those of each tick together."""

    def __init__(self, feed: Feed, events: LiveEvents, rate: int, seconds: float) -> None:
        super().__init__(name="feed", daemon=True)
        self._feed, self._events = feed, events
        self._rate, self._seconds = rate, seconds
        self.late_by = 0.0
        """How far behind its own schedule the feed fell, in seconds."""

    def run(self) -> None:
        """Send until the time is over."""
        began = time.time()
        sent = 0
        while (now := time.time()) < began + self._seconds:
            due = int((now - began) * self._rate)
            self.late_by = max(self.late_by, (due - sent) / self._rate - _TICK_SECONDS)
            for _ in range(due - sent):
                user, value = self._events.event(int(time.time() * 1000))
                self._feed.send(value, f"user-{user:07d}", user % PARTITIONS)
            sent = due
            self._feed.serve()
            time.sleep(_TICK_SECONDS)
        self._feed.flush()


class Watcher(threading.Thread):
    """Notes when each committed record of some topics is seen."""

    def __init__(self, bootstrap: str, topics: Sequence[str]) -> None:
        super().__init__(name="watcher", daemon=True)
        self.seen: dict[str, list[tuple[float, bytes]]] = {topic: [] for topic in topics}
        self._ended = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "bench-latency",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 20,
                "log_level": 0,
            }
        )
        places = [TopicPartition(t, number, 0) for t in topics for number in range(PARTITIONS)]
        self._consumer.assign(places)

    def run(self) -> None:
        """Look until told to end."""
        while not self._ended.is_set():
            messages = self._consumer.consume(1_000, 0.02)
            now = time.time()
            for message in messages:
                topic, value = message.topic(), message.value()
                if message.error() is None and topic is not None and value is not None:
                    self.seen[topic].append((now, value))
        self._consumer.close()

    def end(self) -> None:
        """Stop looking."""
        self._ended.set()
        self.join()


def latency(bed: TestBed, load: Load, tiny_seconds: float) -> dict[str, Any]:
    """Latencies under load, then the time of batches with next to nothing in them."""
    side = bed.our_side()
    rules = write_rules(bed.folder / "rules" / "fails", "fails", _WITHIN_MS)
    small = bed.filled("logins-warm-up", logins(_WARM_UP_EVENTS), _WARM_UP_EVENTS)
    bed.say("warming up")
    warm = bed.settings(bed.next_run("warm-up"), small.name, rules, batch=_WARM_UP_EVENTS)
    side.ask({"do": "run", "settings": warm})
    bed.say(f"{load.rate:,} events/s for {load.seconds:g} s")
    loaded = _live(bed, side, load)
    bed.say(f"{_TINY_RATE} events/s for {tiny_seconds:g} s")
    quiet = _live(bed, side, Load(_TINY_RATE, tiny_seconds, 0.0))
    tiny = [one for one in quiet["batches"][1:] if one["rows"] <= _TINY]
    return {
        "load": {"rate": load.rate, "seconds": load.seconds, "feed_late_by": loaded["late_by"]},
        "latency": {
            name: percentiles(loaded[name], aim)
            for name, aim in (("matches", (1.0, 2.5)), ("timeouts", (1.0, 2.5)))
        },
        "batches": {
            "count": len(loaded["batches"]),
            "median_seconds": round(_median(one["seconds"] for one in loaded["batches"]), 3),
        },
        "tiny_batches": {
            "count": len(tiny),
            "median_milliseconds": round(_median(one["seconds"] for one in tiny) * 1000),
            "stages": _stages(tiny),
        },
    }


def percentiles(seconds: Sequence[float], aim: tuple[float, float]) -> dict[str, Any]:
    """Of latencies; ``aim`` is for the median and the 99th percentile."""
    if len(seconds) < 2:
        return {"count": len(seconds)}
    cuts = statistics.quantiles(seconds, n=100)
    return {
        "count": len(seconds),
        "median": round(cuts[49], 3),
        "90th": round(cuts[89], 3),
        "99th": round(cuts[98], 3),
        "largest": round(max(seconds), 3),
        "aim_median": aim[0],
        "aim_99th": aim[1],
    }


def _live(bed: TestBed, side: Side, load: Load) -> dict[str, Any]:
    """Run the job while events come."""
    topic = f"live-{load.rate}"
    schema_id = bed.topic(topic, SCHEMA)
    run = bed.next_run(topic)
    topics = {kind: output_topic(run, kind) for kind in OUTPUTS}
    bed.broker.create_topics(dict.fromkeys(topics.values(), PARTITIONS))
    settings = bed.settings(
        run,
        topic,
        bed.folder / "rules" / "fails",
        batch=1_000_000,
        changed={
            "trigger": {"mode": "continuous", "interval": "0 ms"},
            "lifecycle": {"stop_grace": "5 minutes"},
        },
    )
    watcher = Watcher(bed.broker.bootstrap, [topics["matches"], topics["timeouts"]])
    watcher.start()
    feed = Feed(bed.broker.bootstrap, topic, linger_ms=_LINGER_MS)
    pace = Pace(feed, LiveEvents(schema_id), load.rate, load.seconds)
    from_ms = (time.time() + load.settling) * 1000
    side.send({"do": "run", "settings": settings, "for_seconds": load.seconds + _DRAIN_SECONDS})
    pace.start()
    pace.join()
    answer = side.answer(600.0)
    watcher.end()
    return {
        "matches": _latencies(watcher.seen[topics["matches"]], "match", "time", from_ms),
        "timeouts": _latencies(watcher.seen[topics["timeouts"]], "timeout", "deadline", from_ms),
        "batches": answer["batches"],
        "late_by": round(pace.late_by, 3),
    }


def _latencies(
    seen: Iterable[tuple[float, bytes]], schema: str, field: str, from_ms: float
) -> list[float]:
    decode = decoder(schema)
    found = []
    for when, value in seen:
        decided_ms = decode(value)[field].timestamp() * 1000 + DISORDER_MS
        if decided_ms >= from_ms:
            found.append(when - decided_ms / 1000)
    return found


def _stages(batches: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Median milliseconds by Spark's stages."""
    stages = sorted({stage for batch in batches for stage in batch["milliseconds"]})
    return {
        stage: _median(batch["milliseconds"].get(stage, 0) for batch in batches) for stage in stages
    }


def _median(values: Iterable[float]) -> float:
    found = list(values)
    return statistics.median(found) if found else 0.0
