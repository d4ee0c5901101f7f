"""Rows of the stateful operator as Spark hands them over: pandas frames of bounded size, read while
the key group is at work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgpack

from spark_cep.pipeline.wire.packet_schemas import REPORT_SCHEMA


def rows_of(frames: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
    """Kinds and contents of the rows of frames. One frame is in memory at a time."""
    for frame in frames:
        yield from zip(frame["kind"].tolist(), frame["packet"].tolist(), strict=True)


def frame_of(reports: Sequence[bytes]) -> Any:
    """The frame of a task's reports, all in one row."""
    # The process in which Spark plans loads the operator, and needs no frame.
    import pandas as pd

    return pd.DataFrame({REPORT_SCHEMA.names[0]: [msgpack.packb(reports)]}, dtype=object)


def reports_in(rows: bytes) -> list[bytes]:
    """The reports that :func:`frame_of` made rows of, given one row after the other."""
    unpacker = msgpack.Unpacker(max_buffer_size=0)
    unpacker.feed(rows)
    return [report for reports in unpacker for report in reports]
