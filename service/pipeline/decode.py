"""From Kafka records to one flat row an event, in the JVM.

Each known schema id has its own ``from_avro`` (writer schema to pruned reader schema) behind a
``CASE`` over the id in the Confluent prefix. What cannot go on carries a *fault* and is judged in
Python by :mod:`service.pipeline.pack`; everything else about an event is evaluated here by
generated code: its time, keys, condition bits and slots. Events that no rule can use keep only
their time, which the watermark needs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from service.codecs.avro_schema import AvroSchema
from service.codecs.framing import frame
from service.codecs.reader_schemas import project, record_names
from service.compiler.rule_set import RuleSetPlan
from service.config.topics import KAFKA_TIMESTAMP
from service.pattern.types import TIMESTAMP, column_type, record_type
from service.pipeline.bad_values import bad_value, most_bytes, too_wide
from service.pipeline.catalogue import Catalogue, EventType, Writer
from service.pipeline.columns import (
    TYPE_COLUMN,
    PartitioningSql,
    columns_needed,
    partitioning_sql,
    quoted,
    record_column,
    word,
)
from service.pipeline.crossing import cross
from service.pipeline.record_faults import Fault, Untyped

_SENTINEL = "spark_cep_decoded"
_TO_MILLIS = {
    "auto": "{0}",
    "millis": "{0}",
    "micros": "({0} - pmod({0}, 1000)) div 1000",
    # Beyond the bounds of event time, and without overflow.
    "seconds": (
        "CASE WHEN {0} BETWEEN -1000000000000 AND 1000000000000 THEN {0} * 1000"
        " WHEN {0} > 0 THEN 1000000000000000 WHEN {0} < 0 THEN -1000000000000000 END"
    ),
}
# Spark writes the time at which a batch was planned as a number into the code that it generates,
# and would compile that anew in each batch; the day of that time changes once a day.
_DAY_PLANNED = "unix_date(current_date()) * 86400000L"
#: Bounds of event time, in milliseconds.
FIRST_TIME, LAST_TIME = -62_135_596_800_000, 253_402_300_799_999


@dataclass(frozen=True)
class DecodeOptions:
    """``max_ahead_ms``: how far event time may be ahead of the record's Kafka timestamp, and of
    the time at which the batch was planned, for which :mod:`service.pipeline.pack` looks.
    ``keep_all``: events that no rule can use go on too (for ``late_events: all``). ``topic``: the
    only one that is read, if there is only one."""

    key_groups: int
    max_ahead_ms: int | None
    keep_all: bool
    topic: str | None = None


@dataclass(frozen=True)
class Decoded:
    """The decoded frame and the SQL of its partitionings, in the plan's order."""

    frame: DataFrame
    partitionings: tuple[PartitioningSql, ...]


def decode(
    records: DataFrame, plan: RuleSetPlan, catalogue: Catalogue, options: DecodeOptions
) -> Decoded:
    """One row a record of Kafka's source, as :mod:`service.pipeline.crossing` says.

    Columns of those that are carried: ``topic, partition, offset, time`` (ms, NULL when unknown),
    ``kafka_time, size`` (the record's own: ms, bytes of key and value), ``fault``, ``event_type``,
    ``record_key, value, headers`` (headers as JSON; NULL where nobody needs them),
    and per partitioning *p*: ``key_p, group_p, bits_p_w …, slot_p_s …`` (bits 0 where nothing is
    to be done).
    """
    partitionings = tuple(
        partitioning_sql(number, part, catalogue) for number, part in enumerate(plan.partitionings)
    )
    readers = _pruned(plan, catalogue)
    # All of this is one generated step, as long as Spark compiles each function in it.
    frame = records.select(
        "topic",
        "partition",
        "offset",
        F.unix_millis("timestamp").alias("kafka_time"),
        F.col("key").alias("record_key"),
        "headers",
        "value",
        F.expr("substring(value, 1, 5)").alias("prefix"),
    )
    frame = frame.withColumn(TYPE_COLUMN, _event_type(catalogue))
    for event_type in catalogue.types:
        frame = frame.withColumn(
            record_column(event_type), _record(event_type, readers[event_type.number], catalogue)
        )
        raw = _raw_reader(readers[event_type.number])
        if raw is not None:
            name = f"{record_column(event_type)}_raw"
            frame = frame.withColumn(name, _record(event_type, raw, catalogue))
    frame = frame.withColumn("time", _time(catalogue))
    for part in partitionings:
        for number, sql in enumerate(part.words):
            frame = frame.withColumn(word(part.number, number), F.expr(sql))
        key = F.lit(None).cast("string") if part.key is None else F.expr(part.key)
        frame = frame.withColumn(f"key_{part.number}", key)
    frame = frame.withColumn("fault", _fault(catalogue, readers, partitionings, options))
    return Decoded(_flat(frame, partitionings, options), partitionings)


