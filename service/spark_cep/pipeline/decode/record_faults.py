"""Why a record is no event."""

from __future__ import annotations

from enum import IntEnum


class Fault(IntEnum):
    """Why a record cannot simply go on."""

    NONE = 0
    TOMBSTONE = 1
    NOT_READ = 2
    NOT_FRAMED = 3
    UNKNOWN_ID = 4
    UNDECODABLE = 5
    MISSING_KEY = 6
    TIME_OUT_OF_BOUNDS = 7
    UNREADABLE_SCHEMA = 8
    BAD_VALUE = 9
    MISSING_TIME = 10
    TOO_DEEP = 11
