"""Records as a runner and an account take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spark_cep.runner.batch import Batch
from spark_cep.runner.values import ValueRecord, records_of
from tests.reference.local import Record

#: Behind all deadlines.
END = 1 << 60


def batches(records: Sequence[Record], end: int = END) -> list[Batch]:
    """Records, one batch for each two, and the ``end``."""
    values = [
        ValueRecord.of(each.at, 0, each.time * 1_000 + each.micros, each.values) for each in records
    ]
    times = [each.time for each in records]
    cut = [values[n : n + 2] for n in range(0, len(values), 2)]
    marks = [max(times[: 2 * n + 2]) - 3 for n in range(len(cut))]
    return [
        *(Batch(records_of(each), watermark=mark) for each, mark in zip(cut, marks, strict=True)),
        Batch((), watermark=end),
    ]


def taken(steps: Mapping[str, Sequence[Any]]) -> str:
    """The events of a partial match."""
    return repr(sorted((name, [each.at for each in events]) for name, events in steps.items()))
