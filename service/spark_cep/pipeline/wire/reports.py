"""Reports: what decoding tasks, key groups and writers tell the driver of a batch.

All have one form and add up. What is counted is a closed list: a count that is not on it cannot
be sent, and is refused where it is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Self

from spark_cep.packing import pack, reading_packet, unpack
from spark_cep.pipeline.wire.control import Partition


class Count(StrEnum):
    """Counts, with the names of their labels."""

    labels: tuple[str, ...]

    def __new__(cls, tag: str, *labels: str) -> Self:
        """A member ``tag`` that has values for ``labels``."""
        member = str.__new__(cls, tag)
        member._value_ = tag
        member.labels = labels
        return member

    @classmethod
    def _missing_(cls, value: object) -> Count:
        raise ValueError(f"there is no count {value!r}; there are: {', '.join(cls)}")

    # By decoding tasks.
    RECORDS = "records", "topic"
    BYTES = "bytes", "topic"
    TOMBSTONES = "tombstones", "topic"
    LOST = "lost", "topic"
    RELEVANT_EVENTS = "relevant_events"
    # By key groups.
    LATE_EVENTS = "late_events", "topic"
    PARTLY_USED = "partly_used"
    EVENTS = "events", "rule"
    STARTED = "started", "rule"
    MATCHED = "matched", "rule"
    MATCH_ROWS = "match_rows", "rule"
    TIMED_OUT = "timed_out", "rule"
    PRUNED = "pruned", "rule"
    DROPPED = "dropped", "rule"
    DROPPED_MATCHES = "dropped_matches", "rule"
    RULE_DEAD_LETTERS = "rule_dead_letters", "rule", "version", "reason"
    PROCESSING_NS = "processing_ns", "rule"
    # By writers.
    WRITTEN = "written", "topic"
    WRITTEN_BYTES = "written_bytes", "topic"
    TRANSACTIONS = "transactions", "result"
    # By several of them.
    DEAD_LETTERS = "dead_letters", "reason"
    BUSY_US = "busy_us", "stage"


#: Numbers by what is counted and the values of its labels.
Counts = Counter[tuple[Count, *tuple[str, ...]]]


def count_dead_letter(
    counts: Counts, reason: str, rule: str | None = None, version: int | None = None
) -> None:
    """Count a dead letter, and for a version of a rule where it is of its making."""
    counts[Count.DEAD_LETTERS, reason] += 1
    if rule is not None:
        counts[Count.RULE_DEAD_LETTERS, rule, str(version), reason] += 1


class PartitionRead(NamedTuple):
    """A Kafka partition that a decoding task read: its newest record's timestamp and its newest
    event time (``None``: no record had one), in milliseconds."""

    topic: str
    partition: int
    timestamp: int
    event_time: int | None


class LostRecords(NamedTuple):
    """Offsets of a Kafka partition, from ``start`` to before ``end``, that were passed over: their
    records were deleted before they were read."""

    topic: str
    partition: int
    start: int
    end: int


class ProcessMemory(NamedTuple):
    """Resident bytes of a process, as a task in it saw them."""

    host: str
    process: int
    is_jvm: bool
    bytes: int


class GoneRule(NamedTuple):
    """Partial matches that went with a changed or removed rule, or as the clock was set back."""

    rule: str
    version: int
    partial_matches: int


@dataclass(frozen=True, slots=True)
class EventTime:
    """Event time as all key groups know it after a batch: the watermark, and the newest event time
    of each partition (``None``: it was not read yet), in milliseconds."""

    watermark: int
    partitions: Mapping[Partition, int | None]


@dataclass(frozen=True, slots=True)
class Report:
    """One task's or key group's part of a batch. ``live``: partial matches by rule id and version;
    ``drained``: fingerprints of versions that drain and have nothing to do any more in the group;
    ``waiting``: how many events wait for the watermark; ``beginning``: the event times at which
    rules begin that have not begun, by rule id and version, from the group that tells the ``time``;
    ``gone``, ``ended``: partial matches that went with their rules, and as the clock was set back;
    ``match_times``: event times that stand for those of matches, each with how many; ``time`` comes
    from one key group."""

    counts: Counts = field(default_factory=Counter)
    partitions_read: tuple[PartitionRead, ...] = ()
    processes: tuple[ProcessMemory, ...] = ()
    live: Mapping[tuple[str, int], int] = field(default_factory=dict)
    gone: tuple[GoneRule, ...] = ()
    match_times: tuple[tuple[int, int], ...] = ()
    time: EventTime | None = None
    drained: tuple[str, ...] = ()
    waiting: int = 0
    beginning: Mapping[tuple[str, int], int] = field(default_factory=dict)
    lost: tuple[LostRecords, ...] = ()
    ended: tuple[GoneRule, ...] = ()

    def encode(self) -> bytes:
        """The packet. Raises ValueError for a count whose labels are not its own."""
        time = self.time and [
            self.time.watermark,
            [[*partition, newest] for partition, newest in self.time.partitions.items()],
        ]
        return pack(
            [
                [[*_checked(*key), number] for key, number in self.counts.items()],
                self.partitions_read,
                self.processes,
                [[*rule, number] for rule, number in self.live.items()],
                self.gone,
                self.match_times,
                time,
                self.drained,
                self.waiting,
                [[*rule, begins] for rule, begins in self.beginning.items()],
                self.lost,
                self.ended,
            ]
        )

    @classmethod
    def decode(cls, packet: bytes) -> Report:
        """Decode the bytes that :meth:`encode` makes. Raises StateError for other bytes, such as
        those with a count that is not on the list, or has other labels."""
        with reading_packet():
            (counts, read, processes, live, gone, match_times, time, drained, waiting,
             beginning, lost, ended) = unpack(packet)  # fmt: skip
            return cls(
                Counter({_checked(Count(what), *labels): n for what, *labels, n in counts}),
                tuple(PartitionRead(*each) for each in read),
                tuple(ProcessMemory(*each) for each in processes),
                {(rule, version): n for rule, version, n in live},
                tuple(GoneRule(*each) for each in gone),
                tuple((at, count) for at, count in match_times),
                None if time is None else _event_time(*time),
                tuple(drained),
                waiting,
                {(rule, version): begins for rule, version, begins in beginning},
                tuple(LostRecords(*each) for each in lost),
                tuple(GoneRule(*each) for each in ended),
            )


def _checked(what: Count, *labels: str) -> tuple[Count, *tuple[str, ...]]:
    if len(labels) != len(what.labels):
        raise ValueError(f"{what} has the labels {what.labels}, not values {labels}")
    return what, *labels


def _event_time(watermark: int, partitions: Iterable[Any]) -> EventTime:
    return EventTime(watermark, {(topic, number): newest for topic, number, newest in partitions})
