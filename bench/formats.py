"""Events per second of the whole job by the format of its events and its output: the log-ins and
payments of the other benchmarks in JSON, next to the same in Avro."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import fastavro

from bench.comparison import Run, in_turn, profile, ratio
from bench.contenders import Course, job
from bench.events import logins
from bench.feed import Encoded, Stream
from bench.outputs import full_line_of
from bench.payments import payments
from bench.rules import payments_rules, write_rules
from bench.side import Side
from bench.testbed import TestBed, Topic
from bench.throughput import runs_of, warm_up_events

_IN_JSON: dict[str, dict[str, Any]] = {"inputs": {"events": {"format": "json"}}}
_ALL_IN_JSON: dict[str, dict[str, Any]] = {**_IN_JSON, "outputs": {"format": "json"}}
#: What JSON is to reach of Avro's events per second.
_TARGET = 0.5


def formats(bed: TestBed, *, events: int, runs: int) -> dict[str, Any]:
    """The ratios of JSON to Avro: of events in JSON, and of output in JSON as well."""
    ours = bed.our_side()
    few = warm_up_events(events)
    of_logins = _measured(
        bed, ours, "logins", runs,
        course=Course(
            bed.filled("logins", logins(events), events),
            bed.filled("logins-warm-up", logins(few), few),
            "fails",
            write_rules(bed.folder / "rules" / "fails", "fails", 60_000),
        ),
        other=bed.filled("logins-json", in_json(logins(events)), events),
        other_warm_up=bed.filled("logins-json-warm-up", in_json(logins(few)), few),
    )  # fmt: skip
    # Half of them take as long.
    half, few = events // 2, warm_up_events(events // 2)
    of_payments = _measured(
        bed, ours, "payments", runs,
        course=Course(
            bed.filled("payments", payments(half), half),
            bed.filled("payments-warm-up", payments(few), few),
            "payments",
            payments_rules(bed.folder / "rules" / "payments"),
            lines=full_line_of,
        ),
        other=bed.filled("payments-json", in_json(payments(half)), half),
        other_warm_up=bed.filled("payments-json-warm-up", in_json(payments(few)), few),
    )  # fmt: skip
    return {
        "ratios": [*_ratios("log-ins", of_logins), *_ratios("payments", of_payments)],
        "profiles": {
            f"{workload}, {name}": profile(found)
            for workload, results in (("log-ins", of_logins), ("payments", of_payments))
            for name, found in results.items()
        },
        "runs": runs_of(of_logins)
        | {f"{name}, payments": one for name, one in runs_of(of_payments).items()},
    }


def _measured(
    bed: TestBed,
    side: Side,
    name: str,
    runs: int,
    *,
    course: Course,
    other: Topic,
    other_warm_up: Topic,
) -> dict[str, list[Run]]:
    bed.say(f"{name} in Avro and JSON")
    json_course = replace(course, topic=other, warm_up=other_warm_up)
    return in_turn(
        [
            job(bed, side, course, "Avro"),
            job(bed, side, json_course, "JSON", changed=_IN_JSON),
            job(bed, side, json_course, "JSON, output too", changed=_ALL_IN_JSON),
        ],
        runs,
        bed.say,
    )


def _ratios(workload: str, results: dict[str, list[Run]]) -> list[dict[str, Any]]:
    return [
        ratio(f"{workload}, {name} to Avro", results, name, "Avro", _TARGET).document()
        for name in ("JSON", "JSON, output too")
    ]


def in_json(stream: Stream) -> Stream:
    """The same events as JSON objects, without framing."""
    parsed: Any = fastavro.parse_schema(json.loads(json.dumps(stream.schema)))

    def written(event: Encoded) -> Encoded:
        key, body = event
        value = fastavro.schemaless_reader(io.BytesIO(body), parsed, None)
        return key, json.dumps(value, default=_text, separators=(",", ":")).encode()

    def events() -> Iterator[Encoded]:
        return map(written, stream.events)

    return Stream(stream.schema, events(), lambda p: written(stream.closing(p)), framed=False)


def _text(value: Any) -> str:
    """A value that JSON has no type for, as its readers take it."""
    return value.isoformat() if isinstance(value, datetime) else str(value)
