"""Peak memory of a job that starts with default settings on a filled topic.

For each size of record and each backlog a topic is filled, ``spark-cep run`` is started as a
session of its own, and its processes are watched until all is read. A peak that does not depend on
the backlog shows as equal rows. Shared pages (of forked workers, of libraries) count once in the
total, which adds up proportional set sizes, and in each process in the other columns, which are
resident sizes. With a limit, the processes are in a control group, as those of a container are.
Reads ``/proc``, so Linux alone.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from bench.command import Command
from bench.memory_limit import MemoryLimit
from bench.memory_watch import share
from bench.report import table
from bench.soak.sampling import members, totals
from bench.testbed import OUTPUTS, TestBed, output_topic
from examples.embedded.process import free_ports, tail
from spark_cep.codecs.registry.framing import frame

#: Bytes of a record by name: one size, or sizes and their weights.
SIZES: dict[str, Mapping[int, int]] = {
    "0.1 KB": {100: 1},
    "0.5 KB": {500: 1},
    "2 KB": {2_000: 1},
    "20 KB": {20_000: 1},
    "200 KB": {200_000: 1},
    "mixed": {100: 600, 500: 300, 2_000: 80, 20_000: 16, 200_000: 4, 5_000_000: 1},
}
LARGEST = 6 * 2**20
SCHEMA = {
    "type": "record",
    "name": "Sized",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "kind", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": "bytes"},
    ],
}
#: Two of three events concern the first rule, all concern the second.
_RULES = """\
id: opened
key: id
pattern:
  - {step: open, where: "kind = 'open'"}
  - {step: close, after: followed_by, where: "kind = 'close' AND amount > LAST(open.amount)"}
within: 1 minute
after_match: skip_past_last_event
---
id: high
key: id
pattern:
  - {step: low, where: "amount < 480"}
  - {step: high, after: next, where: "amount >= 480"}
within: 1 minute
after_match: skip_past_last_event
"""
_KINDS = ("open", "close", "other")
_FIRST_MS = 1_700_000_000_000
_KEYS = 5_000
_POOL = 16 << 20
_OVERHEAD = 50
_LOOK_SECONDS = 0.25
_SHOWN = {
    "total": "all together",
    "group": "group",
    "jvm": "JVM",
    "jvm_heap_bytes": "heap",
    "jvm_direct_bytes": "direct",
    "driver": "driver's Python",
    "worker": "largest worker",
}
_MOST_SECONDS = 3_600.0
_STOP_SECONDS = 60.0
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Load:
    """What waits when the job starts: sizes of records by weight, bytes in all."""

    name: str
    sizes: Mapping[int, int]
    size: int
    partitions: int


def memory(
    bed: TestBed,
    sizes: Sequence[str],
    gigabytes: Sequence[float],
    partitions: int,
    changed: Mapping[str, Mapping[str, Any]],
    limit: int | None,
) -> dict[str, Any]:
    """A run for each size and backlog. ``changed``: settings that are not the defaults;
    ``limit``: bytes of the group that the processes are in."""
    runs = []
    for name in sizes:
        for each in gigabytes:
            load = Load(name, SIZES[name], round(each * 1e9), partitions)
            with MemoryLimit(limit) if limit else nullcontext() as group:
                runs.append(_run(bed, load, changed, group))
            bed.say(json.dumps(runs[-1]))
    bed.say(_table(runs))
    return {"memory": runs}


def _table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Peaks in MiB."""
    rows = [
        [
            run["records of"],
            f"{run['backlog_gb']:g}",
            str(run["partitions"]),
            *(str(run["peaks_mib"].get(name, 0)) for name in _SHOWN),
            f"{run['seconds']:.0f}",
            str(run["exit_code"]),
            str(run.get("killed", "")),
        ]
        for run in runs
    ]
    titles = ["records", "GB", "partitions", *_SHOWN.values(), "seconds", "exit code", "killed"]
    return table(titles, rows)


def _run(
    bed: TestBed,
    load: Load,
    changed: Mapping[str, Mapping[str, Any]],
    group: MemoryLimit | None,
) -> dict[str, Any]:
    topic = bed.next_run(f"{load.name}-{load.size // 10**6}MB")
    bed.say(f"writing {load.size / 1e9:g} GB of {load.name} to {topic}")
    config = {"max.message.bytes": str(2 * LARGEST)}
    bed.broker.create_topics({topic: load.partitions}, config)
    with SchemaRegistryClient({"url": bed.registry.url}) as client:
        schema_id = client.register_schema(f"{topic}-value", Schema(json.dumps(SCHEMA), "AVRO"))
    count = _fill(bed.broker.bootstrap, topic, schema_id, load)
    folder = bed.folder / topic
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    bed.say(f"{count:,} records")
    found = Job(bed, folder, topic, changed).watch(count, group)
    with suppress(TimeoutError):
        bed.forget([topic, *(output_topic(topic, name) for name in OUTPUTS)])
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    return {
        "records of": load.name,
        "backlog_gb": load.size / 1e9,
        "partitions": load.partitions,
        "records": count,
        **found,
    }


