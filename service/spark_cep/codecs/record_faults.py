"""Why a record is no event."""

from __future__ import annotations

from enum import IntEnum
from typing import Self

from spark_cep.codecs.avro.loops import record_bytes
from spark_cep.codecs.output.dead_letters import Reason


class Fault(IntEnum):
    """Why a record cannot simply go on, and the ``reason`` that its dead letter names; without one
    it leaves none."""

    reason: Reason | None

    def __new__(cls, number: int, reason: Reason | None = None) -> Self:
        """A fault with its number and its reason."""
        fault = int.__new__(cls, number)
        fault._value_ = number
        fault.reason = reason
        return fault

    # Numbers below are those of compiled loops.
    NONE = record_bytes.READ
    TOMBSTONE = record_bytes.ABSENT
    NOT_READ = record_bytes.NOT_READ
    NOT_FRAMED = record_bytes.NOT_FRAMED, Reason.NOT_FRAMED
    UNKNOWN_ID = record_bytes.UNKNOWN_ID, Reason.UNKNOWN_SCHEMA_ID
    UNDECODABLE = record_bytes.UNDECODABLE, Reason.UNDECODABLE
    UNREADABLE_SCHEMA = record_bytes.UNREADABLE, Reason.UNREADABLE_SCHEMA
    BAD_VALUE = record_bytes.BAD_VALUE, Reason.VALUE_OUT_OF_RANGE
    TOO_DEEP = record_bytes.TOO_DEEP, Reason.UNDECODABLE
    MISSING_KEY = 9, Reason.MISSING_KEY
    TIME_OUT_OF_BOUNDS = 10, Reason.EVENT_TIME_OUT_OF_BOUNDS
    MISSING_TIME = 11, Reason.MISSING_EVENT_TIME


#: Reasons of records that no rule could be given; all others are of rules.
OF_RECORDS = frozenset(fault.reason.value for fault in Fault if fault.reason is not None)
