"""The decoder next to the naive reference: the same rows of the same records."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from random import Random
from typing import Any

import fastavro
import pyarrow.compute as pc
import pytest
import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.serializers import CPickleSerializer

from spark_cep.codecs.avro.broken_records import decoding_fault, endless
from spark_cep.codecs.avro.loops.record_bytes import read_records
from spark_cep.codecs.avro.reader_schemas import project
from spark_cep.codecs.avro.resolution import resolves
from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.codecs.registry.framing import frame, prefixed
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas, WriterSchema
from spark_cep.codecs.registry.schema_ids import SchemaId
from spark_cep.columns.loops.byte_loops import copy_bytes
from spark_cep.columns.loops.text_hash import place_hashes
from spark_cep.compiler.rule_set import RuleSetPlan, compile_rules
from spark_cep.errors import SchemaError
from spark_cep.event_times import KAFKA_TIMESTAMP
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.types import column_type
from spark_cep.pipeline.compiled_code import prepare
from spark_cep.pipeline.decode import evaluation
from spark_cep.pipeline.decode.decoder import MOST_FAILURES
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions, check_columns, record_types
from spark_cep.pipeline.decode.packing import Packing
from spark_cep.programs.loops.event_mask_loops import number_texts, set_masks
from tests.e2e import poison
from tests.e2e.schemas import record as avro_record
from tests.pipeline.decode import schemas
from tests.pipeline.decode.reference import Kafka, Setting, decoded, expected, kafka_records, read

RECORDS = 400
FIRST_OFFSET = 2**50
HOUR, NOW_MS = schemas.HOUR, schemas.NOW_MS
UNREADABLE, UNKNOWN = 5, 987_654
PAYMENT, STRANGER, MIXED = 101, 102, 103

CONDITIONS = [
    "kind = 'a'",
    "kind IN ('a', 'ключ', 'k7')",
    "kind <> 'a'",
    "kind = 'a' AND n > 5",
    "kind = 'it''s' OR x < 0.5",
    "k IS NULL",
    "n BETWEEN -3 AND 5",
    "n * 2 + 1 > 7",
    "x / n > 0.25",
    "f = 0.5",
    "ok",
    "seen > TIMESTAMP'2026-01-30 12:00:00'",
    "day < DATE'1970-01-02' OR seen > day",
    "place.city = 'Bonn' AND place.deep.c = 7",
    "other.city IS NULL",
    "other.height > 0.3 AND other.deep.c IS NOT NULL",
    "kind LIKE 'k1%' AND k IS NULL AND n < 9",
    "kind LIKE '%ч' OR k LIKE 'ü%' OR n = 5",
    "kind LIKE '%2%' AND kind LIKE '%k%' AND kind IN ('k2', 'k12', 'k23')",
    "CONTAINS(kind, 'b') OR CONTAINS(kind, '') AND n > 3",
    "mood = 'GOOD'",
    "mood LIKE 'B%' AND n > 1",
    "kind IN ('a', NULL)",
    "1 = 1 AND kind = 'a' AND NULL IS NULL",
    "1 = 2 AND kind = 'a'",
    "true",
    # Evaluated, at least in part.
    "kind LIKE 'k%1_'",
    "UPPER(kind) = 'AB'",
    "UPPER(kind) = 'AB' OR LENGTH(k) > 3",
    "n > 0 AND UPPER(kind) LIKE 'K%' AND LENGTH(kind) = 3",
    "kind < 'b' AND ok",
    "kind = k OR kind > k",
    "STARTSWITH(kind, mood)",
    "amount > 4.99",
    "amount * 2 > n AND fixed IS NOT NULL",
    "fixed = 0.501 OR wide < -0.0001",
    "big > 4999999999 AND big % 2 = 0",
    "number + 1 = 4",
    "SIZE(tags) > 1 AND tags[0] = 'ü'",
    "ARRAY_CONTAINS(tags, kind)",
    "attrs['a'] >= 1 OR attrs['ü'] IS NULL",
    "several.member0 = 'u1' OR several.member1 > 0",
    "several IS NULL OR several.member2 IS NOT NULL",
    "COALESCE(note, 'none') IN ('none', 'unset')",
    "CASE WHEN n > 3 THEN kind ELSE k END = 'k1'",
    "CAST(n AS STRING) = '5'",
    "YEAR(seen) = 2026 AND MONTH(day) > 3",
    "EXISTS(tags, t -> t = kind OR t = k)",
    "kind RLIKE '^k[0-9]$' AND n > 0",
    "seen + INTERVAL '1' HOUR > ts",
]
#: What is asked of both record types; the second one has not all of it.
SHARED = [
    "kind = 'a'",
    "kind IN ('k1', 'k2') AND k IS NOT NULL",
    "n > 3",
    "UPPER(kind) = 'AB' OR at IS NULL",
    "mood = 'GOOD' OR x > 0",
    "x = f",
    "kind RLIKE '2$' OR EXISTS(ARRAY('a', 'b'), t -> t = at)",
    "true",
]
KEYS: list[Any] = [
    "k", "kind", "mood", "n", ["kind", "n", "mood"], None, "UPPER(kind)", "amount", "day",
    ["LOWER(k)", "seen"], "COALESCE(other.city, k)", ["wide", "ok"], "several.member0", "'one'",
]  # fmt: skip
EMITTED = [*schemas.READER, "place.city", "place.deep.c", "other.deep", "other.height",
           "several.member1"]  # fmt: skip
#: Spark's types of event time, and what is evaluated.
TIMES = ["ts", "ts", "seen", KAFKA_TIMESTAMP, "n", "big", "x", "amount", "kind"]
EACH = settings(max_examples=15, derandomize=True, database=None, phases=[Phase.generate])


def rule(name: str, first: str, second: str, **more: Any) -> dict[str, Any]:
    """A rule of two steps."""
    steps = [
        {"step": "one", "where": first},
        {"step": "two", "after": more.pop("after", "followed_by"), "where": second},
    ]
    return {"id": name, "pattern": steps, "within": "1 hour", **more}


def planned(rules: Sequence[dict[str, Any]]) -> RuleSetPlan:
    """What is made of rules."""
    documents = yaml.safe_dump_all(rules)
    loaded = load_rules(documents, "rules.yaml") if rules else []
    return compile_rules(each.rule for each in loaded)


def catalogue_of(
    random: Random, *, payments: Sequence[str], event_time: str = "ts", wild: float = 0.5
) -> ResolvedSchemas:
    """Some writers of events in the topics ``t`` and ``u``, and of payments in ``payments``."""
    unit = "millis" if event_time == "kind" else "auto"
    types = [EventType(0, "events", "t.Event", schemas.reader(), ("t", "u"), event_time, unit)]
    payment = parse(json.dumps(schemas.PAYMENT), "payment")
    if payments:
        reader = payment
        types.append(
            EventType(1, "payments", "t.Payment", reader, tuple(payments), "at", "seconds")
        )
    second = 1 if payments else None
    writers: dict[SchemaId, tuple[WriterSchema, ...]] = {
        PAYMENT: (WriterSchema(PAYMENT, payment, None, second),),
        STRANGER: (WriterSchema(STRANGER, parse(json.dumps(schemas.STRANGER), "?"), None, None),),
    }
    for schema_id in (1, 2, 3, 300):
        made = schemas.writer(random, wild * (schema_id > 1))
        written = parse(json.dumps(made), str(schema_id))
        assert resolves(written, types[0].reader) == []
        writers[schema_id] = (WriterSchema(schema_id, written, None, 0),)
    mixed = [schemas.writer(random, wild), schemas.STRANGER, schemas.PAYMENT]
    several = parse(json.dumps(mixed), "mixed")
    branches = [(0, 0), (1, None), (2, second)]
    writers[MIXED] = tuple(WriterSchema(MIXED, several, branch, of) for branch, of in branches)
    return ResolvedSchemas(tuple(types), writers, {UNKNOWN: 0}, {UNREADABLE: "no"})


def some_setting(random: Random) -> Setting:
    """Some rules over one record type or two."""
    payments = random.choice([[], [], ["u"], ["t", "u"]])
    rules = []
    for number in range(random.randrange(1, 6)):
        both = bool(payments) and random.random() < 0.5
        of = SHARED if both else CONDITIONS
        more: dict[str, Any] = {"key": random.choice(["k", ["k", "kind"]] if both else KEYS)}
        more = {name: value for name, value in more.items() if value is not None}
        if not both:
            more["events"] = "events"
        if random.random() < 0.7:
            columns = ["kind", "n", "x", "at", "mood"] if both else EMITTED
            more["emit"] = {"events": random.sample(columns, 3)}
        after = random.choice(["next", "followed_by"])
        first, second = (" AND ".join(random.sample(of, random.choice([1, 1, 2]))) for _ in "12")
        rules.append(rule(f"r-{number}", first, second, after=after, **more))
    ahead = random.choice([None, HOUR])
    keep_all = random.random() < 0.2
    catalogue = catalogue_of(random, payments=payments, event_time=random.choice(TIMES))
    return Setting(planned(rules), catalogue, DecodeOptions(16, ahead, keep_all))


def with_rules_in_sql(random: Random, setting: Setting) -> Setting:
    """The same and some rules in SQL, beside one of steps with the same key and one without."""
    documents = [
        {
            "id": f"q-{number}",
            "sql": f"SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY {key} ORDER BY ts"
            f" MEASURES {random.choice(EMITTED[:8])} AS m PATTERN (a b) DEFINE a AS n > 3)",
        }
        for number, key in enumerate(random.sample(["k", "k, ts", "ts, k, kind", "day"], 3))
    ]
    steps = rule("s", "kind = 'a'", "n > 3", key=["k", "ts"], events="events")
    rules = [plan.rule for plan in (*setting.plan.plans, *planned([*documents, steps]).plans)]
    return setting._replace(plan=compile_rules(rules, record_types(setting.catalogue)))


def values(random: Random, catalogue: ResolvedSchemas, count: int) -> list[bytes | None]:
    """Records as their writers write them."""
    found: list[bytes | None] = []
    for _ in range(count):
        schema_id = random.choice([*catalogue.writers, 1, 1, 1])
        assert isinstance(schema_id, int)
        found.append(schemas.written(random, schema_id, catalogue.writers[schema_id][0].schema))
    return found


def sent(random: Random, values: Sequence[bytes | None]) -> list[Kafka]:
    """Kafka's records, one partition after another, as they are read."""
    partitions = list(itertools.product("tu", [0, 1, 70_000]))
    places = sorted(random.choices(partitions, k=len(values)))
    return [
        Kafka(
            topic, partition, FIRST_OFFSET + number,
            NOW_MS + random.choice([0, 1, -1]), random.choice([None, b"", b"key"]), value,
            random.choice([None, '[{"key":"h"}]']),
        )
        for number, ((topic, partition), value) in enumerate(zip(places, values, strict=True))
    ]  # fmt: skip


