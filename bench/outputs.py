"""What a run wrote, read back from its topics as a consumer that sees committed records alone does.

A match or timeout is one line of text, the same for both sides: ``m`` or ``t``, key, and for each
step its name and the partition and offset of its events.
"""

from __future__ import annotations

import io
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import fastavro
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

_FRAMING = 5
_SHOWN = 3
_SILENCE_SECONDS = 30.0


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


def found_by_job(bootstrap: str, matches: str, timeouts: str) -> Found:
    """What the service wrote."""
    return Found.of(
        line
        for kind, schema, topic in (("m", "match", matches), ("t", "timeout", timeouts))
        for line in _lines(kind, schema, committed(bootstrap, topic))
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


def decoder(schema: str) -> Any:
    """A function from the service's records of ``match`` or ``timeout`` to their content."""
    text = files("schemas").joinpath(f"{schema}.avsc").read_text("utf-8")
    parsed = fastavro.parse_schema(json.loads(text))
    return lambda value: fastavro.schemaless_reader(io.BytesIO(value[_FRAMING:]), parsed, None)


def _lines(kind: str, schema: str, values: Iterable[bytes]) -> Iterator[str]:
    decode = decoder(schema)
    for value in values:
        yield line_of(kind, decode(value))


def committed(bootstrap: str, topic: str) -> Iterator[bytes]:
    """The values of all committed records of ``topic``, to its end as it is now."""
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
                    value = message.value()
                    assert value is not None
                    yield value
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  its public name
                    number = message.partition()
                    assert number is not None
                    ended.add(number)
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()
