"""The naive reference of the decoder: one record after the other, by fastavro and ``bind``."""

from __future__ import annotations

import base64
import datetime as dt
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from io import BytesIO
from itertools import groupby
from typing import Any, NamedTuple

import fastavro
import numpy as np
import pyarrow as pa

from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.avro.schema_nodes import Node, kind
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.codecs.registry.framing import FramingError, prefixed
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas
from spark_cep.columns.loops.text_hash import SEED, text_hash
from spark_cep.columns.vectors import Bytes, reader
from spark_cep.compiler.plan import Plan
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Condition, Partitioning, RuleSetPlan
from spark_cep.compiler.slot_types import slot_type
from spark_cep.event_times import FIRST_TIME, KAFKA_TIMESTAMP, LAST_TIME
from spark_cep.matcher.batch.events import SlotType
from spark_cep.pattern.expressions import ColumnPath, Expression, bind
from spark_cep.pattern.expressions.canonical import expression as expression_of
from spark_cep.pattern.expressions.structure import with_columns_of
from spark_cep.pattern.expressions.values.casting import caster
from spark_cep.pattern.types import BIGINT, DOUBLE, STRING, RecordType, scalar_type
from spark_cep.pipeline.decode.decoder import TIME_TEXT, Decoded, Decoder
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions, decoder_for, record_types
from spark_cep.pipeline.match.event_columns import vector_of
from spark_cep.pipeline.read.records import KafkaRecords
from spark_cep.pipeline.wire.event_packets import MICROS_COLUMN, conditions_column
from spark_cep.pipeline.wire.masks import distinct_masks
from tests.e2e.poison import without_logical_types
from tests.reference.key_text import key_text

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_UNITS = {"date": "days", "millis": "milliseconds", "micros": "microseconds"}


class Kafka(NamedTuple):
    """A record as Kafka has it; ``headers`` as JSON."""

    topic: str
    partition: int
    offset: int
    time: int
    key: bytes | None
    value: bytes | None
    headers: str | None = None


class Setting(NamedTuple):
    """A plan, what it reads, and how."""

    plan: RuleSetPlan
    catalogue: ResolvedSchemas
    options: DecodeOptions

    @property
    def decoder(self) -> Decoder:
        """Its decoder."""
        return decoder_for(self.plan, self.catalogue, self.options)


def kafka_records(records: Sequence[Kafka], size: int = 400) -> list[KafkaRecords]:
    """Records as they are read: of one partition, so many together."""
    made = []
    for (topic, partition), each in groupby(records, lambda one: (one.topic, one.partition)):
        several = list(each)
        made += [
            _together(topic, partition, several[start : start + size])
            for start in range(0, len(several), size)
        ]
    return made


def _together(topic: str, partition: int, records: Sequence[Kafka]) -> KafkaRecords:
    return KafkaRecords(
        topic,
        partition,
        np.array([one.offset for one in records], np.int64),
        np.array([one.time for one in records], np.int64),
        Bytes.of([one.value for one in records]),
        Bytes.of([one.key for one in records]),
        Bytes.of([None if one.headers is None else packed(one.headers) for one in records]),
    )


def packed(headers: str) -> bytes:
    """Headers, in JSON, as they are read."""
    made = b""
    for each in json.loads(headers):
        name = each["key"].encode()
        made += struct.pack("<i", len(name)) + name
        if "value" in each:
            value = base64.b64decode(each["value"])
            made += struct.pack("<i", len(value)) + value
        else:
            made += struct.pack("<i", -1)
    return made


def read(decoder: Decoder, records: Sequence[Kafka], latest: int | None = None) -> Decoded:
    """What a decoder makes of records."""
    made = [decoder.read(each, latest) for each in kafka_records(records)]
    return Decoded(
        [tally for each in made for tally in each.tallies],
        pa.concat_batches([each.rows for each in made]),
        [letter for each in made for letter in each.failures],
    )


def decoded(setting: Setting, records: Sequence[Kafka]) -> dict[int, dict[str, Any]]:
    """The decoder's rows by offset, with sets of conditions as one number and slots as values."""
    rows = read(setting.decoder, records).rows
    types = record_types(setting.catalogue)
    columns = {name: rows.column(name).to_pylist() for name in rows.schema.names}
    columns.setdefault(MICROS_COLUMN, [0] * rows.num_rows)
    columns.setdefault(TIME_TEXT, [None] * rows.num_rows)
    for p, part in enumerate(setting.plan.partitionings):
        del columns[conditions_column(p)]
        masks, places = distinct_masks(rows.column(conditions_column(p)))
        columns[f"mask_{p}"] = [masks[place] for place in places]
        for s, slot in enumerate(part.slots):
            name = f"slot_{p}_{s}"
            kind = slot_type(slot, types)
            value = reader(vector_of(rows.column(name), SlotType(name, kind)), kind)
            columns[name] = [value(row) for row in range(rows.num_rows)]
    listed = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {row["offset"]: row for row in listed}