def differences(setting: Setting, records: Sequence[Kafka]) -> dict[int, Any]:
    """Where rows are not those expected, by offset: as text, so that NaN is itself."""
    return unlike(decoded(setting, records), expected(setting, records))


def unlike(made: Mapping[int, Any], wanted: Mapping[int, Any]) -> dict[int, Any]:
    """Where rows differ, by offset."""
    found: dict[int, Any] = dict.fromkeys(made.keys() ^ wanted.keys(), "in one only")
    for offset in made.keys() & wanted.keys():
        mine, its = made[offset], wanted[offset]
        assert mine.keys() == its.keys()
        differing = {n: (mine[n], its[n]) for n in mine if repr(mine[n]) != repr(its[n])}
        found |= {offset: differing} if differing else {}
    return found


@EACH
@given(seed=st.integers(0, 2**32), in_sql=st.booleans())
@pytest.mark.slow
def test_the_same_rows_as_the_reference(seed: int, in_sql: bool) -> None:
    """Rules over everything, of writers of all kinds, unions of records, in several topics; also
    rules in SQL, to which NULL is a key."""
    random = Random(seed)
    setting = some_setting(random)
    if in_sql:
        setting = with_rules_in_sql(random, setting)
    odd = [None, b"", b"\0", frame(UNKNOWN, b""), frame(UNREADABLE, b"x"), b"\7abcdef"]
    records = sent(random, [*values(random, setting.catalogue, RECORDS), *odd])
    assert differences(setting, records) == {}