def _has_id(schema_id: int) -> str:
    """Comparing bytes is much faster than making a number of them."""
    return f"prefix = X'{frame(schema_id, b'').hex()}'"


def _pruned(plan: RuleSetPlan, catalogue: Catalogue) -> dict[int, AvroSchema]:
    """Reader schemas with the columns that rules read, and one that tells a decoded record from a
    broken one: no writer has it, so it has its default, unless nothing could be decoded."""
    needed = zip(catalogue.types, needed_columns(plan, catalogue), strict=True)
    return {t.number: _with_sentinel(project(t.reader, columns)) for t, columns in needed}


def needed_columns(plan: RuleSetPlan, catalogue: Catalogue) -> list[set[str]]:
    """Dotted columns that rules, keys and event time read, of each record type."""
    needed = [set() if t.event_time == KAFKA_TIMESTAMP else {t.event_time} for t in catalogue.types]
    for part in plan.partitionings:
        for number, columns in columns_needed(part, catalogue).items():
            needed[number] |= columns
    return needed


def _with_sentinel(reader: AvroSchema) -> AvroSchema:
    (name,) = record_names(reader)
    record = reader.named[name]
    sentinel = {"name": _SENTINEL, "type": "boolean", "default": True}
    return replace(
        reader, named={**reader.named, name: record | {"fields": [*record["fields"], sentinel]}}
    )


def _event_type(catalogue: Catalogue) -> Column:
    """The number of the record type, or why there is none."""
    framed = "coalesce(length(prefix) = 5 AND prefix < X'01', false)"
    sql = [f"CASE WHEN NOT {framed} THEN {Untyped.NOT_FRAMED:d}"]
    for schema_id, writers in sorted(catalogue.writers.items()):
        for writer in sorted(writers, key=lambda w: w.type is None):
            condition = _has_id(schema_id)
            if writer.branch is not None:
                condition += f" AND {_branch_is(writer.branch)}"
            if writer.type is not None:
                condition += topic_condition(catalogue, catalogue.types[writer.type])
            number = int(Untyped.NOT_READ) if writer.type is None else writer.type
            sql.append(f"WHEN {condition} THEN {number}")
        branches = [_branch_is(w.branch) for w in writers if w.branch is not None]
        if branches and any(w.type is not None for w in writers):
            broken = f"NOT ({' OR '.join(branches)})"
            sql.append(f"WHEN {_has_id(schema_id)} AND {broken} THEN {Untyped.NO_BRANCH:d}")
        sql.append(f"WHEN {_has_id(schema_id)} THEN {Untyped.NOT_READ:d}")
    sql += [f"WHEN {_has_id(i)} THEN {Untyped.UNREADABLE:d}" for i in sorted(catalogue.unreadable)]
    sql.append(f"ELSE {Untyped.UNKNOWN_ID:d} END")
    return F.expr(" ".join(sql)).cast("int")


def topic_condition(catalogue: Catalogue, event_type: EventType) -> str:
    """SQL that the record is in a topic of its type; empty where it is in all topics."""
    everywhere = {topic for t in catalogue.types for topic in t.topics}
    if everywhere <= set(event_type.topics):
        return ""
    return " AND topic IN (" + ", ".join(_literal(t) for t in event_type.topics) + ")"


