"""Every metric of the service: a closed, typed list; there are no others.

Names follow Prometheus: the prefix ``spark_cep_``, base units, ``_total`` for counters, ``_info``
for facts. No label takes event keys or anything else without bound; the label ``rule`` is capped by
``service.observability.metrics``. ``docs/metrics.md`` is written from here
(``python -m service.observability.metric_names``).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final

PREFIX: Final = "spark_cep_"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. ``unit`` is what its values count or measure."""

    name: str
    help: str
    unit: str
    labels: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The type that Prometheus knows it by."""
        return type(self).__name__.lower()


@dataclass(frozen=True, slots=True)
class Counter(Metric):
    """Only ever goes up."""


@dataclass(frozen=True, slots=True)
class Gauge(Metric):
    """Goes up and down."""


@dataclass(frozen=True, slots=True)
class Histogram(Metric):
    """Counts observations by size."""

    buckets: tuple[float, ...] = ()


_BATCH_SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)

# Input.
RECORDS_CONSUMED = Counter(
    "spark_cep_records_consumed_total", "Records read from input topics.", "records", ("topic",)
)
TOMBSTONES = Counter(
    "spark_cep_tombstones_total", "Records without a value, passed over.", "records", ("topic",)
)
EVENTS_RELEVANT = Counter(
    "spark_cep_events_relevant_total",
    "Events that went on to the matcher: some rule could use them, or must know that they came.",
    "events",
)
CONSUMER_LAG = Gauge(
    "spark_cep_consumer_lag_records",
    "Records in the partition that are not read yet.",
    "records",
    ("topic", "partition"),
)

# Output.
OUTPUT_RECORDS = Counter(
    "spark_cep_output_records_total",
    "Records written, by kind: match, timeout, late, dead_letter.",
    "records",
    ("kind",),
)
PARTITION_WRITES = Counter(
    "spark_cep_partition_writes_total",
    "Outputs of a state partition and batch, by result: committed, or written_before where a batch"
    " was run again.",
    "outputs",
    ("result",),
)
MATCHES = Counter("spark_cep_matches_total", "Matches emitted.", "matches", ("rule",))
TIMEOUTS = Counter(
    "spark_cep_timeouts_total", "Partial matches that timed out.", "timeouts", ("rule",)
)
LATE_EVENTS = Counter(
    "spark_cep_late_events_total",
    "Events whose time had passed, written or dropped as the settings say.",
    "events",
    ("topic",),
)
DEAD_LETTERS = Counter(
    "spark_cep_dead_letters_total",
    "Records or events that could not be processed.",
    "records",
    ("reason",),
)

# Time.
WATERMARK = Gauge(
    "spark_cep_watermark_timestamp_seconds",
    "Event time up to which everything is decided, in seconds since 1970.",
    "seconds",
)
WATERMARK_LAG = Gauge(
    "spark_cep_watermark_lag_seconds", "How far the watermark is behind the clock.", "seconds"
)

# Batches.
BATCHES = Counter(
    "spark_cep_batches_total", "Batches, by result: done, failed.", "batches", ("result",)
)
BATCH_DURATION = Histogram(
    "spark_cep_batch_duration_seconds",
    "Time that whole batches took.",
    "seconds",
    buckets=_BATCH_SECONDS,
)
STAGE_DURATION = Histogram(
    "spark_cep_stage_duration_seconds",
    "Time that parts of batches took: Spark's stages (addBatch, walCommit and others), and the "
    "service's own steps summed over tasks (pack, state, match, encode, write).",
    "seconds",
    ("stage",),
    buckets=_BATCH_SECONDS,
)
LAST_BATCH = Gauge(
    "spark_cep_last_batch_timestamp_seconds",
    "When the last batch ended, in seconds since 1970.",
    "seconds",
)
QUERY_RESTARTS = Counter(
    "spark_cep_query_restarts_total",
    "Times the query was started anew, by reason: new_schema, kafka_away.",
    "restarts",
    ("reason",),
)

# State.
PARTIAL_MATCHES = Gauge(
    "spark_cep_partial_matches", "Live partial matches.", "partial matches", ("rule",)
)
PARTIAL_MATCHES_DROPPED = Counter(
    "spark_cep_partial_matches_dropped_total",
    "Partial matches given up because of a limit.",
    "partial matches",
    ("rule",),
)
STATE_ROWS = Gauge("spark_cep_state_rows", "Rows in the state store.", "rows")
STATE_BYTES = Gauge("spark_cep_state_bytes", "Memory that the state store uses.", "bytes")

# Facts: the value is always 1.
RULES_LOADED = Gauge(
    "spark_cep_rules_loaded_info", "A rule that is running.", "1", ("rule", "version")
)
BUILD = Gauge(
    "spark_cep_build_info",
    "What is running.",
    "1",
    ("version", "python_version", "spark_version"),
)

METRICS: Final[tuple[Metric, ...]] = (
    RECORDS_CONSUMED,
    TOMBSTONES,
    EVENTS_RELEVANT,
    CONSUMER_LAG,
    OUTPUT_RECORDS,
    PARTITION_WRITES,
    MATCHES,
    TIMEOUTS,
    LATE_EVENTS,
    DEAD_LETTERS,
    WATERMARK,
    WATERMARK_LAG,
    BATCHES,
    BATCH_DURATION,
    STAGE_DURATION,
    LAST_BATCH,
    QUERY_RESTARTS,
    PARTIAL_MATCHES,
    PARTIAL_MATCHES_DROPPED,
    STATE_ROWS,
    STATE_BYTES,
    RULES_LOADED,
    BUILD,
)
"""All metrics, in the order of the documentation."""

_HEAD: Final = """\
# Metrics

<!-- Written by `python -m service.observability.metric_names`; change the table there. -->

`/metrics` on `observability.metrics_port` serves these and the `process_` metrics of the driver.
The label `rule` takes at most `observability.max_rule_labels` different values; the rules beyond
are counted together as `other`.

| metric | kind | labels | unit | meaning |
| --- | --- | --- | --- | --- |
"""


def render_reference() -> str:
    """The text of ``docs/metrics.md``."""
    rows = []
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        rows.append(
            f"| `{metric.name}` | {metric.kind} | {labels} | {metric.unit} | {metric.help} |\n"
        )
    return _HEAD + "".join(rows)


if __name__ == "__main__":
    sys.stdout.write(render_reference())
