"""The content of a checkpoint, read through Spark's state data source: no job is started, nothing
is written, and a job may run on it meanwhile.

Buckets are decoded by Spark's tasks; the driver adds up one line for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_cep.config import Settings
from spark_cep.errors import StateError
from spark_cep.packing import pack, unpack
from spark_cep.pipeline.driver.checkpoint.failures import failure
from spark_cep.pipeline.driver.checkpoint.files import CheckpointFiles, Position
from spark_cep.pipeline.spark.session import spark_session
from spark_cep.pipeline.state.ascii_values import bytes_of
from spark_cep.pipeline.state.buckets import possible_buckets
from spark_cep.pipeline.state.entries import CHANGES, PREFIX_LENGTH, base_name
from spark_cep.pipeline.state.group_format import GROUP
from spark_cep.pipeline.state.key_group_labels import MASK
from spark_cep.pipeline.state.key_groups import key_group
from spark_cep.pipeline.state.stored_group import RuleHeld, StoredGroup, earlier

#: Of buckets that a Python worker gets together.
_BYTES_TOGETHER = 4 << 20
_LARGEST = 5


@dataclass(slots=True)
class Size:
    """Numbers of entries. ``bytes`` are of the stored values, before RocksDB's compression."""

    bytes: int = 0
    keys: int = 0
    partial_matches: int = 0
    waiting: int = 0

    def add(self, other: Size) -> None:
        """Add up."""
        self.bytes += other.bytes
        self.keys += other.keys
        self.partial_matches += other.partial_matches
        self.waiting += other.waiting


@dataclass(slots=True)
class RuleReport:
    """A rule's share. ``bytes`` is an estimate: rules of one bucket share its bytes by their
    partial matches."""

    id: str
    version: int
    held: RuleHeld = field(default_factory=RuleHeld)
    bytes: int = 0


@dataclass(slots=True)
class StoredPartialMatch:
    """One partial match of the key that was asked for: step numbers with the coordinates of their
    events, first to last; times in milliseconds; ``places``: the states, or instructions, from
    which it goes on."""

    rule: str
    version: int
    fingerprint: str
    key_group: int
    began: int
    deadline: int
    events: list[tuple[int, str, int, int]]
    places: list[int]


@dataclass(slots=True)
class StateReport:
    """The content of a checkpoint as of its last committed batch. Times are milliseconds."""

    checkpoint: str
    position: Position
    layout: dict[str, int]
    watermark: int
    clock: list[tuple[str, int, int | None]]
    next_due: int | None
    total: Size
    rules: list[RuleReport]
    partitions: dict[int, Size]
    groups: list[tuple[int, int, Size]]
    buckets: list[tuple[int, str, Size]]
    of_key: list[StoredPartialMatch] | None


@dataclass(slots=True)
class KeyReport:
    """The partial matches of one key, as of the last committed ``batch``."""

    batch: int
    watermark: int
    partials: list[StoredPartialMatch]


def read_state(
    settings: Settings,
    key: str | None = None,
    spark: SparkSession | None = None,
) -> StateReport:
    """Read the checkpoint of ``settings``, with the partial matches of ``key`` if one is given, as
    texts of it stand in outputs; ``spark`` is a session to use and to leave running.

    Raises StateError when there is no state, or it is damaged or of another format.
    """
    with committed_state(settings, spark) as (session, location, position):
        return _read(session, location, position, key)


