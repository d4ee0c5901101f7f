"""What a run wrote, read back from its topics as a consumer that sees committed records alone does.

A match or timeout is one line of text, the same for both sides: ``m`` or ``t``, key, and for each
step its name and the partition and offset of its events. Lines of several rules tell more, see
:func:`full_line_of`.
"""

from __future__ import annotations

import io
import json
import struct
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.resources import files
from typing import Any

import fastavro
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

_FRAMING = 5
#: Times that lines are made of, which are texts in JSON.
_TIMES = ("start", "time")
_SHOWN = 3
_SILENCE_SECONDS = 30.0


LineOf = Callable[[str, dict[str, Any]], str]
"""The line of a record of the service, of its kind, ``m`` or ``t``."""


class DisagreementError(Exception):
    """The sides did not find the same, or one wrote something twice that must be there once."""


@dataclass(frozen=True, slots=True)
class Found:
    """Matches and timeouts by their lines, and how many were written more than once."""

    matches: frozenset[str]
    timeouts: frozenset[str]
    repeated_matches: int = 0
    repeated_timeouts: int = 0

    @classmethod
    def of(cls, lines: Iterable[str]) -> Found:
        """Sort lines."""
        counts = {"m": Counter[str](), "t": Counter[str]()}
        for line in lines:
            counts[line[0]][line] += 1
        matches, timeouts = counts["m"], counts["t"]
        return cls(
            frozenset(matches),
            frozenset(timeouts),
            matches.total() - len(matches),
            timeouts.total() - len(timeouts),
        )


def without_ended(found: Found) -> tuple[Found, int]:
    """``found`` without the timeouts of partial matches that a match of the same rule and key has
    ended, because they began after its first event and not after its last; and how many they were.

    This is for rules that skip past the last event, and for full lines. A match waits for partial
    matches that began before it. When one of these times out, the match is released, and it ends
    what began while it was going on. Flink looks at deadlines only when an event or watermark
    comes; then all that have passed time out at once, those of such partial matches, too.
    """
    spans = defaultdict(list)
    for line in found.matches:
        rule_and_key, start, end = _span(line)
        spans[rule_and_key].append((start, end))
    ended = set()
    for line in found.timeouts:
        rule_and_key, start, _ = _span(line)
        if any(first < start <= last for first, last in spans[rule_and_key]):
            ended.add(line)
    return replace(found, timeouts=found.timeouts - ended), len(ended)


def _span(line: str) -> tuple[str, int, int]:
    """Rule and key of a full line, its start and its end."""
    rule_and_key, start, end = line.split("|", 2)[1].rsplit(",", 2)
    return rule_and_key, int(start), int(end or 0)


def check_once(name: str, found: Found) -> None:
    """Raise when something was written twice."""
    if found.repeated_matches or found.repeated_timeouts:
        raise DisagreementError(
            f"{name} wrote {found.repeated_matches} matches and {found.repeated_timeouts} timeouts"
            " more than once"
        )


def check_same(name: str, found: Found, other_name: str, other: Found) -> None:
    """Raise when the two differ; how often something was written does not matter here."""
    for what in ("matches", "timeouts"):
        ours: frozenset[str] = getattr(found, what)
        theirs: frozenset[str] = getattr(other, what)
        if ours == theirs:
            continue
        told = [
            f"{len(only):,} only by {side} ({'; '.join(sorted(only)[:_SHOWN])})"
            for side, only in ((name, ours - theirs), (other_name, theirs - ours))
            if only
        ]
        raise DisagreementError(f"{what} differ: {', '.join(told)}")


def found_by_job(bootstrap: str, matches: str, timeouts: str, lines: LineOf) -> Found:
    """What the service wrote."""
    return Found.of(
        line
        for kind, schema, topic in (("m", "match", matches), ("t", "timeout", timeouts))
        for line in _lines(kind, schema, committed(bootstrap, topic), lines)
    )


