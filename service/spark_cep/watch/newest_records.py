"""The newest records of input topics, however many come: what a person can read of a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from spark_cep.errors import printable, shortened
from spark_cep.pipeline.driver.commands.output_records import RecordDecoder, UndecodedError
from spark_cep.pipeline.driver.kafka.cluster import END, Cluster
from spark_cep.pipeline.wire.control import Partition
from spark_cep.watch.recent_lines import ShownLine
from spark_cep.watch.result_line import content

#: Of a partition and reading.
_MOST_EACH: Final = 10
_MOST_AT_ONCE: Final = 500
_WAIT_SECONDS: Final = 0.5
_MOST_OF_TEXT: Final = 300


@dataclass(frozen=True, slots=True)
class NewestPart:
    """The part of a partition to read: from an offset to before another; ``passed``: how many
    before it are new and not read."""

    start: int
    end: int
    passed: int


def newest_parts(
    ends: Mapping[Partition, int], seen: Mapping[Partition, int]
) -> dict[Partition, NewestPart]:
    """The parts to read of partitions that end there now, and whose end was ``seen`` before: those
    that have something new."""
    found = {}
    for at, end in ends.items():
        newest = max(end - _MOST_EACH, 0)
        start = max(seen.get(at, newest), newest)
        if start < end:
            found[at] = NewestPart(start, end, max(start - seen.get(at, start), 0))
    return found


class NewestRecords:
    """Reads the newest records of ``topics`` again and again; commits nothing."""

    def __init__(
        self, cluster: Cluster, consumer: Consumer, decoder: RecordDecoder, topics: Sequence[str]
    ) -> None:
        self._cluster = cluster
        self._consumer = consumer
        self._decoder = decoder
        self._partitions = cluster.input_partitions(topics, ())
        self._seen: dict[Partition, int] = {}

    def read(self) -> list[ShownLine]:
        """The lines of what has come. Raises what :class:`Cluster` does."""
        ends = self._cluster.offsets(self._partitions, END, committed=True)
        parts = newest_parts(ends, self._seen)
        # What does not come in time is read another time: until then it is not seen.
        self._seen |= ends | {at: part.start for at, part in parts.items()}
        lines = []
        passed = sum(part.passed for part in parts.values())
        if passed:
            lines.append(ShownLine("passed", f"… {passed:,} more records …"))
        return lines + [self._line(each) for each in self._messages(parts)]

    def _messages(self, parts: Mapping[Partition, NewestPart]) -> list[Message]:
        if not parts:
            return []
        left = set(parts)
        found: list[Message] = []
        wanted = [TopicPartition(*at, part.start) for at, part in parts.items()]
        self._consumer.assign(wanted)
        while left:
            messages = self._cluster.ask(
                lambda: self._consumer.consume(_MOST_AT_ONCE, _WAIT_SECONDS)
            )
            if not messages:
                break  # the broker takes its time: the next reading begins where this one ends
            for message in messages:
                at = (message.topic() or "", message.partition() or 0)
                offset, error = message.offset() or 0, message.error()
                if at not in left:
                    continue
                end = parts[at].end
                if error is None and offset < end:
                    found.append(message)
                    self._seen[at] = offset + 1
                ended = error is not None and error.code() == KafkaError._PARTITION_EOF
                if ended or offset >= end - 1:
                    left.discard(at)
                    self._seen[at] = end
        self._consumer.assign([])
        return sorted(found, key=lambda each: each.timestamp()[1])

    def _line(self, message: Message) -> ShownLine:
        key: Any = message.key()
        shown = key.decode("utf-8", "replace") if isinstance(key, bytes) else key
        kind = "record"
        if message.value() is None:
            text = "no value"
        else:
            try:
                value = self._decoder.decoded(message)
                text = content(value) if isinstance(value, dict) else str(value)
            except UndecodedError as error:
                kind, text = "undecoded", str(error)
        line = f"{message.topic():<12}  {shown or '-':<10}  {text}"
        return ShownLine(kind, printable(shortened(line, _MOST_OF_TEXT)))
