"""Where the time of an event is, if in no column of it."""

from __future__ import annotations

from typing import Final

#: In the place of a column: the timestamp of Kafka's record.
KAFKA_TIMESTAMP: Final = "kafka_timestamp"
