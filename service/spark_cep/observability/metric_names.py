"""Every metric of the service: a closed, typed list; there are no others.

Names follow Prometheus: the prefix ``spark_cep_``, base units, ``_total`` for counters, ``_info``
for facts. No label takes event keys or anything else without bound; the label ``rule`` is capped by
``spark_cep.observability.metrics``. All are counted on the driver, from the reports of committed
batches: there is nothing to scrape on executors. ``metrics_page`` writes ``docs/metrics.md`` from
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, eq=False)
class Metric:
    """One metric; its name has the unit. ``labels`` have the values that each can have, where these
    are a closed set (a mapping explains them), else ``None``."""

    name: str
    help: str
    labels: Mapping[str, Sequence[str] | Mapping[str, str] | None] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The type that Prometheus knows it by."""
        return type(self).__name__.lower()


@dataclass(frozen=True, eq=False)
class Counter(Metric):
    """Only ever goes up."""


@dataclass(frozen=True, eq=False)
class Gauge(Metric):
    """Goes up and down."""


@dataclass(frozen=True, eq=False)
class Histogram(Metric):
    """Counts observations by size."""

    buckets: tuple[float, ...] = ()


_BATCH_SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_STAGE_SECONDS: Final = (0.001, 0.005, 0.025, *_BATCH_SECONDS)
_LATENCY_SECONDS: Final = (
    0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0
)  # fmt: skip

KINDS: Final = ("match", "match_row", "timeout", "late", "dead_letter", "shadow")
"""Kinds of output."""

PHASES: Final = {
    "latest_offset": "asking Kafka for the newest offsets",
    "get_batch": "handing out what the batch reads",
    "planning": "Spark's planning",
    "wal_commit": "writing the offset log",
    "run": "running the tasks until the output is committed",
    "commit_offsets": "writing the commit log, after the batch is done",
    "other": "the rest of the batch",
}
"""Phases of a batch, one after another."""

STAGES: Final = {
    "source": "reading Kafka, and the way to Python",
    "decode": "decoding and conditions",
    "pack": "rows to packets by key group",
    "shuffle": "what the matcher waited for its packets: the shuffle, and their way to Python; in a"
    " batch of one stage, also until they were made",
    "state_read": "reading key groups and buckets",
    "match": "order, rules, deadlines",
    "encode": "matches, their rows and timeouts to output records",
    "state_write": "writing key groups and buckets",
    "state_commit": "Spark's commit of the state",
    "sink": "records to Kafka, until they are committed",
}
"""Stages of the data's way."""

ROCKSDB_PHASES: Final = {
    "load": "loading the state of the batch before",
    "flush": "flushing, where a snapshot is made",
    "compact": "compacting, where it is asked for",
    "checkpoint": "RocksDB's own checkpoint of a snapshot",
    "file_sync": "copying files to the checkpoint",
    "changelog": "writing the log of changes to the checkpoint",
}
"""What RocksDB does for a batch."""

PROCESSES: Final = {
    "driver_python": "the driver's Python",
    "driver_jvm": "the driver's JVM, which with a local master is the executor too",
    "executor_jvm": "JVMs of executors on the host, together",
    "python_workers": "Python workers on the host, together",
}
"""Processes by what they are."""

# Labels whose values are no closed set.
_TOPIC: Final = {"topic": None}
_PARTITION: Final = {"topic": None, "partition": None}
_RULE: Final = {"rule": None}
_VERSION: Final = {"rule": None, "version": None}

# Input.
RECORDS_CONSUMED = Counter(
    "spark_cep_records_consumed_total", "Records read from input topics.", _TOPIC
)
BYTES_CONSUMED = Counter(
    "spark_cep_consumed_bytes_total",
    "Bytes of keys and values of records read, uncompressed.",
    _TOPIC,
)
TOMBSTONES = Counter("spark_cep_tombstones_total", "Records without a value, passed over.", _TOPIC)
RECORDS_LOST = Counter(
    "spark_cep_records_lost_total",
    "Offsets passed over, with source.fail_on_data_loss off: Kafka had deleted their records "
    "before they were read. Fewer records where compaction or transactions had left gaps.",
    _TOPIC,
)
EVENTS_RELEVANT = Counter(
    "spark_cep_events_relevant_total",
    "Events that went on to the matcher: some rule could use them, or must know that they came.",
)
CONSUMER_LAG = Gauge(
    "spark_cep_consumer_lag_records",
    "Records in the partition that are not read yet; absent while Kafka does not answer.",
    _PARTITION,
)
CONSUMER_LAG_SECONDS = Gauge(
    "spark_cep_consumer_lag_seconds",
    "Age of the newest record read, by its Kafka timestamp, where the partition has unread ones; 0 "
    "where all are read, absent before the first record and while Kafka does not answer.",
    _PARTITION,
)
OFFSET_COMMITS = Counter(
    "spark_cep_offset_commits_total",
    "Commits of a batch's offsets to Kafka, as those of the consumer group.",
    {"result": ("done", "failed")},
)

