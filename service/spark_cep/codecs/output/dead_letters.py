"""Dead letters: the closed list of their reasons.

Two things are counted and passed over, not dead letters: tombstones (records whose value is null)
and records of a type that no input reads, in a topic with several record types.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

#: Characters of the words that a dead letter says.
LONGEST_DETAIL = 500


class Reason(StrEnum):
    """Why something became a dead letter; the word stands in the record's ``reason``."""

    meaning: str

    def __new__(cls, word: str, meaning: str) -> Self:
        """A reason with its word and its meaning."""
        reason = str.__new__(cls, word)
        reason._value_ = word
        reason.meaning = meaning
        return reason

    NOT_FRAMED = (
        "not_framed",
        "The value, or its schema header, does not have the framing of its input.",
    )
    UNKNOWN_SCHEMA_ID = (
        "unknown_schema_id",
        "The registry, or the settings, lack the schema id, or a task met over 1,000 such ids.",
    )
    UNREADABLE_SCHEMA = (
        "unreadable_schema",
        "The registry knows the schema; it is not Avro or does not resolve to the reader schema.",
    )
    UNDECODABLE = (
        "undecodable",
        "The body is truncated or corrupt, or a field of JSON is missing or of another type.",
    )
    VALUE_OUT_OF_RANGE = (
        "value_out_of_range",
        "A number has too many digits for its type, or a time is outside the years 1 to 9999.",
    )
    MISSING_KEY = (
        "missing_key",
        "The key of a rule with a step that could take the event, or a part of it, is null.",
    )
    MISSING_EVENT_TIME = ("missing_event_time", "The event time is null, or text that is no time.")
    EVENT_TIME_OUT_OF_BOUNDS = (
        "event_time_out_of_bounds",
        "The event time is further ahead than the settings allow, or not in the years 1 to 9999.",
    )
    CONDITION_FAILED = (
        "condition_failed",
        "A condition could not be computed; the event counted as not matching for that rule.",
    )
    MEASURE_FAILED = ("measure_failed", "A measure of a match could not be computed.")
    SKIP_FAILED = (
        "skip_failed",
        "A match has no event to skip to, and the rule asks for that to be an error.",
    )
    LIMIT_REACHED = (
        "limit_reached",
        "More partial matches or events of a key, matches or work of an event, than is allowed.",
    )
    OUTPUT_TOO_LARGE = (
        "output_too_large",
        "A match, row, timeout or late event is larger than a record of its topic may be.",
    )


REASONS = frozenset(reason.value for reason in Reason)
