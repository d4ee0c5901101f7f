"""Counts of the records of one partition, by fault."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

#: Of a record without event time: before the first one that there is.
NO_TIME = -(1 << 62)


class Tally(NamedTuple):
    """Records of one partition and fault: how many, their newest event time (ms; ``None``: none has
    one) and timestamp (ms), and their bytes."""

    topic: str
    partition: int
    fault: int
    records: int
    time: int | None
    kafka_time: int
    size: int


def tallies(
    topic: str,
    partition: int,
    fault: NDArray[np.int32],
    time: NDArray[np.int64],
    kafka_time: NDArray[np.int64],
    size: NDArray[Any],
) -> list[Tally]:
    """Count the records of a partition: arrays with one value for each; ``NO_TIME`` is the time of
    those that have none."""
    found = []
    # Most often there is one kind alone.
    kinds = pc.unique(pa.array(fault)).to_pylist()
    for one in kinds:
        mine: Any = slice(None) if len(kinds) == 1 else fault == one
        newest, sizes = int(time[mine].max()), size[mine]
        found.append(
            Tally(
                topic=topic,
                partition=partition,
                fault=one,
                records=len(sizes),
                time=None if newest == NO_TIME else newest,
                kafka_time=int(kafka_time[mine].max()),
                size=int(sizes.sum()),
            )
        )
    return found
