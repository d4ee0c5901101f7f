"""Commit markers: which batch each state partition has written, kept in Kafka with the output.

The marker of a batch is a record of the transaction that holds the batch's output, so both are
there or neither is. The topic of markers is compacted and has a partition for each state partition;
the last committed record of a partition is its marker.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from spark_cep.errors import KafkaUnavailableError, OutputError, StateError
from spark_cep.kafka_errors import unavailable_or
from spark_cep.pipeline.deliver.kafka_retry import retried

KEY: Final = b"commit-marker"
#: A topic of markers holds little, and is read from near its end.
TOPIC_CONFIG: Final = {"cleanup.policy": "compact", "segment.bytes": str(8 * 2**20)}

_SECONDS: Final = 30.0
_FIRST_LOOK: Final = 8
"""A batch leaves two offsets: the marker and the transaction's end."""


@dataclass(frozen=True, slots=True)
class CommitMarker:
    """``run`` of the service has written ``batch`` of ``query`` (Spark's id, from the checkpoint)
    with the producer ``writer``; the batch ends at ``offsets``, a digest, and knew the
    ``schema_ids`` (as ranges). Without ``query`` it only says who writes from now on."""

    run: str
    query: str | None = None
    batch: int = -1
    writer: str = ""
    schema_ids: str | None = None
    offsets: str = ""

    def packed(self) -> bytes:
        """The record's value."""
        return json.dumps(asdict(self)).encode()


class CommitMarkers:
    """Reads commit markers. One for each process, kept: a consumer takes 50 ms to start."""

    def __init__(self, consumer_config: Mapping[str, Any], topic: str) -> None:
        quick = {"enable.partition.eof": True, "fetch.wait.max.ms": 10, "log_level": 0}
        self.topic = topic
        self._consumer = Consumer({**consumer_config, **quick})

    def read(self, partition: int) -> CommitMarker | None:
        """The marker of a state partition; None where none was written.

        Raises KafkaUnavailableError when Kafka does not answer, OutputError when it refuses, and
        StateError for a record that is no marker.
        """
        try:
            at = TopicPartition(self.topic, partition)
            low, high = retried(lambda: self._ends(at), _SECONDS)
            start, look = high, _FIRST_LOOK
            value = None
            while value is None and start > low:
                start = max(low, high - look)
                value = self._last_from(partition, start)
                look *= 8
        except KafkaException as error:
            reason = error.args[0]
            message = (
                f"the commit marker of state partition {partition} cannot be read from"
                f" {self.topic}: {reason.str()}"
            )
            raise unavailable_or(OutputError, reason, message) from error
        return None if value is None else self._marker(partition, value)

    def close(self) -> None:
        """End the consumer."""
        self._consumer.close()

    def _ends(self, at: TopicPartition) -> tuple[int, int]:
        try:
            return self._consumer.get_watermark_offsets(at, timeout=_SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._UNKNOWN_PARTITION:
                raise
        # The topic has grown by a rescale since this client asked for its partitions.
        self._consumer.list_topics(self.topic, timeout=_SECONDS)
        return self._consumer.get_watermark_offsets(at, timeout=_SECONDS)

    def _last_from(self, partition: int, start: int) -> bytes | None:
        """The last committed value at ``start`` or after it."""
        self._consumer.assign([TopicPartition(self.topic, partition, start)])
        try:
            return self._last_before_end()
        finally:
            # Else the client goes on asking for records, a hundred times a second.
            self._consumer.unassign()

    def _last_before_end(self) -> bytes | None:
        last: bytes | None = None
        while True:
            message = self._consumer.poll(_SECONDS)
            if message is None:
                raise KafkaUnavailableError(
                    f"no answer within {_SECONDS:.0f} s when reading {self.topic}"
                )
            error = message.error()
            if error is None:
                last = message.value()
            elif error.code() == error._PARTITION_EOF:
                return last
            else:
                raise KafkaException(error)

    def _marker(self, partition: int, value: bytes) -> CommitMarker:
        try:
            return CommitMarker(**json.loads(value))
        except (ValueError, TypeError) as error:
            raise StateError(
                f"{self.topic}, partition {partition}: the last record is not a commit marker of"
                f" this service ({value[:100]!r}); outputs.transactional_id_prefix must name a"
                " topic of its own"
            ) from error