def damaged(random: Random, whole: bytes) -> bytes:
    """A record with damage."""
    made = bytearray(whole)
    at = random.randrange(5, len(made) + 1)
    match random.randrange(5):
        case 0:
            del made[at:]
        case 1:
            made[at:at] = random.randbytes(2)
        case 2 if at < len(made):
            made[at] ^= 1 << random.randrange(8)
        case 3:
            made[at : at + 1] = poison.number(random.choice([-1, 0, 2**31, 2**40, 2**62, -(2**63)]))
        case _:
            made[at:at] = b"\xff" * random.randrange(1, 12)
    return bytes(made)


@EACH
@given(seed=st.integers(0, 2**32))
@pytest.mark.slow
def test_damaged_records(seed: int) -> None:
    """What is no fault is read as by the reference; what fastavro refuses is a fault, too, and
    bytes that a writer may have written are none."""
    random = Random(seed)
    setting = some_setting(random)
    setting = setting._replace(options=replace(setting.options, max_ahead_ms=None, keep_all=True))
    catalogue = setting.catalogue
    del catalogue.writers[MIXED]
    whole = values(random, catalogue, RECORDS)
    records = sent(random, [damaged(random, each) for each in whole if each is not None])
    made = decoded(setting, records)
    assert Fault.UNDECODABLE in {row["fault"] for row in made.values()}
    sound = []
    for record in records:
        assert record.value is not None
        row = made.get(record.offset)
        fault = Fault.NONE if row is None else Fault(row["fault"])
        writer = catalogue.writers[prefixed(record.value).schema][0]
        if writer.type is None or record.topic not in catalogue.types[writer.type].topics:
            assert fault is Fault.NONE
            continue
        if endless(writer.schema):
            continue
        read = needed(setting, catalogue.types[writer.type])
        if fault in (Fault.UNDECODABLE, Fault.BAD_VALUE):
            assert decoding_fault(record.value[5:], writer.schema, read) or not is_as_written(
                record.value, writer.schema
            )
        elif is_as_written(record.value, writer.schema):
            assert decoding_fault(record.value[5:], writer.schema, read) is None
            sound.append(record)
    offsets = made.keys() & {record.offset for record in sound}
    assert unlike({offset: made[offset] for offset in offsets}, expected(setting, sound)) == {}


