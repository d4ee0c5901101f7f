"""Names for the event time of events that have it in no column."""

from __future__ import annotations

from typing import Final

#: In the place of a column: the timestamp of Kafka's record.
KAFKA_TIMESTAMP: Final = "kafka_timestamp"
