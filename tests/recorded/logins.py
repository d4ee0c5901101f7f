"""Files of log-ins in every format, and what a rule finds in them."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from spark_cep.compiler.rule_set import compile_rules
from spark_cep.pattern.document.loading import LoadedRule, load_rules
from spark_cep.pipeline.decode.decoder_plan import record_types
from spark_cep.recorded.events import RecordedEvents
from spark_cep.recorded.merging import AtEnd
from spark_cep.runner.batch import BatchResults, RunSettings
from spark_cep.runner.runner import Runner

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "t.Login",
    "fields": [
        {"name": "user", "type": "string"},
        {"name": "kind", "type": "string"},
        {"name": "amount", "type": ["null", "double"], "default": None},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
START = 1_700_000_000_000
RULE = """\
id: fails
version: 3
key: user
pattern:
  - {step: fail, where: "kind = 'fail'", times: 3}
  - {step: ok, after: followed_by, where: "kind = 'ok' AND amount > 1.5"}
within: 1 minute
after_match: skip_past_last_event
emit: {measures: {sum: SUM(fail.amount), last: LAST(ok.ts)}}
"""

Event = Mapping[str, Any]


def login(user: str, kind: str, seconds: float, amount: float | None = 2.0) -> Event:
    """One log-in."""
    return {"user": user, "kind": kind, "amount": amount, "ts": START + round(seconds * 1000)}


def logins(users: int = 3, begin: float = 0.0) -> list[Event]:
    """Three failures and a success of each user, one second apart."""
    return [
        login(f"ann {n}", kind, begin + 4 * n + place, None if place == 1 else 2.0)
        for n in range(users)
        for place, kind in enumerate(("fail", "fail", "fail", "ok"))
    ]


def _avro(codec: str) -> Callable[[Path, Sequence[Event]], None]:
    def write(file: Path, events: Sequence[Event]) -> None:
        with file.open("wb") as out:
            parsed = fastavro.parse_schema(dict(SCHEMA))
            fastavro.writer(out, parsed, events, codec=codec, sync_interval=100)

    return write


def _lines(events: Sequence[Event], time: Callable[[int], Any]) -> str:
    return "".join(json.dumps({**each, "ts": time(each["ts"])}) + "\n" for each in events)


def iso(ms: int) -> str:
    """ISO 8601 in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def _csv(file: Path, events: Sequence[Event]) -> None:
    with file.open("w", encoding="utf-8", newline="") as out:
        rows = csv.writer(out, lineterminator="\r\n")
        rows.writerow(events[0])
        rows.writerows(each.values() for each in events)


def _parquet(file: Path, events: Sequence[Event]) -> None:
    kind = pa.schema(
        [
            ("user", pa.string()),
            ("kind", pa.dictionary(pa.int32(), pa.string())),
            ("amount", pa.float64()),
            ("ts", pa.timestamp("ms", "UTC")),
        ]
    )
    pq.write_table(pa.Table.from_pylist(list(events), kind), file)


FORMS: dict[str, Callable[[Path, Sequence[Event]], Any]] = {
    "avro": _avro("null"),
    "deflate.avro": _avro("deflate"),
    "jsonl": lambda file, events: file.write_text(_lines(events, iso), "utf-8"),
    "json": lambda file, events: file.write_text(_lines(events, int), "utf-8"),
    "ndjson.gz": lambda file, events: file.write_bytes(gzip.compress(_lines(events, iso).encode())),
    "csv": _csv,
    "parquet": _parquet,
}


def rules(text: str = RULE) -> list[LoadedRule]:
    """The rules of a text."""
    return load_rules(text, "rules.yaml")


def run(
    events: RecordedEvents,
    text: str = RULE,
    at_end: AtEnd = "wait",
    settings: RunSettings | None = None,
) -> tuple[BatchResults, list[Any]]:
    """What rules find in events, all batches together, and the dead letters of reading."""
    settings = settings or RunSettings(key_groups=4)
    plan = compile_rules((each.rule for each in rules(text)), record_types(events.format))
    runner = Runner(plan, events.inputs(settings.key_groups), settings)
    together, letters = BatchResults(), []
    for each in events.batches(settings, at_end):
        found = runner.apply(each.batch)
        together.outputs.add(found.outputs)
        together.late += found.late
        together.counts.update(found.counts)
        letters += each.letters
    together.watermark = runner.watermark
    return together, letters