def needed(setting: Setting, event_type: EventType) -> AvroSchema:
    """The reader schema with what rules read."""
    columns = set() if event_type.event_time == KAFKA_TIMESTAMP else {event_type.event_time}
    for part in setting.plan.partitionings:
        expressions = [(c.events, c.expression) for c in part.conditions if c.expression]
        paths = {
            path
            for events, e in expressions
            if event_type.input in events or not events
            for path in e.columns
        }
        paths |= {s.path for s in part.slots if event_type.input in s.events or not s.events}
        if part.reads(event_type.input):
            paths |= {path for e in part.key for path in e.columns}
        columns |= {".".join(p) for p in paths if column_type(event_type.columns, p) is not None}
    # A union is kept whole.
    columns = {"several" if name.startswith("several") else name for name in columns}
    return project(event_type.readable, columns)


def is_as_written(value: bytes, schema: AvroSchema) -> bool:
    """Whether a writer could have written just these bytes."""
    plain: Any = poison.without_logical_types(schema.json)
    again = BytesIO()
    try:
        datum: Any = fastavro.schemaless_reader(
            BytesIO(value[5:]), plain, None, return_record_name=True
        )
        fastavro.schemaless_writer(again, plain, datum)
        if not fastavro.validate(datum, plain, raise_errors=False):
            return False  # an int beyond 32 bits
    except Exception:  # noqa: BLE001  of many kinds
        return False
    return again.getvalue() == value[5:]


