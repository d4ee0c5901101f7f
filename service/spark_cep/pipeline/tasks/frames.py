"""Rows of the stateful operator as Spark hands them over: pandas frames of bounded size, read and
written while the key group is at work.

Spark's interface by rows (``transformWithState``) collects all output of a key group before it
sends any, as one Arrow batch of less than 2 GiB; that by frames sends each as it is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np

#: Bytes of one frame, about: the last row may exceed it.
MOST_BYTES: Final = 4 << 20


def rows_of(frames: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
    """Kinds and contents of the rows of frames. One frame is in memory at a time."""
    for frame in frames:
        yield from zip(frame["kind"].tolist(), frame["packet"].tolist(), strict=True)


def frames_of(rows: Iterable[tuple[int, bytes]]) -> Iterator[Any]:
    """Rows in frames, each handed on before the rows behind it are made."""
    kinds: list[int] = []
    packets: list[bytes] = []
    size = 0
    for kind, packet in rows:
        kinds.append(kind)
        packets.append(packet)
        size += len(packet)
        if size >= MOST_BYTES:
            yield _frame(kinds, packets)
            kinds, packets, size = [], [], 0
    if kinds:
        yield _frame(kinds, packets)


def _frame(kinds: list[int], packets: list[bytes]) -> Any:
    # The process in which Spark plans loads the operator, and needs no frame.
    import pandas as pd

    # From arrays, which takes a third of the time that lists take.
    columns = {"kind": np.array(kinds, np.int32), "packet": np.array(packets, object)}
    return pd.DataFrame(columns, copy=False)