# Output.
OUTPUT_RECORDS = Counter(
    "spark_cep_output_records_total",
    "Records written, by kind and topic.",
    {"kind": KINDS, "topic": None},
)
OUTPUT_BYTES = Counter(
    "spark_cep_output_bytes_total",
    "Bytes of keys and values written, uncompressed, by kind and topic.",
    {"kind": KINDS, "topic": None},
)
PARTITION_WRITES = Counter(
    "spark_cep_partition_writes_total",
    "Outputs of a state partition and batch: committed, or written_before if the batch ran again.",
    {"result": ("committed", "written_before")},
)
LATE_EVENTS = Counter(
    "spark_cep_late_events_total",
    "Events whose time had passed, written or dropped as the settings say.",
    _TOPIC,
)
DEAD_LETTERS = Counter(
    "spark_cep_dead_letters_total",
    "Records or events that could not be processed.",
    {"reason": None},
)

# Latency.
MATCH_LATENCY = Histogram(
    "spark_cep_match_latency_seconds",
    "From a match's event time to its commit; includes the allowed disorder. To 3 %.",
    buckets=_LATENCY_SECONDS,
)
DECISION_LATENCY = Histogram(
    "spark_cep_decision_latency_seconds",
    "Match latency less the allowed disorder and less the delay with which events of the match's "
    "batch came to Kafka: from when the watermark could pass the match's event time to its commit.",
    buckets=_LATENCY_SECONDS,
)

# Time.
WATERMARK = Gauge(
    "spark_cep_watermark_timestamp_seconds",
    "Event time up to which everything is decided, in seconds since 1970.",
)
WATERMARK_LAG = Gauge(
    "spark_cep_watermark_lag_seconds",
    "How far the watermark is behind the clock; NaN before there is a watermark.",
)
WATERMARK_AHEAD = Gauge(
    "spark_cep_watermark_ahead_seconds",
    "How far the watermark is ahead of the clock, so that events of now are late; NaN before there "
    "is a watermark.",
)
EVENTS_WAITING = Gauge(
    "spark_cep_events_waiting",
    "Events read that wait for the watermark, since the last batch; one that rules with different "
    "keys read counts for each key.",
)
WATERMARK_UNMOVED = Gauge(
    "spark_cep_watermark_unmoved_seconds",
    "How long events have waited while the watermark did not move; 0 when none waits.",
)
WATERMARK_HELD = Gauge(
    "spark_cep_watermark_held_info",
    "A partition that holds the watermark back, which has not moved for five seconds while events "
    "wait: one that is waited for, and has the oldest newest event, or none yet.",
    _PARTITION,
)
NEWEST_EVENT = Gauge(
    "spark_cep_newest_event_timestamp_seconds",
    "Largest event time read from the partition, in seconds since 1970: the smallest of them holds "
    "the watermark back.",
    _PARTITION,
)

# Batches.
BATCHES = Counter(
    "spark_cep_batches_total",
    "Batches: done, or failed without remedy.",
    {"result": ("done", "failed")},
)
BATCH_DURATION = Histogram(
    "spark_cep_batch_duration_seconds",
    "Time that batches took, from the first task to the committed output.",
    buckets=_BATCH_SECONDS,
)
BATCH_PHASE_DURATION = Histogram(
    "spark_cep_batch_phase_duration_seconds",
    "Time that phases of a batch took by the driver's clock; together they are the whole batch.",
    {"phase": PHASES},
    buckets=_STAGE_SECONDS,
)
STAGE_DURATION = Histogram(
    "spark_cep_stage_duration_seconds",
    "Time that stages of the data's way took, summed over the tasks of a batch.",
    {"stage": STAGES},
    buckets=_STAGE_SECONDS,
)
BATCH_RUNNING = Gauge(
    "spark_cep_batch_running_seconds",
    "How long the batch in flight has been running; 0 between batches.",
)
LAST_BATCH = Gauge(
    "spark_cep_last_batch_timestamp_seconds", "When the last batch ended, in seconds since 1970."
)
QUERY_RESTARTS = Counter(
    "spark_cep_query_restarts_total",
    "Times the query was restarted, by reason: new_schema, kafka_unavailable, source_process_lost,"
    " executor_lost.",
    {"reason": ("new_schema", "kafka_unavailable", "source_process_lost", "executor_lost")},
)

