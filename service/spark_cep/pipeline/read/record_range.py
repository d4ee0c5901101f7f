"""A range of records, which a task reads. This module imports little: Spark plans ranges in a
process that it starts with each query."""

from __future__ import annotations

from typing import NamedTuple


class Range(NamedTuple):
    """The records of a partition from offset ``start`` to before ``end``, as far as there are any:
    compaction and transactions leave gaps."""

    topic: str
    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.topic}, partition {self.partition}"