def _events(load: Load) -> Iterator[tuple[str, dict[str, Any]]]:
    source = random.Random(11)
    pool = source.randbytes(_POOL)
    sizes, weights = list(load.sizes), list(load.sizes.values())
    written = number = 0
    while written < load.size:
        (size,) = source.choices(sizes, weights) if len(sizes) > 1 else sizes
        note = max(0, size - _OVERHEAD)
        start = source.randrange(_POOL - note)
        key = f"id-{source.randrange(_KEYS)}"
        yield (
            key,
            {
                "id": key,
                "kind": source.choice(_KINDS),
                "amount": source.random() * 500,
                "ts": _FIRST_MS + number - source.randrange(900),
                # Nothing that compresses.
                "note": pool[start : start + note],
            },
        )
        written += size
        number += 1


def _fill(bootstrap: str, topic: str, schema_id: int, load: Load) -> int:
    failures: list[str] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "message.max.bytes": 2 * LARGEST,
            "batch.size": 1 << 20,
            "linger.ms": 20,
            "queue.buffering.max.kbytes": 256 << 10,
            "queue.buffering.max.messages": 200_000,
            "log_level": 0,
        }
    )
    parsed = fastavro.parse_schema(SCHEMA)
    count = 0
    for key, event in _events(load):
        body = io.BytesIO()
        fastavro.schemaless_writer(body, parsed, event)
        value = frame(schema_id, body.getvalue())
        while True:
            try:
                producer.produce(
                    topic,
                    value,
                    key,
                    on_delivery=lambda error, _: failures.append(error.str()) if error else None,
                )
            except BufferError:
                producer.poll(0.1)
            else:
                break
        count += 1
    producer.flush(300)
    if len(producer) or failures:
        raise RuntimeError(f"{topic} could not be written: {failures[:1] or 'not acknowledged'}")
    return count


class Job:
    """``spark-cep run`` with its defaults, but for addresses and paths."""

    def __init__(
        self, bed: TestBed, folder: Path, topic: str, changed: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self._port = free_ports(1)[0]
        (folder / "rules").mkdir()
        (folder / "rules" / "rules.yaml").write_text(_RULES, "utf-8")
        document: dict[str, Any] = {
            "kafka": {"bootstrap_servers": bed.broker.bootstrap},
            "registry": {"url": bed.registry.url},
            "inputs": {"sized": {"topics": [topic], "event_time": "ts"}},
            "outputs": {
                "topics": {name: output_topic(topic, name) for name in OUTPUTS},
                "create_topics": {"partitions": 4, "replication": 1},
                "transactional_id_prefix": topic,
            },
            "state": {"checkpoint": str(folder / "checkpoint")},
            "rules": {"folder": str(folder / "rules")},
            "observability": {
                "metrics_host": "127.0.0.1", "metrics_port": self._port, "log_format": "json",
            },
        }  # fmt: skip
        for section, values in changed.items():
            document[section] = {**document.get(section, {}), **values}
        self._command = Command(folder, document)

    def watch(self, records: int, group: MemoryLimit | None = None) -> dict[str, Any]:
        """Wait until ``records`` are read, then stop it; peaks, seconds and exit code, and, in a
        group, how many processes were killed at its limit."""
        began = time.monotonic()
        peaks: Counter[str] = Counter()
        seconds, read = 0.0, 0.0
        self._command.start(lambda: True)
        if group and (pid := self._command.pid):
            group.take(pid)
        try:
            while (pid := self._command.pid) and time.monotonic() - began < _MOST_SECONDS:
                for name, value in processes(pid).items():
                    peaks[name] = max(peaks[name], value)
                if group:
                    peaks["group"] = max(peaks["group"], group.kept)
                with suppress(OSError, ValueError):
                    told = totals(self._port)
                    read = told["spark_cep_records_consumed_total"]
                    for name in ("jvm_heap_bytes", "jvm_direct_bytes"):
                        peaks[name] = max(peaks[name], round(told[f"spark_cep_{name}"]))
                if read >= records:
                    break
                time.sleep(_LOOK_SECONDS)
            seconds = time.monotonic() - began
            code = self._command.terminate(_STOP_SECONDS)
        finally:
            self._command.kill()
        if code or read < records:
            sys.stderr.write(tail(self._command.log, 5)[-3_000:])
        return {
            "read": round(read),
            "exit_code": code,
            "seconds": round(seconds, 1),
            **({"killed": group.kills} if group else {}),
            "peaks_mib": {name: round(value / 2**20) for name, value in sorted(peaks.items())},
        }


def processes(leader: int) -> dict[str, int]:
    """Bytes of the processes in the session that ``leader`` leads, by kind; ``total``: of all, what
    they share counted once."""
    found: Counter[str] = Counter()
    workers: dict[int, tuple[int, int]] = {}
    for entry, kind in members(leader):
        with suppress(OSError, IndexError, ValueError):
            resident = int((entry / "statm").read_text("utf-8").split()[1]) * _PAGE
            found["total"] += share(entry) << 10
            if kind == "workers":
                fields = (entry / "stat").read_text("utf-8").rpartition(")")[2].split()
                workers[int(entry.name)] = int(fields[1]), resident
            else:
                found[kind] += resident
    parents = {parent for parent, _ in workers.values()}
    for pid, (_, resident) in workers.items():
        if pid in parents:
            found["daemon"] += resident
        else:
            found["workers"] += resident
            found["worker"] = max(found["worker"], resident)
            found["worker_count"] += 1 << 20
    return dict(found)