def read_key(settings: Settings, key: str | None, spark: Callable[[], SparkSession]) -> KeyReport:
    """Read the partial matches of ``key`` alone, ``None`` for rules without key, as
    :func:`read_state`, with the session that ``spark`` gives: of a large state one or two buckets
    are decoded.

    Raises as :func:`read_state`.
    """
    # Before the session is there: the first call of a compiled function takes a while.
    buckets = possible_buckets(key)
    with committed_state(settings, spark()) as (session, location, position):
        assert position.committed is not None
        number = key_group(key, position.committed_key_groups)
        wanted = _is_of(F.col("name"), buckets) | (F.col("name") == GROUP)
        entries = stored_entries(session, location, position.committed)
        # One query: the first one, and the first look at the state, take most of the time.
        rows = entries.where((F.col("key_group") == number) & wanted).collect()
        states = [row.value for row in rows if row.name == GROUP]
        if not states:
            raise StateError(f"{location}: the state is empty")
        group = StoredGroup(bytes_of(states[0]))
        bases = group.buckets_of(key)
        names = {each for base in bases for each in (base, base + CHANGES)}
        stored = {
            row.name: group.check(number, row.name, bytes_of(row.value))
            for row in rows
            if row.name in names
        }
        partials = [
            StoredPartialMatch(*each)
            for base in bases
            if base in stored
            for each in _of_key(group, number, stored[base], stored.get(base + CHANGES), key)
        ]
        return KeyReport(position.committed, group.watermark, partials)


def _is_of(name: Column, buckets: Iterable[int]) -> Column:
    """The condition that an entry of this name is of one of these buckets, of any partitioning."""
    bases = [base_name("", bucket) for bucket in buckets]
    ends = [each + more for each in bases for more in ("", CHANGES)]
    return name.substr(PREFIX_LENGTH + 1, max(map(len, ends))).isin(ends)


@contextmanager
def committed_state(
    settings: Settings, spark: SparkSession | None
) -> Iterator[tuple[SparkSession, str, Position]]:
    """A session, ``spark`` or one of its own, the place of a checkpoint, and how far it is. Raises
    StateError where no batch is committed, and for what Spark raises."""
    session = spark or spark_session(settings)
    location = str(settings.state.checkpoint)
    try:
        position = CheckpointFiles(session, location).position()
        if position is None or position.committed is None:
            raise StateError(
                f"{location}: no batch is committed there; is state.checkpoint the right place?"
            )
        yield session, location, position
    except PySparkException as error:
        raise failure(error, location) from error
    finally:
        if spark is None:
            session.stop()


def key_group_of(label: Column) -> Column:
    """The key group of a label. No text, also of a type: Spark's parser takes half a second to
    load."""
    return label.bitwiseAND(MASK)


def stored_watermark(spark: SparkSession, location: str, batch: int) -> int:
    """The watermark at the end of a committed batch, in milliseconds; all key groups have the same.
    Raises as :func:`read_state`."""
    entries = stored_entries(spark, location, batch)
    found = entries.where(F.col("name") == GROUP).first()
    if found is None:
        raise StateError(f"{location}: the state is empty")
    return StoredGroup(bytes_of(found.value)).watermark


def stored_entries(spark: SparkSession, location: str, batch: int) -> DataFrame:
    """The entries of all key groups as they were at the end of a batch: ``key_group``,
    ``partition_id``, ``name``, ``value``. Raises StateError when they are of another job."""
    options = {"path": location, "stateVarName": "entries", "batchId": str(batch)}
    state = spark.read.format("statestore").options(**options).load()
    if "label" not in state.select("key.*").columns:
        raise StateError(
            f"{location} is of another job or of another version of the service:"
            " read it with the version that wrote it"
        )
    return state.select(
        key_group_of(F.col("key.label")).alias("key_group"),
        F.col("partition_id"),
        F.col("user_map_key.name").alias("name"),
        F.col("user_map_value.value").alias("value"),
    )