def _branch_is(branch: int) -> str:
    """The union branch stands in front of the body as a zig-zag varint."""
    number = branch << 1
    encoded = bytearray()
    while number >> 7:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return f"substring(value, 6, {len(encoded)}) = X'{encoded.hex()}'"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _raw_reader(reader: AvroSchema) -> AvroSchema | None:
    """The reader schema with decimals as bytes, where it has any that Spark cuts to 64 bits."""
    if not too_wide("", record_type(reader.text)):
        return None

    def raw(node: Any) -> Any:
        if isinstance(node, dict):
            drop = ("logicalType",) if node.get("logicalType") == "decimal" else ()
            return {name: raw(part) for name, part in node.items() if name not in drop}
        return [raw(part) for part in node] if isinstance(node, list) else node

    return replace(reader, named={name: raw(node) for name, node in reader.named.items()})


def _record(event_type: EventType, reader: AvroSchema, catalogue: Catalogue) -> Column:
    body = F.expr("substring(value, 6)")
    options = {"avroSchema": reader.text, "mode": "PERMISSIVE"}
    chosen: Column | None = None
    writers: list[Writer] = [
        w for ws in catalogue.writers.values() for w in ws if w.type == event_type.number
    ]
    mine = F.col(TYPE_COLUMN) == event_type.number
    for writer in writers:
        condition = mine & F.expr(_has_id(writer.id))
        if (most := most_bytes(writer.schema)) is not None:
            condition &= F.length("value") <= most
        decoded = from_avro(body, writer.schema.text, options)
        chosen = F.when(condition, decoded) if chosen is None else chosen.when(condition, decoded)
    if chosen is None:
        # No writer yet: the column must exist all the same.
        chosen = F.when(F.lit(False), from_avro(body, reader.text, options))
    return chosen


def _time(catalogue: Catalogue) -> Column:
    sql = [f"CASE {TYPE_COLUMN}"]
    for event_type in catalogue.types:
        if event_type.event_time == KAFKA_TIMESTAMP:
            sql.append(f"WHEN {event_type.number} THEN kafka_time")
            continue
        path = tuple(event_type.event_time.split("."))
        column = f"{record_column(event_type)}.{quoted(path)}"
        if column_type(event_type.columns, path) == TIMESTAMP:
            millis = f"unix_millis({column})"
        else:
            millis = _TO_MILLIS[event_type.event_time_unit].format(f"CAST({column} AS BIGINT)")
        sql.append(f"WHEN {event_type.number} THEN {millis}")
    return F.expr(" ".join([*sql, "END"])).cast("long")


def _fault(
    catalogue: Catalogue,
    readers: dict[int, AvroSchema],
    partitionings: tuple[PartitioningSql, ...],
    options: DecodeOptions,
) -> Column:
    sql = [
        f"CASE WHEN value IS NULL THEN {Fault.TOMBSTONE:d}",
        f"WHEN {TYPE_COLUMN} = {Untyped.NOT_FRAMED:d} THEN {Fault.NOT_FRAMED:d}",
        f"WHEN {TYPE_COLUMN} = {Untyped.UNKNOWN_ID:d} THEN {Fault.UNKNOWN_ID:d}",
        f"WHEN {TYPE_COLUMN} = {Untyped.UNREADABLE:d} THEN {Fault.UNREADABLE_SCHEMA:d}",
        f"WHEN {TYPE_COLUMN} = {Untyped.NOT_READ:d} THEN {Fault.NOT_READ:d}",
        f"WHEN {TYPE_COLUMN} = {Untyped.NO_BRANCH:d} THEN {Fault.UNDECODABLE:d}",
    ]
    for schema_id, writers in sorted(catalogue.writers.items()):
        most = most_bytes(writers[0].schema) if writers else None
        if most is not None:
            too_long = f"{_has_id(schema_id)} AND length(value) > {most}"
            sql.append(f"WHEN {too_long} THEN {Fault.TOO_DEEP:d}")
    for event_type in catalogue.types:
        column, mine = record_column(event_type), f"{TYPE_COLUMN} = {event_type.number}"
        nothing = f"{mine} AND {column}.{_SENTINEL} IS NULL"
        sql.append(f"WHEN {nothing} THEN {Fault.UNDECODABLE:d}")
        if bad := bad_value(column, record_type(readers[event_type.number].text)):
            sql.append(f"WHEN {mine} AND ({bad}) THEN {Fault.BAD_VALUE:d}")
        if _raw_reader(readers[event_type.number]) is not None:
            raw = record_type(readers[event_type.number].text)
            if bad := too_wide(f"{column}_raw", raw):
                sql.append(f"WHEN {mine} AND ({bad}) THEN {Fault.BAD_VALUE:d}")
    sql.append(f"WHEN time IS NULL THEN {Fault.MISSING_TIME:d}")
    outside = f"time NOT BETWEEN {FIRST_TIME}L AND {LAST_TIME}L"
    if options.max_ahead_ms is not None:
        ahead = f"{options.max_ahead_ms}L"
        # A record without timestamp has -1.
        outside += f" OR kafka_time >= 0 AND time > kafka_time + {ahead}"
    sql.append(f"WHEN {outside} THEN {Fault.TIME_OUT_OF_BOUNDS:d}")
    for part in partitionings:
        if part.key is not None:
            missing = f"key_{part.number} IS NULL AND ({part.reads})"
            sql.append(f"WHEN {missing} THEN {Fault.MISSING_KEY:d}")
    return F.expr(" ".join([*sql, f"ELSE {Fault.NONE:d} END"])).cast("int")