# State.
STATE_ROWS = Gauge("spark_cep_state_rows", "Rows in the state store.")
STATE_BYTES = Gauge("spark_cep_state_bytes", "Memory that the state store uses.")
STATE_FILE_BYTES = Gauge(
    "spark_cep_state_file_bytes", "Size of RocksDB's table files on local disks."
)
STATE_ROWS_UPDATED = Counter(
    "spark_cep_state_rows_updated_total", "Rows written to the state store."
)
STATE_ROWS_REMOVED = Counter(
    "spark_cep_state_rows_removed_total", "Rows removed from the state store."
)
CHECKPOINT_DISK = Gauge(
    "spark_cep_checkpoint_disk_bytes",
    "Room on the disk of a checkpoint in a local folder: free for the service, and in all.",
    {"area": ("free", "size")},
)
ROCKSDB_DURATION = Histogram(
    "spark_cep_rocksdb_duration_seconds",
    "Time of RocksDB's phases, summed over the partitions of a batch.",
    {"phase": ROCKSDB_PHASES},
    buckets=_STAGE_SECONDS,
)
ROCKSDB_BYTES = Counter(
    "spark_cep_rocksdb_bytes_total",
    "Bytes that RocksDB read and wrote, and that were copied to the checkpoint.",
    {"direction": ("read", "written", "copied")},
)
ROCKSDB_BLOCK_CACHE = Counter(
    "spark_cep_rocksdb_block_cache_reads_total",
    "Reads of RocksDB's block cache.",
    {"result": ("hit", "miss")},
)

# Rules.
RULE_EVENTS = Counter(
    "spark_cep_rule_events_total",
    "Events tested for the rule: those on which some condition of it can be true, or, under strict "
    "contiguity and in SQL, all of its inputs with its key.",
    _RULE,
)
PARTIAL_MATCHES_STARTED = Counter(
    "spark_cep_partial_matches_started_total",
    "Partial matches begun; rules in SQL do not count them.",
    _RULE,
)
PARTIAL_MATCHES = Gauge("spark_cep_partial_matches", "Live partial matches.", _RULE)
MATCHES = Counter("spark_cep_matches_total", "Matches emitted.", _RULE)
MATCH_ROWS = Counter(
    "spark_cep_match_rows_total", "Rows emitted, of rules in SQL with ALL ROWS PER MATCH.", _RULE
)
TIMEOUTS = Counter("spark_cep_timeouts_total", "Partial matches that timed out.", _RULE)
PARTIAL_MATCHES_PRUNED = Counter(
    "spark_cep_partial_matches_pruned_total",
    "Partial and complete matches that the skip strategy gave up for an earlier match; rules in "
    "SQL do not count them.",
    _RULE,
)
PARTIAL_MATCHES_DROPPED = Counter(
    "spark_cep_partial_matches_dropped_total",
    "Partial matches given up because of a limit: the rule's own, or that of versions that drain.",
    _RULE,
)
MATCHES_DROPPED = Counter(
    "spark_cep_matches_dropped_total",
    "Matches given up because one event completed more of its key than the rule's limit.",
    _RULE,
)
RULE_ERRORS = Counter(
    "spark_cep_rule_errors_total",
    "Dead letters of the rule's own making, by reason.",
    {"rule": None, "reason": None},
)
RULE_PROCESSING = Counter(
    "spark_cep_rule_processing_seconds_total",
    "Time of the matcher, summed over tasks: that of a key group and batch, shared out to "
    "its rules by tests (partial matches that an event met, and the one it might begin), matches "
    "and timeouts. An estimate: one loop runs all rules, and each test is taken to cost the same.",
    _RULE,
)
RULES_LOADED = Gauge("spark_cep_rules_loaded_info", "A rule that is running.", _VERSION)
RULES_REJECTED = Gauge(
    "spark_cep_rules_rejected_info",
    "A rule, or file of rules, that is wrong and does not run; the version before it does, if any.",
    {"source": None, "rule": None},
)
RULES_READ = Gauge(
    "spark_cep_rules_last_refresh_successful",
    "1 if the last read of the rules' source succeeded, else 0: the rules that run go on.",
)
RULE_SET = Gauge(
    "spark_cep_rule_set_number",
    "Number of the rule set that the last committed batch ran under; counted in the checkpoint.",
)
RULE_PAUSED = Gauge(
    "spark_cep_rule_paused_info",
    "A rule that the circuit breaker or an operator has paused.",
    _VERSION,
)

# The process and its parts.
READY = Gauge("spark_cep_ready", "1 while /readyz says yes, else 0.")
MEMORY = Gauge(
    "spark_cep_memory_bytes",
    "Resident memory, by host and kind of process; of workers as of their last task. Linux only.",
    {"host": None, "process": PROCESSES},
)
JVM_HEAP = Gauge(
    "spark_cep_jvm_heap_bytes",
    "Heap of the driver's JVM: used, and the most that it may use.",
    {"area": ("used", "max")},
)
JVM_DIRECT = Gauge(
    "spark_cep_jvm_direct_bytes",
    "Direct memory of the driver's JVM (Arrow, Netty): used, and the most that each may use.",
    {"area": ("used", "max")},
)
BUILD = Gauge(
    "spark_cep_build_info",
    "What is running; always 1.",
    {"version": None, "python_version": None, "spark_version": None},
)

METRICS: Final = tuple(each for each in tuple(globals().values()) if isinstance(each, Metric))
"""All metrics, in the order of the documentation."""
