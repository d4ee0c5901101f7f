"""How long a small batch takes with many input partitions, which all have records."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from typing import Any

from bench.events import SCHEMA
from bench.feed import Feed
from bench.latency import batches_between, our_job
from bench.live_events import LINGER_MS, LiveEvents, before, send_steadily
from bench.testbed import TestBed

#: Until the first batches are done and the JVM has compiled most of what they run.
_SETTLING_SECONDS = 60.0
_STATE_PARTITIONS = 2
_ANSWER_LIMIT = 180.0


def input_partitions(
    bed: TestBed, *, counts: Sequence[int], rate: int, seconds: float
) -> dict[str, Any]:
    """Batches of a job for latency by the number of input partitions, over which ``rate`` events a
    second are spread."""
    job = our_job("for latency", _STATE_PARTITIONS)
    cells = []
    for count in counts:
        bed.say(f"{count:,} input partitions")
        topic = bed.next_run(f"partitions-{count}")
        # A user of each partition.
        events = LiveEvents(bed.topic(topic, SCHEMA, count), users=count, partitions=count)
        feed = Feed(bed.broker.bootstrap, topic, LINGER_MS)
        events.send_to_all(feed, int(time.time() * 1000))
        feed.flush()
        running = job.start(bed, topic, 0)
        with running.side as side:
            ends = time.time() + _SETTLING_SECONDS + seconds
            send_steadily(feed, events, rate, before(ends))
            feed.flush()
            side.send({"do": "stop"})
            answer = side.answer(_ANSWER_LIMIT)
        shutil.rmtree(running.checkpoint, ignore_errors=True)
        bed.forget([topic, *running.topics])
        cells.append(
            {"partitions": count, "batches": batches_between(answer, ends - seconds, ends)}
        )
    return {"rate": rate, "input_partitions": cells}
