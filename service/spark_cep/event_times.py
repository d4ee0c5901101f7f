"""Names by which settings say where and how events bear their time."""

from __future__ import annotations

from typing import Final

#: In the place of a column: the timestamp of Kafka's record.
KAFKA_TIMESTAMP: Final = "kafka_timestamp"

#: The unit of a column whose times are ISO 8601 text.
ISO_TEXT: Final = "iso"
