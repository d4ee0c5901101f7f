"""Latency of matches: from tasks to the driver, and from there to the histograms.

A task cannot know when its batch will be committed, and the times of a hundred thousand matches are
too many to send. So it sends how many there are of each age, to 3 %, and the driver adds what has
gone by since.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from spark_cep.observability import metric_names as names
from spark_cep.observability.metrics import Metrics
from spark_cep.pipeline.wire.reports import PartitionRead

#: Ages in ms, each 3 % more than the one before, up to thirty years.
_AGES: Final = np.unique(np.round(1.03 ** np.arange(0, 935))).astype(np.int64)


class Ages:
    """Ages of one key group's matches."""

    def __init__(self) -> None:
        self._times: list[int] = []

    def add(self, times: Iterable[int]) -> None:
        """Event times of matches, in ms."""
        self._times.extend(times)

    def times(self) -> tuple[tuple[int, int], ...]:
        """Event times that stand for all that were added, each with how many."""
        if not self._times:
            return ()
        now = round(time.time() * 1000)
        ages = now - np.array(self._times, np.int64)
        places = np.minimum(np.searchsorted(_AGES, ages), len(_AGES) - 1)
        found, counts = np.unique(places, return_counts=True)
        # Halfway between two ages, so that the error has no side.
        middle = (_AGES[found] + _AGES[np.maximum(found - 1, 0)]) // 2
        return tuple(
            (now - age, n) for age, n in zip(middle.tolist(), counts.tolist(), strict=True)
        )


def source_delay(partitions: Iterable[PartitionRead], *, slowest: bool) -> int | None:
    """By how many ms the newest events of a batch came to Kafka after they happened: of the
    partition for which that is longest, or, where the watermark follows the newest event anywhere,
    shortest. ``None`` when the batch says nothing of it."""
    delays = [
        each.timestamp - each.event_time for each in partitions if each.event_time is not None
    ]
    if not delays:
        return None
    return max(delays) if slowest else min(delays)


def publish_latency(
    match_times: Counter[int],
    metrics: Metrics,
    *,
    began: float,
    committed: float,
    disorder_ms: int,
    delay_ms: int | None,
    exemplar: Mapping[str, str] | None = None,
) -> None:
    """Observe a committed batch's matches. ``began`` and ``committed``: seconds since 1970;
    ``exemplar``: the labels that lead to the batch.

    The watermark could pass a match's time when Kafka had an event that is later by the allowed
    disorder: that is, so long after it and by the source's delay. But no later than the batch began
    that decided it, which without events did so by the clock.
    """
    for at, count in match_times.items():
        seconds = at / 1000
        metrics.observe(names.MATCH_LATENCY, max(0.0, committed - seconds), count, exemplar)
        could = began if delay_ms is None else seconds + (disorder_ms + delay_ms) / 1000
        metrics.observe(names.DECISION_LATENCY, committed - min(could, began), count, exemplar)
