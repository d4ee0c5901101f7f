"""From what Spark says of a batch (``StreamingQueryProgress``) to metrics.

Spark also says of a trigger that found nothing how it went, with the number of the batch that is to
come and the figures of the state of the one before: that is no batch, and not counted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from spark_cep.observability import metric_names as names
from spark_cep.observability.metrics import Metrics
from spark_cep.pipeline.driver.control.source_offset import Ends, SourceOffset

PHASES: Final = {
    "latestOffset": "latest_offset",
    "walCommit": "wal_commit",
    "getBatch": "get_batch",
    "queryPlanning": "planning",
    "addBatch": "run",
    "commitOffsets": "commit_offsets",
}
"""The phases of a batch in their order, by the names that Spark has for them."""

WHOLE: Final = "triggerExecution"
"""Spark's name for the time of the whole batch."""

_ROCKSDB_PHASES: Final = {
    "rocksdbLoadLatencyMs": "load",
    "rocksdbCommitFlushLatency": "flush",
    "rocksdbCommitCompactLatency": "compact",
    "rocksdbCommitCheckpointLatency": "checkpoint",
    "rocksdbCommitFileSyncLatencyMs": "file_sync",
    "rocksdbChangeLogWriterCommitLatencyMs": "changelog",
}
_ROCKSDB_BYTES: Final = {
    "rocksdbTotalBytesRead": "read",
    "rocksdbTotalBytesWritten": "written",
    "rocksdbBytesCopied": "copied",
}
_BLOCK_CACHE: Final = {
    "rocksdbReadBlockCacheHitCount": "hit",
    "rocksdbReadBlockCacheMissCount": "miss",
}
_FILE_BYTES: Final = "rocksdbSstFileSize"


def is_batch(progress: Mapping[str, Any]) -> bool:
    """Tell whether it is of a batch that ran, not of a trigger that found nothing."""
    return "addBatch" in progress["durationMs"]


def publish_progress(progress: Mapping[str, Any], metrics: Metrics) -> None:
    """Phases and state of one batch that Spark has committed."""
    _publish_phases(progress["durationMs"], metrics)
    operators = progress["stateOperators"]

    def total(name: str) -> float:
        return float(sum(operator.get(name, 0) for operator in operators))

    def custom(name: str) -> float:
        return float(sum(o.get("customMetrics", {}).get(name, 0) for o in operators))

    metrics.set(names.STATE_ROWS, total("numRowsTotal"))
    metrics.set(names.STATE_BYTES, total("memoryUsedBytes"))
    metrics.set(names.STATE_FILE_BYTES, custom(_FILE_BYTES))
    metrics.increment(names.STATE_ROWS_UPDATED, total("numRowsUpdated"))
    metrics.increment(names.STATE_ROWS_REMOVED, total("numRowsRemoved"))
    metrics.observe(names.STAGE_DURATION, total("commitTimeMs") / 1000, stage="state_commit")
    for name, phase in _ROCKSDB_PHASES.items():
        metrics.observe(names.ROCKSDB_DURATION, custom(name) / 1000, phase=phase)
    for name, direction in _ROCKSDB_BYTES.items():
        metrics.increment(names.ROCKSDB_BYTES, max(0.0, custom(name)), direction=direction)
    for name, result in _BLOCK_CACHE.items():
        metrics.increment(names.ROCKSDB_BLOCK_CACHE, max(0.0, custom(name)), result=result)


def _publish_phases(durations: Mapping[str, int], metrics: Metrics) -> None:
    known = 0
    for name, phase in PHASES.items():
        spent = durations.get(name, 0)
        known += spent
        metrics.observe(names.BATCH_PHASE_DURATION, spent / 1000, phase=phase)
    rest = max(0, durations.get(WHOLE, 0) - known)
    metrics.observe(names.BATCH_PHASE_DURATION, rest / 1000, phase="other")


def offsets_read(progress: Mapping[str, Any]) -> tuple[Ends, Ends]:
    """The offsets of the input that a batch ends before, and those that partitions ended before
    when it was planned."""
    (source,) = progress["sources"]
    return _ends(source["endOffset"]), _ends(source["latestOffset"])


def _ends(value: Any) -> Ends:
    """Offsets out of the JSON (or text of it) that the source gives."""
    offset = json.loads(value) if isinstance(value, str) else value
    return {} if offset is None else SourceOffset.from_json(offset).input
