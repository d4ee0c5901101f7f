"""What a batch costs that touches some keys, by the number of keys that hold a partial match.

Each key gets a failed log-in, which waits for hours for one that succeeds. Then come rounds, one a
batch: some keys, drawn at random, get the one that succeeds and another that fails, so that each
gives a match and the number of partial matches stays. Also measured: the size of the state, next to
that of Flink's checkpoint after the same events, and the memory of the job's processes.
"""

from __future__ import annotations

import random
import shutil
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.events import SCHEMA, encoded
from bench.feed import Feed
from bench.flink_program import FlinkProgram
from bench.memory_watch import MemoryWatch
from bench.rules import write_rules
from bench.testbed import PARTITIONS, TestBed
from spark_cep.codecs.registry.framing import frame

_WITHIN_MS = 10 * 3_600_000
_FIRST_MS = 1_700_000_000_000
_FILL_MS = 60_000
_ROUND_MS = 10_000
#: Rounds that are not counted: caches fill.
_FIRST_ROUNDS = 2
_FILL_BATCH = 1_000_000
#: Batches are measured meanwhile, and looking at memory takes its time.
_LOOK_SECONDS = 3.0
_MOST_KEYS_OF_AIM = 1_000_000
#: With more, Flink's heap state does not fit the memory that it is given.
_MOST_KEYS_OF_PEER = 1_000_000


@dataclass(frozen=True)
class Growth:
    """``touched`` keys in each of ``rounds``; ``state``: settings of the service's state."""

    keys: Sequence[int]
    touched: int
    rounds: int
    state: dict[str, Any]


def state_growth(bed: TestBed, program: FlinkProgram | None, growth: Growth) -> dict[str, Any]:
    """All numbers of keys, each with a process of its own."""
    found = [_with_keys(bed, program, growth, keys) for keys in growth.keys]
    least, *more = found
    return {
        "growth": found,
        "costs": [
            {
                "name": f"a batch of {growth.touched:,} keys:"
                f" {one['keys']:,} / {least['keys']:,} keys",
                "ratio": round(one["batch_seconds"] / least["batch_seconds"], 3),
                "aim": 1.5 if one["keys"] <= _MOST_KEYS_OF_AIM else 3.0,
            }
            for one in more
        ],
    }


def fill(keys: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """A failed log-in of each key, with its partition."""
    for key in range(keys):
        yield key % PARTITIONS, _login(key, "login_fail", _FIRST_MS + key * _FILL_MS // keys)


def touch(keys: int, touched: int, number: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Round ``number``: as many keys in each partition, each with a log-in that succeeds and one
    that fails."""
    source = random.Random(number)
    time = _FIRST_MS + _FILL_MS + _ROUND_MS * (number + 1)
    for partition in range(PARTITIONS):
        of_partition = range(partition, keys, PARTITIONS)
        for key in source.sample(of_partition, touched // PARTITIONS):
            yield partition, _login(key, "login_ok", time)
            yield partition, _login(key, "login_fail", time + 1)


def _login(key: int, kind: str, time: int) -> dict[str, Any]:
    return {
        "user_id": f"user-{key:08d}",
        "event_type": kind,
        "amount": 1.0,
        "ts": time,
        "ip": f"10.{key % 256}.0.7",
        "session": f"{key:016x}",
    }


def _with_keys(
    bed: TestBed, program: FlinkProgram | None, growth: Growth, keys: int
) -> dict[str, Any]:
    topic = f"open-{keys}"
    bed.say(f"{keys:,} keys: writing a partial match of each")
    feed, schema_id = Feed(bed.broker.bootstrap, topic), bed.topic(topic, SCHEMA)

    def send(events: Iterator[tuple[int, dict[str, Any]]]) -> None:
        for partition, event in events:
            user, body = encoded(event)
            feed.send(frame(schema_id, body), user, partition)

    send(fill(keys))
    feed.flush()
    sizes = {} if program is None else _sizes_of_peer(bed, program, topic, keys)
    rules = write_rules(bed.folder / "rules" / "open", "open", _WITHIN_MS)
    run = bed.next_run(topic)
    changed = {"time": {"allowed_disorder": "0 ms"}, "state": growth.state}

    def settings(batch: int) -> dict[str, Any]:
        return bed.settings(run, topic, rules, batch=batch, changed=changed)

    with bed.our_side() as side, MemoryWatch(side, _LOOK_SECONDS) as memory:
        filled = side.ask({"do": "run", "settings": settings(_FILL_BATCH)})
        state = side.ask({"do": "state", "settings": settings(_FILL_BATCH)})
        for number in range(growth.rounds + _FIRST_ROUNDS):
            send(touch(keys, growth.touched, number))
        feed.flush()
        bed.say(f"{keys:,} keys: {growth.rounds} rounds")
        answer = side.ask({"do": "run", "settings": settings(2 * growth.touched)})
    shutil.rmtree(settings(1)["state"]["checkpoint"], ignore_errors=True)
    batches = [one for one in answer["batches"] if one["rows"] >= growth.touched][_FIRST_ROUNDS:]
    expected = growth.touched * (growth.rounds + _FIRST_ROUNDS - 1)
    if answer["matches"] < expected or len(batches) != growth.rounds:
        raise RuntimeError(
            f"{keys:,} keys: {answer['matches']:,} matches in {len(batches)} batches, expected"
            f" {expected:,} or more in {growth.rounds}"
        )
    return {
        "keys": keys,
        "fill_seconds": round(filled["seconds"], 2),
        "batch_seconds": round(statistics.median(one["seconds"] for one in batches), 3),
        "batches": batches,
        "stages": answer["stages"],
        "partial_matches": state["partial_matches"],
        "bytes": {"ours": state["bytes"], **sizes},
        "memory_mib": memory.peak,
    }


def _sizes_of_peer(bed: TestBed, program: FlinkProgram, topic: str, keys: int) -> dict[str, int]:
    """Bytes of Flink's checkpoint after the same events, by kind of state."""
    if keys > _MOST_KEYS_OF_PEER:
        return {}
    sizes = {}
    with bed.peer(program) as side:
        for state in ("hashmap", "rocksdb"):
            run = bed.next_run(f"flink-{state}-{keys}")
            request = bed.request(
                run, topic, "open", within_ms=_WITHIN_MS, state=state, until_checkpoint=keys
            )
            bed.say(f"{keys:,} keys: Flink's checkpoint, {state}")
            sizes[f"Flink, {state}"] = int(side.ask(request)["checkpoint_bytes"])
            shutil.rmtree(request["checkpoint_folder"], ignore_errors=True)
    return sizes