def _read(spark: SparkSession, location: str, position: Position, key: str | None) -> StateReport:
    spark = spark.newSession()
    # Unlike those of the job, rows are as large as buckets are.
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(_BYTES_TOGETHER))

    assert position.committed is not None
    entries = stored_entries(spark, location, position.committed)
    is_group, beside = F.col("name") == GROUP, F.col("name").endswith(CHANGES)
    groups = entries.where(is_group).select(
        "key_group", "partition_id", F.col("value").alias("state")
    )
    changes = entries.where(beside).select(
        "key_group",
        F.expr(f"left(name, length(name) - {len(CHANGES)})").alias("name"),
        F.col("value").alias("changes"),
    )
    buckets = (
        entries.where(~(beside | is_group))
        .select("key_group", "name", F.col("value").alias("bucket"))
        .join(changes, ["key_group", "name"], "left")
        .join(groups.drop("partition_id"), "key_group")
    )
    stored = {row.key_group: row for row in groups.collect()}
    if not stored:
        raise StateError(f"{location}: the state is empty")
    values = {number: bytes_of(row.state) for number, row in stored.items()}
    decoded = {number: StoredGroup(value) for number, value in values.items()}
    lines = buckets.mapInArrow(_BucketReader(key), "line BINARY").collect()
    first = decoded[min(decoded)]
    report = StateReport(
        checkpoint=location,
        position=position,
        layout=first.layout | {"buckets": sum(group.buckets for group in decoded.values())},
        watermark=first.watermark,
        clock=sorted(first.clock, key=lambda part: part[:2]),
        next_due=None,
        total=Size(),
        rules=[],
        partitions={number: Size() for number in range(position.committed_partitions)},
        groups=[],
        buckets=[],
        of_key=None if key is None else [],
    )
    sizes = {number: Size(len(value)) for number, value in values.items()}
    rules = {
        rule.fingerprint: RuleReport(rule.id, rule.version)
        for group in decoded.values()
        for rule in group.rules
    }
    for line in lines:
        number, name, size, shares, partials = unpack(bytes(line[0]))
        bucket = Size(*size)
        sizes[number].add(bucket)
        report.buckets.append((number, name, bucket))
        for fingerprint, values in shares.items():
            held = RuleHeld(*values)
            rules[fingerprint].held.add(held)
            rules[fingerprint].bytes += (
                bucket.bytes * held.partial_matches // max(1, bucket.partial_matches)
            )
        if report.of_key is not None:
            report.of_key += [StoredPartialMatch(*each) for each in partials]
    for number, size in sizes.items():
        partition = stored[number].partition_id
        report.total.add(size)
        report.partitions[partition].add(size)
        report.groups.append((number, partition, size))
        report.next_due = earlier(report.next_due, decoded[number].next_due)
    report.rules = sorted(rules.values(), key=lambda rule: (rule.id, rule.version))
    report.groups = sorted(report.groups, key=lambda group: -group[2].bytes)[:_LARGEST]
    report.buckets = sorted(report.buckets, key=lambda bucket: -bucket[2].bytes)[:_LARGEST]
    return report


@dataclass(frozen=True)
class _BucketReader:
    """A line for each bucket: key group, name, size, shares of the rules, and, if they are asked
    for, the partial matches of a key."""

    key: str | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = batch.to_pylist()
            # A group's value knows all its entries, of which there may be many.
            groups = {row["key_group"]: row["state"] for row in rows}
            known = {number: StoredGroup(bytes_of(state)) for number, state in groups.items()}
            lines = [self._line(known[row["key_group"]], row) for row in rows]
            yield pa.RecordBatch.from_pydict({"line": pa.array(lines, pa.binary())})

    def _line(self, group: StoredGroup, row: dict[str, Any]) -> bytes:
        stored = 0
        for column, name in (("bucket", row["name"]), ("changes", row["name"] + CHANGES)):
            if row[column] is not None:
                value = bytes_of(row[column])
                stored += len(value)
                row[column] = group.check(row["key_group"], name, value)
        held = group.bucket(row["bucket"], row["changes"])
        partials = sum(rule.partial_matches for rule in held.rules.values())
        size = [stored, held.keys, partials, held.waiting]
        shares = {fingerprint: rule.packed() for fingerprint, rule in held.rules.items()}
        of_key: list[list[Any]] = []
        if self.key is not None:
            blocks = row["bucket"], row["changes"]
            of_key = list(_of_key(group, row["key_group"], *blocks, self.key))
        return pack([row["key_group"], row["name"], size, shares, of_key])


def _of_key(
    group: StoredGroup, number: int, base: bytes, changes: bytes | None, key: str | None
) -> Iterator[list[Any]]:
    """The fields of the partial matches of a key that a bucket of key group ``number`` holds."""
    for rule, began, deadline, events, places in group.of_key(base, changes, key):
        taken = [[step, *at] for step, at in events]
        yield [rule.id, rule.version, rule.fingerprint, number, began, deadline, taken, places]
