"""Rows of packets and of reports, as Spark sees them. This module imports little: Spark plans in
processes that it starts with each query, and which load what tasks are made of."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import pyarrow as pa

#: Between decoding tasks and key groups; ``label``: of the key group.
PACKET_SCHEMA: Final = pa.schema(
    [("label", pa.int64()), ("kind", pa.int32()), ("packet", pa.binary())]
)
#: From key groups to the driver.
REPORT_SCHEMA: Final = pa.schema([("report", pa.binary())])


class PacketKind(IntEnum):
    """The content of a packet. ``EVENTS + p`` is for partitioning *p*."""

    EVENT_TIMES = 0
    CONTROL = 1
    RECORDS = 2
    REPORT = 3
    UNKEYED = 4
    RESULTS = 5
    EVENTS = 16
