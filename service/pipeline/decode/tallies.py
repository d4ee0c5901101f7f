"""What the records of a batch count, by topic, partition and fault."""

from __future__ import annotations

from collections.abc import Sequence
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
    topics: Sequence[str],
    topic: NDArray[Any] | int,
    partition: NDArray[np.int32],
    fault: NDArray[np.int32],
    time: NDArray[np.int64],
    kafka_time: NDArray[np.int64],
    size: NDArray[Any],
) -> list[Tally]:
    """What records count: arrays with one value for each; ``topic`` is a place in ``topics``, and
    ``NO_TIME`` the time of those that have none."""
    partition_at, topic_at = 4, 4 + 32
    which = partition.astype(np.int64) << partition_at | fault
    which |= np.asarray(topic, np.int64) << topic_at
    if not len(which):
        return []
    found = []
    # One task reads one partition, so this goes round once or twice.
    kinds = pc.unique(pa.array(which)).to_pylist()
    for one in kinds:
        mine: Any = slice(None) if len(kinds) == 1 else which == one
        newest, sizes = int(time[mine].max()), size[mine]
        found.append(
            Tally(
                topic=topics[one >> topic_at],
                partition=one >> partition_at & (1 << topic_at - partition_at) - 1,
                fault=one & (1 << partition_at) - 1,
                records=len(sizes),
                time=None if newest == NO_TIME else newest,
                kafka_time=int(kafka_time[mine].max()),
                size=int(sizes.sum()),
            )
        )
    return found
