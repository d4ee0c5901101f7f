"""From what Spark says of a batch (``StreamingQuery.lastProgress``) to metrics."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from service.observability import metric_names as names
from service.observability.metrics import Metrics

_KAFKA = "KafkaV2"


def publish_progress(progress: Mapping[str, Any], metrics: Metrics) -> None:
    """Stage times, state size and lag of one batch."""
    for stage, milliseconds in progress["durationMs"].items():
        metrics.observe(names.STAGE_DURATION, milliseconds / 1000, stage=stage)
    operators = progress["stateOperators"]
    metrics.set(names.STATE_ROWS, sum(operator["numRowsTotal"] for operator in operators))
    metrics.set(names.STATE_BYTES, sum(operator["memoryUsedBytes"] for operator in operators))
    lag: dict[tuple[str, ...], float] = {}
    for source in progress["sources"]:
        if source["description"].startswith(_KAFKA):
            read, newest = _offsets(source["endOffset"]), _offsets(source["latestOffset"])
            for (topic, partition), offset in newest.items():
                lag[topic, partition] = max(0, offset - read.get((topic, partition), 0))
    metrics.replace(names.CONSUMER_LAG, lag)


def _offsets(value: Any) -> dict[tuple[str, str], int]:
    """Offsets by topic and partition, out of the JSON (or text of it) that the source gives."""
    offsets = json.loads(value) if isinstance(value, str) else value
    if not isinstance(offsets, dict):
        return {}
    return {
        (topic, partition): int(offset)
        for topic, partitions in offsets.items()
        for partition, offset in partitions.items()
    }
