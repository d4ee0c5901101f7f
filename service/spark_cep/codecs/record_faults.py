"""Why a record is no event."""

from __future__ import annotations

from enum import IntEnum
from typing import Self

from spark_cep.codecs.output.dead_letters import Reason


class Fault(IntEnum):
    """Why a record cannot simply go on, and the ``reason`` that its dead letter names; without one
    it leaves none. Readers find those up to ``TOO_LARGE``, the decoder the others."""

    reason: Reason | None

    def __new__(cls, number: int, reason: Reason | None = None) -> Self:
        """A fault with its number and its reason."""
        fault = int.__new__(cls, number)
        fault._value_ = number
        fault.reason = reason
        return fault

    NONE = 0
    #: There is no value.
    TOMBSTONE = 1
    #: It is of a type that no input reads.
    NOT_READ = 2
    NOT_FRAMED = 3, Reason.NOT_FRAMED
    UNKNOWN_SCHEMA = 4, Reason.UNKNOWN_SCHEMA_ID
    UNDECODABLE = 5, Reason.UNDECODABLE
    UNREADABLE_SCHEMA = 6, Reason.UNREADABLE_SCHEMA
    BAD_VALUE = 7, Reason.VALUE_OUT_OF_RANGE
    TOO_DEEP = 8, Reason.UNDECODABLE
    TOO_LARGE = 9, Reason.UNDECODABLE
    MISSING_KEY = 10, Reason.MISSING_KEY
    TIME_OUT_OF_BOUNDS = 11, Reason.EVENT_TIME_OUT_OF_BOUNDS
    MISSING_TIME = 12, Reason.MISSING_EVENT_TIME
    #: It is text, and no time.
    UNREADABLE_TIME = 13, Reason.MISSING_EVENT_TIME


#: Reasons of records that no rule could be given; all others are of rules.
OF_RECORDS = frozenset(fault.reason.value for fault in Fault if fault.reason is not None)
