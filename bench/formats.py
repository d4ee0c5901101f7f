"""Events per second of the whole job by the format of its events and its output: the log-ins and
payments of the other benchmarks in JSON and in Protobuf, next to the same in Avro."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
from confluent_kafka.schema_registry import Schema

from bench.comparison import Contender, Run, in_turn, profile, ratio
from bench.contenders import Course, job
from bench.events import logins
from bench.feed import Encoded, Stream
from bench.outputs import full_line_of
from bench.payments import Amount, payments
from bench.rules import payments_rules, write_rules
from bench.side import Side
from bench.testbed import TestBed
from bench.throughput import runs_of, warm_up_events
from spark_cep.codecs.protobuf.descriptors import compiled_file

_IN_JSON: dict[str, dict[str, Any]] = {"inputs": {"events": {"format": "json"}}}
_ALL_IN_JSON: dict[str, dict[str, Any]] = {**_IN_JSON, "outputs": {"format": "json"}}
#: What JSON is to reach of Avro's events per second.
_TARGET = 0.5
#: Files with the events in Protobuf, and the messages that they are, which come first.
LOGINS = Path(__file__).with_name("logins.proto"), "bench.LoginEvent"
PAYMENTS = Path(__file__).with_name("payments.proto"), "bench.Payment"
_FIRST_MESSAGE = b"\0"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Results = dict[str, list[Run]]


def formats(bed: TestBed, *, events: int, runs: int) -> dict[str, Any]:
    """The ratios to Avro: of events in JSON, of output in JSON as well, and of events in
    Protobuf."""
    ours = bed.our_side()
    fails = write_rules(bed.folder / "rules" / "fails", "fails", 60_000)
    course = _course(bed, "logins", logins, events, "fails", fails)
    of_logins = _measured(
        bed, "log-ins", runs,
        [
            job(bed, ours, course, "Avro"),
            *_in_json(bed, ours, course, "logins", logins, events),
            _in_protobuf(bed, ours, course, "logins", logins, events, *LOGINS),
        ],
    )  # fmt: skip
    # Half of them take as long.
    half, rules = events // 2, payments_rules(bed.folder / "rules" / "payments")
    course = _course(bed, "payments", payments, half, "payments", rules)
    of_payments = _measured(
        bed, "payments", runs,
        [
            job(bed, ours, course, "Avro"),
            *_in_json(bed, ours, course, "payments", payments, half),
        ],
    )  # fmt: skip
    # Protobuf has no decimals.
    course = _course(bed, "payments-double", _in_double, half, "payments", rules)
    of_double = _measured(
        bed, "payments, DOUBLE", runs,
        [
            job(bed, ours, course, "Avro"),
            _in_protobuf(bed, ours, course, "payments-double", _in_double, half, *PAYMENTS),
        ],
    )  # fmt: skip
    workloads = {"log-ins": of_logins, "payments": of_payments, "payments, DOUBLE": of_double}
    return {
        "ratios": [one for name, results in workloads.items() for one in _ratios(name, results)],
        "profiles": {
            f"{workload}, {name}": profile(found)
            for workload, results in workloads.items()
            for name, found in results.items()
        },
        "runs": runs_of(of_logins)
        | {f"{name}, payments": one for name, one in runs_of(of_payments).items()}
        | {f"{name}, payments, DOUBLE": one for name, one in runs_of(of_double).items()},
    }


def _in_double(count: int) -> Stream:
    return payments(count, Amount.DOUBLE)


def _course(
    bed: TestBed, name: str, stream: Callable[[int], Stream], count: int, rule: str, rules: Path
) -> Course:
    few = warm_up_events(count)
    topic = bed.filled(name, stream(count), count)
    warm_up = bed.filled(f"{name}-warm-up", stream(few), few)
    if rule == "payments":
        return Course(topic, warm_up, rule, rules, lines=full_line_of)
    return Course(topic, warm_up, rule, rules)


def _written_as(
    bed: TestBed,
    course: Course,
    name: str,
    stream: Callable[[int], Stream],
    count: int,
    written: Callable[[Stream], Stream],
) -> Course:
    """The same course over topics called ``name``, whose events are ``written`` in another form."""
    few = warm_up_events(count)
    return replace(
        course,
        topic=bed.filled(name, written(stream(count)), count),
        warm_up=bed.filled(f"{name}-warm-up", written(stream(few)), few),
    )


def _in_json(
    bed: TestBed,
    side: Side,
    course: Course,
    name: str,
    stream: Callable[[int], Stream],
    count: int,
) -> list[Contender]:
    course = _written_as(bed, course, f"{name}-json", stream, count, in_json)
    return [
        job(bed, side, course, "JSON", changed=_IN_JSON),
        job(bed, side, course, "JSON, output too", changed=_ALL_IN_JSON),
    ]


def _in_protobuf(
    bed: TestBed,
    side: Side,
    course: Course,
    name: str,
    stream: Callable[[int], Stream],
    count: int,
    file: Path,
    message: str,
) -> Contender:
    written = partial(in_protobuf, file=file, message=message)
    course = _written_as(bed, course, f"{name}-protobuf", stream, count, written)
    changed = {"inputs": {"events": {"format": "protobuf", "record": message}}}
    return job(bed, side, course, "Protobuf", changed=changed)


def _measured(bed: TestBed, name: str, runs: int, contenders: list[Contender]) -> Results:
    bed.say(f"{name} in {', '.join(each.name for each in contenders)}")
    return in_turn(contenders, runs, bed.say)


def _ratios(workload: str, results: Results) -> list[dict[str, Any]]:
    return [
        ratio(
            f"{workload}, {name} to Avro", results, name, "Avro",
            _TARGET if name.startswith("JSON") else None,
        ).document()
        for name in results
        if name != "Avro"
    ]  # fmt: skip


def in_json(stream: Stream) -> Stream:
    """The same events as JSON objects, without framing."""

    def written(value: Any) -> bytes:
        return json.dumps(value, default=_text, separators=(",", ":")).encode()

    return replace(_written(stream, written), framed=False)


def _text(value: Any) -> str:
    """A value that JSON has no type for, as its readers take it."""
    return value.isoformat() if isinstance(value, datetime) else str(value)


def in_protobuf(stream: Stream, file: Path, message: str) -> Stream:
    """The same events as messages of a ``.proto`` file, of which ``message`` is the first one."""
    of_file = compiled_file(file).message_class(message)

    def written(value: Any) -> bytes:
        return _FIRST_MESSAGE + bytes(of_file(**_fields(value)).SerializeToString())

    return replace(_written(stream, written), schema=Schema(file.read_text("utf-8"), "PROTOBUF"))


def _fields(value: Any) -> Any:
    """A value of Avro as the constructors of messages take it."""
    match value:
        case dict():
            return {name: _fields(inner) for name, inner in value.items()}
        case datetime():
            micros = (value - _EPOCH) // timedelta(microseconds=1)
            return {"seconds": micros // 1_000_000, "nanos": micros % 1_000_000 * 1_000}
        case UUID():
            return str(value)
    return value


def _written(stream: Stream, written: Callable[[Any], bytes]) -> Stream:
    """The same events in another form."""
    parsed: Any = fastavro.parse_schema(json.loads(json.dumps(stream.schema)))

    def again(event: Encoded) -> Encoded:
        key, body = event
        return key, written(fastavro.schemaless_reader(io.BytesIO(body), parsed, None))

    def events() -> Iterator[Encoded]:
        return map(again, stream.events)

    return replace(stream, events=events(), closing=lambda p: again(stream.closing(p)))