def test_many_conditions() -> None:
    """More than one word of bits, all of them on one text; and no rule at all."""
    random = Random(5)
    rules = [
        rule(
            f"r-{n}",
            f"kind = 'k{n % 40}' AND n > {n % 10} AND LENGTH(kind) > {n % 3}",
            f"k IN ('u{n}', 'u1') AND kind LIKE '%{n % 7}'",
            key="k",
        )
        for n in range(90)
    ]
    catalogue = catalogue_of(random, payments=[])
    records = sent(random, values(random, catalogue, RECORDS))
    for some in (rules, []):
        setting = Setting(planned(some), catalogue, DecodeOptions(16, None, keep_all=False))
        assert differences(setting, records) == {}
        kinds = {part.words for part in setting.decoder.parts}
        assert kinds == ({3} if some else set())


def test_zeros_of_two_signs() -> None:
    """Conditions that differ only in the sign of a zero are two."""
    random = Random(5)
    zero = "CAST(n * {}0.0D AS STRING) = '-0.0'"
    rules = [rule("r", zero.format("-"), zero.format(""), key="k")]
    catalogue = catalogue_of(random, payments=[])
    records = sent(random, values(random, catalogue, RECORDS))
    setting = Setting(planned(rules), catalogue, DecodeOptions(16, None, keep_all=False))
    assert differences(setting, records) == {}
    # Some meet the first condition, others the second, by the sign of n.
    assert len({row["mask_0"] for row in decoded(setting, records).values()}) > 1


def test_too_far_ahead_of_the_clock() -> None:
    """An event after the last time that is believed is judged, whether a rule wants it or not."""
    random = Random(9)
    catalogue = catalogue_of(random, payments=[])
    plan = planned([rule("r", "kind = 'a'", "kind = 'b'")])
    setting = Setting(plan, catalogue, DecodeOptions(16, None, keep_all=True))
    records = sent(random, values(random, catalogue, RECORDS))
    times = {offset: row["time"] for offset, row in expected(setting, records).items()}
    late = {offset for offset, time in times.items() if time is not None and time > NOW_MS}
    tallies, rows, _ = read(setting.decoder, records, NOW_MS)
    ahead = [row for row in rows.to_pylist() if row["fault"] == Fault.TIME_OUT_OF_BOUNDS]
    assert {row["offset"] for row in ahead} == late != set()
    assert all(row["value"] == records[row["offset"] - FIRST_OFFSET].value for row in ahead)
    assert {row["time"] for row in ahead} == {None} == {row["group_0"] for row in ahead}
    assert max(tally.time for tally in tallies if tally.time is not None) == NOW_MS


def test_what_records_count() -> None:
    """Tallies are those of all records, whether anybody wants them or not."""
    random = Random(3)
    setting = some_setting(random)
    setting = setting._replace(options=replace(setting.options, max_ahead_ms=None, keep_all=True))
    records = sent(random, [None, b"", *values(random, setting.catalogue, RECORDS)])
    tallies, rows, _ = read(setting.decoder, records)
    assert sum(tally.records for tally in tallies) == len(records)
    assert sum(tally.size for tally in tallies) == sum(
        len(r.key or b"") + len(r.value or b"") for r in records
    )
    by_place: dict[tuple[str, int], list[int]] = {}
    for row in rows.to_pylist():
        if row["time"] is not None:
            by_place.setdefault((row["topic"], row["partition"]), []).append(row["time"])
    newest: dict[tuple[str, int], int] = {}
    for t in tallies:
        if t.time is not None:
            newest[t.topic, t.partition] = max(newest.get((t.topic, t.partition), t.time), t.time)
    assert newest == {place: max(times) for place, times in by_place.items()}
    assert {t.partition for t in tallies} == {0, 1, 70_000}
    absent = [t for t in tallies if t.fault == Fault.TOMBSTONE]
    assert sum(t.records for t in absent) == 1