def expected(setting: Setting, records: Sequence[Kafka]) -> dict[int, dict[str, Any]]:
    """The rows that it should make of sound records."""
    reference = _Reference(setting)
    rows = ((record.offset, reference.row(record)) for record in records)
    return {offset: row for offset, row in rows if row is not None}


class _Reference:
    def __init__(self, setting: Setting) -> None:
        self._plan, self._catalogue, self._options = setting
        self._types = record_types(self._catalogue)

    def row(self, record: Kafka) -> dict[str, Any] | None:
        fault, event_type, event = self._read(record)
        if fault in (Fault.TOMBSTONE, Fault.NOT_READ):
            return None
        time, micros, text = None, 0, None
        if fault is Fault.NONE:
            assert event_type is not None
            fine = self._time(event_type, event, record)
            if fine is not None:
                time, micros = divmod(fine, 1_000)
            ahead = self._options.max_ahead_ms
            if time is None:
                found_time = column(event, tuple(event_type.event_time.split(".")))
                text = found_time if isinstance(found_time, str) else None
                fault = Fault.MISSING_TIME if text is None else Fault.UNREADABLE_TIME
            elif not FIRST_TIME <= time <= LAST_TIME or (
                ahead is not None and record.time >= 0 and time > record.time + ahead
            ):
                fault, time, micros = Fault.TIME_OUT_OF_BOUNDS, None, 0
        row: dict[str, Any] = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "kafka_time": record.time,
            "size": len(record.key or b"") + len(record.value or b""),
            "time": time,
            MICROS_COLUMN: micros,
            TIME_TEXT: text,
            "event_type": -1 if event_type is None else event_type.number,
        }
        timed = fault is Fault.NONE
        keep_any = relevant_any = False
        for p, part in enumerate(self._plan.partitionings):
            found = {f"key_{p}": None, f"group_{p}": None, f"mask_{p}": 0}
            found |= {f"slot_{p}_{s}": None for s in range(len(part.slots))}
            if timed:
                assert event_type is not None
                unkeyed, missed, keep, relevant, of_part = self._of_part(p, part, event_type, event)
                keep_any, relevant_any = keep_any or keep, relevant_any or relevant
                if unkeyed and missed:
                    fault = Fault.MISSING_KEY
                if keep and not (unkeyed and not part.takes_null(event_type.input)):
                    found |= of_part
            row |= found
        judged = fault > Fault.NOT_READ
        if not (judged or keep_any):
            return None
        whole = judged or relevant_any
        return row | {
            "fault": int(fault),
            "record_key": record.key if whole else None,
            "value": record.value if whole else None,
            "headers": record.headers if whole else None,
        }

    def _read(self, record: Kafka) -> tuple[Fault, EventType | None, dict[str, Any]]:
        if record.value is None:
            return Fault.TOMBSTONE, None, {}
        try:
            schema_id = prefixed(record.value).schema
        except FramingError:
            return Fault.NOT_FRAMED, None, {}
        if schema_id in self._catalogue.unreadable:
            return Fault.UNREADABLE_SCHEMA, None, {}
        if schema_id not in self._catalogue.writers:
            return Fault.UNKNOWN_SCHEMA, None, {}
        writers = self._catalogue.writers[schema_id]
        body = record.value[5:]
        branch = None
        if writers[0].branch is not None:
            branch, body = body[0] >> 1, body[1:]
        for writer in writers:
            if writer.branch != branch or writer.type is None:
                continue
            event_type = self._catalogue.types[writer.type]
            if record.topic not in event_type.topics:
                continue
            root = writer.schema.root
            if isinstance(root, list):
                assert branch is not None
                root = root[branch]
            written = AvroSchema("", root, writer.schema.named)
            datum: Any = fastavro.schemaless_reader(
                BytesIO(body), _plain(written.text), _plain(event_type.readable.text)
            )
            event = sql_value(event_type.readable, event_type.readable.root, datum)
            return Fault.NONE, event_type, event
        return Fault.NOT_READ, None, {}

    @staticmethod
    def _time(event_type: EventType, event: Mapping[str, Any], record: Kafka) -> int | None:
        """Microseconds since 1970."""
        if event_type.event_time == KAFKA_TIMESTAMP:
            return record.time * 1_000
        value = column(event, tuple(event_type.event_time.split(".")))
        if isinstance(value, dt.datetime):
            return (value - EPOCH) // dt.timedelta(microseconds=1)
        whole: int | None = None if value is None else caster(BIGINT)(value)
        if whole is None:
            return None
        scale = {"seconds": 1_000_000, "micros": 1}
        return whole * scale.get(event_type.event_time_unit, 1_000)

    def _of_part(
        self, p: int, part: Partitioning, event_type: EventType, event: Mapping[str, Any]
    ) -> tuple[bool, bool, bool, bool, dict[str, Any]]:
        mask = sum(
            1 << n for n, each in enumerate(part.conditions) if holds(each, event_type, event)
        )
        parts = [evaluated(each, event_type.columns, event) for each in part.key]
        texts = [None if value is None else caster(STRING)(value) for value in parts]
        key = None
        if texts:
            key = texts[0] if len(texts) == 1 else key_text(texts)
        hashed = SEED
        if key is not None:
            data = np.frombuffer(key.encode() or b"\0", np.uint8)
            hashed = int(np.uint64(text_hash(data, 0, len(key.encode()))).astype(np.int64))
        slots = {}
        for s, slot in enumerate(part.slots):
            one = RecordTypes((self._types.known[event_type.number],))
            mine = one.of(slot.events, slot.of_type) is not None
            slots[f"slot_{p}_{s}"] = column(event, slot.path) if mine else None
        wanting = [
            rule
            for rule in part.rules
            if mask >> rule.input_bit & 1
            and rule.plan.relevant.evaluate(
                sum(1 << i for i, bit in enumerate(rule.bits) if mask >> bit & 1)
            )
        ]
        keep, relevant = bool(list(part.touched(mask))) or bool(wanting), bool(wanting)
        if self._options.keep_all:
            keep = relevant = part.reads(event_type.input)
        found = {
            f"key_{p}": key,
            f"group_{p}": hashed % self._options.key_groups,
            f"mask_{p}": mask,
            **slots,
        }
        missed = any(isinstance(rule.plan, Plan) for rule in wanting)
        return None in texts, missed, keep, relevant, found