def found_by_peer(bootstrap: str, topic: str) -> Found:
    """What Flink wrote."""
    return Found.of(canonical(value.decode()) for value in committed(bootstrap, topic))


def canonical(line: str) -> str:
    """The line with its steps in the order of their names."""
    kind, key, *steps = line.split("|")
    return "|".join([kind, key, *sorted(steps)])


def line_of(kind: str, record: dict[str, Any]) -> str:
    """The line of a record of the service."""
    steps = [
        f"{step['step']}="
        + ",".join(f"{event['partition']}:{event['offset']}" for event in step["events"])
        for step in record["steps"]
    ]
    return canonical("|".join([kind, record["key"], *steps]))


def full_line_of(kind: str, record: dict[str, Any]) -> str:
    """A line that also has the rule, start and, of a match, end in milliseconds, and measures:
    ``m|rule,key,start,end|step=…|measure=…``. Parts of a key are separated by commas; a double
    is told by the number that its bits are."""
    key = record["key"]
    parts = json.loads(key) if key.startswith("[") else [key]
    end = str(_millis(record["time"])) if kind == "m" else ""
    head = ",".join([record["rule_id"], *parts, str(_millis(record["start"])), end])
    measures = record["measures"] if kind == "m" else {}
    return canonical("|".join([line_of(kind, {**record, "key": head}), *_told(measures)]))


def row_line_of(kind: str, record: dict[str, Any]) -> str:
    """A line of a match as a row: key, offsets of its first and last event, and measures. Events of
    a key are in one partition; a double is told as in a full line."""
    events = [event for step in record["steps"] for event in step["events"]]
    rows = {"first_row": events[0]["offset"], "last_row": events[-1]["offset"]}
    return canonical("|".join([kind, record["key"], *_told({**rows, **record["measures"]})]))


def _told(measures: Mapping[str, object]) -> list[str]:
    return [f"{name}={_text_of(value)}" for name, value in measures.items()]


def _millis(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def _text_of(measure: object) -> str:
    if isinstance(measure, float):
        return str(struct.unpack(">q", struct.pack(">d", measure))[0])
    return "null" if measure is None else str(measure)


def decoder(schema: str) -> Any:
    """A function from the service's records of ``match`` or ``timeout`` to their content."""
    text = files("spark_cep.schemas").joinpath(f"{schema}.avsc").read_text("utf-8")
    parsed = fastavro.parse_schema(json.loads(text))

    def decode(value: bytes) -> Any:
        if value[:1] == b"{":
            record = json.loads(value)
            times = {name: record[name] for name in _TIMES if name in record}
            return record | {name: datetime.fromisoformat(each) for name, each in times.items()}
        return fastavro.schemaless_reader(io.BytesIO(value[_FRAMING:]), parsed, None)

    return decode


def _lines(kind: str, schema: str, values: Iterable[bytes], line: LineOf) -> Iterator[str]:
    decode = decoder(schema)
    for value in values:
        yield line(kind, decode(value))


def committed(bootstrap: str, topic: str) -> Iterator[bytes]:
    """The values of all committed records of ``topic``, to its end as it is now."""
    for message in committed_messages(bootstrap, topic):
        value = message.value()
        assert value is not None
        yield value


def committed_messages(bootstrap: str, topic: str) -> Iterator[Message]:
    """The committed records themselves."""
    metadata = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(
        topic, timeout=30
    )
    partitions = list(metadata.topics[topic].partitions)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench-outputs",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        ended: set[int] = set()
        heard = time.monotonic()
        while len(ended) < len(partitions):
            messages = consumer.consume(10_000, 0.2)
            if messages:
                heard = time.monotonic()
            elif time.monotonic() - heard > _SILENCE_SECONDS:
                raise RuntimeError(f"topic {topic} could not be read to its end")
            for message in messages:
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    number = message.partition()
                    assert number is not None
                    ended.add(number)
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()