def test_a_condition_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not true of the event, each rule that has it is named, and there is a bound."""
    random = Random(4)
    catalogue = catalogue_of(random, payments=[], wild=0)
    condition = "UPPER(kind) = 'K1' AND kind = 'k1'"
    rules = [rule("one", condition, "kind = 'a'"), rule("two", "kind = 'b'", condition)]
    setting = Setting(planned(rules), catalogue, DecodeOptions(16, None, keep_all=False))
    records = sent(random, values(random, catalogue, RECORDS))

    def failing(*_: Any) -> Any:
        def evaluate(values: Sequence[Any], _: Any) -> Any:
            raise ArithmeticError(f"of {values[0]}")

        return evaluate

    sound = decoded(setting, records)
    monkeypatch.setattr(evaluation, "bind", failing)
    (bit,) = [
        n
        for n, each in enumerate(setting.plan.partitionings[0].conditions)
        if each.expression is not None and "UPPER" in each.expression.canonical
    ]
    _, _, failures = read(setting.decoder, records)
    wanted = {offset for offset, row in sound.items() if row["mask_0"] >> bit & 1}
    assert {letter.at.offset for letter in failures} == wanted != set()
    assert len(failures) == 2 * len(wanted)
    assert {(f.rule_id, f.rule_version, f.step) for f in failures} == {
        ("one", 1, "one"), ("two", 1, "two"),
    }  # fmt: skip
    assert {f.reason for f in failures} == {"condition_failed"}
    assert {f.detail for f in failures} == {
        "UPPER(kind) = 'K1' AND kind = 'k1': ArithmeticError('of k1')"
    }
    assert not any(row["mask_0"] >> bit & 1 for row in decoded(setting, records).values())
    many = [
        one._replace(topic="t", partition=0)
        for one in sent(random, values(random, catalogue, 8_000))
    ]
    (together,) = kafka_records(many, len(many))
    assert len(setting.decoder.read(together, None).failures) <= MOST_FAILURES


@pytest.mark.parametrize("keep_all", [False, True])
def test_a_key_that_nobody_misses(keep_all: bool) -> None:
    """An event without a key is a fault where a step of a rule with that key could take it, also
    where all late events are wanted."""
    written = parse(json.dumps(avro_record("t.Event", k=["null", "string"], n="long")), "keys")
    of_keys = EventType(0, "events", "t.Event", written, ("t",), KAFKA_TIMESTAMP, "auto")
    catalogue = ResolvedSchemas((of_keys,), {1: (WriterSchema(1, written, None, 0),)})
    rules = [rule("by-k", "n = 1", "n = 1", key="k", events="events")]
    rules += [rule("by-n", "n > 1", "n > 2", key="n", events="events")]
    plan = planned(rules)
    records = []
    for number in range(4):
        body = BytesIO()
        fastavro.schemaless_writer(body, json.loads(written.text), {"k": None, "n": number})
        records.append(Kafka("t", 0, number, NOW_MS, None, frame(1, body.getvalue()), None))
    packer = Packing(catalogue, DecodeOptions(1, None, keep_all=keep_all)).packer(plan)
    (read_records,) = kafka_records(records, len(records))
    rows = packer.decoder.read(read_records, None).rows
    missing = [r["offset"] for r in rows.to_pylist() if r["fault"] == Fault.MISSING_KEY]
    assert missing == [1]
    unkeyed = packer._unkeyed(rows.filter(pc.equal(rows.column("fault"), int(Fault.MISSING_KEY))))
    used = {event.offset: event.used for event in unkeyed}
    assert used == {1: keep_all}


def test_columns_that_cannot_be_read() -> None:
    """They are found before anything is decoded."""
    random = Random(1)
    catalogue = catalogue_of(random, payments=["u"])
    emits = rule("r", "true", "true", emit={"events": ["x"]})
    check_columns(planned([rule("r", "true", "true", emit={"events": ["n"]})]), catalogue)
    check_columns(planned([emits]), catalogue)
    texts = replace(
        catalogue.types[1],
        reader=parse(json.dumps(avro_record("t.Payment", x="string", at="long")), "texts"),
    )
    other = replace(catalogue, types=(catalogue.types[0], texts))
    with pytest.raises(SchemaError, match=r"x is DOUBLE in t.Event \(input events\), STRING"):
        check_columns(planned([emits]), other)
    for name, unit, found in (
        ("tags", "auto", "ARRAY<STRING>; allowed is a timestamp"),
        ("day", "auto", "DATE; allowed is a timestamp"),
        ("nothing", "auto", "no column of t.Event; columns here: .*; or kafka_timestamp"),
        ("kinds", "auto", "no column of t.Event; did you mean `kind`"),
        (
            "kind",
            "auto",
            "STRING; set inputs.events.event_time_unit, or give --event-time kind:U",
        ),
        ("n", "iso", "INT; inputs.events.event_time_unit: iso is for text"),
        ("x", "iso", "DOUBLE; inputs.events.event_time_unit: iso is for text"),
    ):
        timed = replace(catalogue.types[0], event_time=name, event_time_unit=unit)
        with pytest.raises(SchemaError, match=f"input events: the event time {name} .*{found}"):
            check_columns(planned([]), replace(catalogue, types=(timed,)))


@pytest.mark.parametrize(
    ("unit", "text", "micros"),
    [
        ("iso", "2026-01-31T12:00:00Z", 1_769_860_800_000_000),
        ("iso", "2026-01-31 12:00:00.123456789", 1_769_860_800_123_456),
        ("iso", "2026-01-31T13:00:00.5+01:00", 1_769_860_800_500_000),
        ("iso", "2026-01-31T10:30-0130", 1_769_860_800_000_000),
        ("iso", "2026-01-31", 1_769_817_600_000_000),
        ("iso", "1969-12-31T23:59:59.999999Z", -1),
        ("iso", "2026-02-30T00:00:00Z", None),
        ("iso", "2026-01-31T12:00:00Zulu", None),
        ("iso", "1769860800000", None),
        ("iso", "", None),
        ("seconds", "1769860800", 1_769_860_800_000_000),
        ("seconds", "2026-01-31T12:00:00Z", None),
    ],
)
def test_times_in_text(unit: str, text: str, micros: int | None) -> None:
    """Each is read as it is beside any others; one that is no time becomes a dead letter that
    quotes it."""
    written = parse(json.dumps(avro_record("t.Event", at=["null", "string"], n="long")), "texts")
    of_text = EventType(0, "events", "t.Event", written, ("t",), "at", unit)
    catalogue = ResolvedSchemas((of_text,), {1: (WriterSchema(1, written, None, 0),)})
    others = ["no time", "", None, "1769860800", "2026-01-31T12:00:00Z", "2026-01-31"]
    records = []
    for number, at in enumerate([*others, text, *others]):
        body = BytesIO()
        fastavro.schemaless_writer(body, json.loads(written.text), {"at": at, "n": number})
        records.append(Kafka("t", 0, number, NOW_MS, None, frame(1, body.getvalue()), None))
    options = DecodeOptions(1, None, keep_all=True)
    packer = Packing(catalogue, options).packer(planned([rule("r", "n > 0", "n > 1")]))
    (read_records,) = kafka_records(records, len(records))
    decoded = packer.decoder.read(read_records, None)
    row = decoded.rows.to_pylist()[len(others)]
    if micros is None:
        assert (row["time"], row["fault"]) == (None, Fault.UNREADABLE_TIME)
    else:
        assert (row["time"], row["fault"]) == (micros // 1_000, Fault.NONE)
        assert not packer.decoder.in_micros or row["micros"] == micros % 1_000
    letters = {
        letter.at.offset: letter.detail
        for letter in packer.judged(packer.decoder.reader, decoded.rows)
        if letter.reason == "missing_event_time"
    }
    assert letters[0] == "the event time cannot be read: at is 'no time'"
    assert letters[2] == "the event time is null: at"
    wanted = None if micros is not None else f"the event time cannot be read: at is {text!r}"
    assert letters.get(len(others)) == wanted


def test_it_is_compiled_before_the_first_batch() -> None:
    """Reading needs no code but what workers load as they start."""
    prepare()
    loops = [read_records, copy_bytes, number_texts, set_masks, place_hashes]
    before = [list(each.signatures) for each in loops]
    assert all(before)
    random = Random(3)
    setting = some_setting(random)
    records = sent(random, values(random, setting.catalogue, 50))
    shipped = CPickleSerializer().loads(CPickleSerializer().dumps(setting.decoder))
    read(shipped, records)
    assert [list(each.signatures) for each in loops] == before