def holds(condition: Condition, event_type: EventType, event: Mapping[str, Any]) -> bool:
    """The condition, computed by the core."""
    if condition.events and event_type.input not in condition.events:
        return False
    names = (None, event_type.name, event_type.name.rpartition(".")[2])
    if condition.of_type not in names:
        return False
    if condition.expression is None:
        return True
    return evaluated(condition.expression, event_type.columns, event) is True


def evaluated(expression: Expression, columns: RecordType, event: Mapping[str, Any]) -> Any:
    """An expression over one event."""
    paths, value = _bound(expression, columns)
    return value([column(event, path) for path in paths], ())


@lru_cache
def _plain(schema: str) -> Any:
    return without_logical_types(json.loads(schema))


_BOUND: dict[Any, tuple[list[ColumnPath], Callable[..., Any], RecordType]] = {}


def _bound(
    expression: Expression, columns: RecordType
) -> tuple[list[ColumnPath], Callable[..., Any]]:
    key = expression, id(columns)
    if key not in _BOUND:
        mine = expression_of(with_columns_of(expression.node, columns))
        paths = sorted(mine.columns)
        value = bind(mine, {path: n for n, path in enumerate(paths)}, {}, columns)
        # With the type, whose id is no other's so.
        _BOUND[key] = paths, value, columns
    return _BOUND[key][:2]


def column(event: Any, path: ColumnPath) -> Any:
    """The value of a column."""
    for part in path:
        event = None if event is None else event.get(part)
    return event


def sql_value(schema: AvroSchema, node: Node, value: Any) -> Any:
    """A value that fastavro read without logical types, as expressions see it."""
    definition = schema.resolve(node)
    if value is None:
        return None
    if isinstance(definition, list):
        return _of_union(schema, definition, value)
    if isinstance(definition, dict):
        match definition["type"]:
            case "record":
                return {
                    f["name"]: sql_value(schema, f["type"], value.get(f["name"], f.get("default")))
                    for f in definition["fields"]
                }
            case "array":
                return [sql_value(schema, definition["items"], item) for item in value]
            case "map":
                return {k: sql_value(schema, definition["values"], v) for k, v in value.items()}
        logical = definition.get("logicalType")
        if logical == "decimal":
            unscaled = int.from_bytes(value, "big", signed=True)
            return Decimal(
                (
                    int(unscaled < 0),
                    tuple(map(int, str(abs(unscaled)))),
                    -definition.get("scale", 0),
                )
            )
        unit = _UNITS.get(str(logical).rpartition("-")[2])
        if unit is not None:
            epoch = EPOCH.replace(tzinfo=None) if str(logical).startswith("local") else EPOCH
            try:
                return (EPOCH.date() if unit == "days" else epoch) + dt.timedelta(**{unit: value})
            except OverflowError:
                return None  # not looked at, or the record would be a dead letter
    if kind(definition) == "bytes" and isinstance(value, str):
        return value.encode("latin-1")  # a default
    if kind(definition) == "float":
        return float(np.float32(value))
    return float(value) if scalar_type(definition) == DOUBLE else value


def _of_union(schema: AvroSchema, union: list[Node], value: Any) -> Any:
    others = [branch for branch in union if branch != "null"]
    if len(others) == 1 or set(map(str, others)) == {"int", "long"}:
        return sql_value(schema, others[0], value)
    python = {"string": str, "int": int, "fixed": bytes, "record": dict, "array": list}
    fitting = [
        n
        for n, branch in enumerate(others)
        if isinstance(value, python[kind(schema.resolve(branch))])
    ]
    members = {f"member{n}": None for n in range(len(others))}
    return members | {f"member{fitting[0]}": sql_value(schema, others[fitting[0]], value)}