def _flat(
    frame: DataFrame, partitionings: tuple[PartitioningSql, ...], options: DecodeOptions
) -> DataFrame:
    """Only what the packer needs, and only where it is needed."""
    # Columns of their own: with many rules they are long, and used again and again.
    for part in partitionings:
        keep = part.reads if options.keep_all else part.keep
        frame = frame.withColumns(
            {
                f"keep_{part.number}": F.expr(keep),
                f"relevant_{part.number}": F.expr(part.relevant),
            }
        )
    any_keep = " OR ".join(f"keep_{p.number}" for p in partitionings) or "false"
    if options.keep_all:
        any_keep = f"{TYPE_COLUMN} >= 0"
    any_relevant = " OR ".join(f"relevant_{p.number}" for p in partitionings) or "false"
    needs_value = "any_keep" if options.keep_all else f"({any_relevant})"
    frame = frame.withColumn("any_keep", F.expr(any_keep))
    judged = f"fault > {Fault.NOT_READ:d}"
    if options.max_ahead_ms is not None:
        # Perhaps too far ahead of the time of planning: the packer looks.
        judged = f"({judged} OR time > {_DAY_PLANNED} + {options.max_ahead_ms}L)"
    timed = f"fault IN ({Fault.NONE:d}, {Fault.MISSING_KEY:d})"
    frame = frame.withColumns(
        {
            "time": F.expr(f"IF({timed}, time, NULL)"),
            "size": F.expr("coalesce(length(record_key), 0) + coalesce(length(value), 0)"),
        }
    )
    with_value = f"({judged} OR {needs_value})"
    columns = [
        *map(F.col, ("topic", "partition", "offset", "time", "kafka_time", "size", "fault")),
        F.col(TYPE_COLUMN),
        F.expr(f"IF({with_value}, record_key, NULL)").alias("record_key"),
        F.expr(f"IF({with_value}, value, NULL)").alias("value"),
        # As text: Arrow takes several microseconds a row for an array, even where it is NULL.
        F.expr(f"IF({with_value} AND size(headers) > 0, to_json(headers), NULL)").alias("headers"),
    ]
    for part in partitionings:
        p = part.number
        wanted = f"({timed} AND keep_{p})"
        if part.key is not None:
            # Without its key an event is a dead letter, but only for the rules that have this key.
            wanted = f"({wanted} AND key_{p} IS NOT NULL)"
        columns.append(F.expr(f"IF({wanted}, key_{p}, NULL)").alias(f"key_{p}"))
        group = f"CAST(pmod(xxhash64(key_{p}), {options.key_groups}) AS INT)"
        columns.append(F.expr(f"IF({wanted}, {group}, NULL)").alias(f"group_{p}"))
        for number in range(len(part.words)):
            name = word(p, number)
            columns.append(F.expr(f"IF({wanted}, {name}, 0L)").alias(name))
        for number, slot in enumerate(part.slots):
            columns.append(F.expr(f"IF({wanted}, {slot}, NULL)").alias(f"slot_{p}_{number}"))
    return cross(frame, f"any_keep OR {judged}", columns, options.topic)
