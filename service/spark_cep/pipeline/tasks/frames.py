"""Rows of the stateful operator as Spark hands them over: pandas frames of bounded size, read while
the key group is at work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from spark_cep.pipeline.wire.packets import REPORT_SCHEMA


def rows_of(frames: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
    """Kinds and contents of the rows of frames. One frame is in memory at a time."""
    for frame in frames:
        yield from zip(frame["kind"].tolist(), frame["packet"].tolist(), strict=True)


def frame_of(reports: Sequence[bytes]) -> Any:
    """The frame of some reports, each a row."""
    # The process in which Spark plans loads the operator, and needs no frame.
    import pandas as pd

    return pd.DataFrame({REPORT_SCHEMA.names[0]: reports}, dtype=object)
