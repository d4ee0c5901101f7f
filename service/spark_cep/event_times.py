"""Event times: how settings name them, their bounds, and as text."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Final

#: In the place of a column: the timestamp of Kafka's record.
KAFKA_TIMESTAMP: Final = "kafka_timestamp"

#: The unit of a column whose times are ISO 8601 text.
ISO_TEXT: Final = "iso"

#: The years 1 to 9999, in milliseconds since 1970.
FIRST_TIME: Final = -62_135_596_800_000
LAST_TIME: Final = 253_402_300_799_999

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def time_text(ms: int) -> str:
    """The time as ISO 8601 in UTC, ``2030-01-31T00:00:00Z``, with milliseconds where there are
    some. OverflowError beyond the years 1 to 9999."""
    return instant_text(ms * 1_000)


def instant_text(micros: int) -> str:
    """The time as ISO 8601 in UTC, with as many decimals as it has."""
    moment = _EPOCH + micros * _MICROSECOND
    precision = "seconds" if micros % 1_000_000 == 0 else "milliseconds"
    precision = precision if micros % 1_000 == 0 else "microseconds"
    return moment.replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def instant_us(value: object) -> int:
    """The microseconds since 1970 of an ISO 8601 timestamp; without a zone it is UTC. ValueError
    when it is none."""
    moment: date | None = value if isinstance(value, date) else None
    if isinstance(value, str):
        moment = datetime.fromisoformat(value.strip())
    if moment is None:
        raise ValueError(f"{value!r} is no timestamp in ISO 8601")
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    elapsed = moment - _EPOCH
    return (elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds
