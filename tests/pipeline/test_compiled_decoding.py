"""The compiled decoder next to Spark's: the same rows of the same records, whole and damaged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from random import Random
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa
import pytest
import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.serializers import CPickleSerializer
from pyspark.sql import SparkSession

from service.codecs.avro_schema import AvroSchema, parse
from service.codecs.compiled_code import prepare
from service.codecs.framing import frame, read_schema_id
from service.codecs.record_bytes import copy_texts, read_records
from service.codecs.registry import Registry
from service.codecs.registry_settings import RegistrySettings
from service.compiler.rule_set import RuleSetPlan, compile_rules
from service.config.topics import KAFKA_TIMESTAMP
from service.matcher.columnar.event_mask_loops import number_texts, set_masks
from service.matcher.columnar.text_hash import text_hashes
from service.pattern.document import load_rules
from service.pipeline.bare_records import bare
from service.pipeline.catalogue import Catalogue, EventType, Writer
from service.pipeline.compiled_decoding import CompiledDecoder
from service.pipeline.compiled_plan import NotCompiledError, compiled_decoder
from service.pipeline.crossing import Crossing
from service.pipeline.decode import DecodeOptions, decode
from service.pipeline.record_faults import Fault
from tests.e2e import poison
from tests.e2e.schemas import MICROS, MILLIS, record
from tests.pipeline.test_crossing import summed

pytestmark = pytest.mark.spark

RECORDS = 1_500
FIRST_OFFSET = 2**40
HOUR = 3_600_000
NOW = datetime(2026, 1, 31, tzinfo=UTC)
NOW_MS = round(NOW.timestamp() * 1000)
RECORD_SQL = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY,"
    " headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
DAY = {"type": "int", "logicalType": "date"}
MOOD = {"type": "enum", "name": "t.Mood", "symbols": ["GOOD", "BAD"]}
FACE = {"type": "enum", "name": "t.Face", "symbols": ["UP", "DOWN", "ASIDE"]}
FACES = [None, "UP", "DOWN", "ASIDE"]
PLACE = record("t.Place", city="string", height=["null", "double"])
#: What rules read, and of every other type something to skip.
EVENT = record(
    "t.Event",
    kind="string",
    mood=MOOD,
    tags={"type": "array", "items": "string"},
    k=["null", "string"],
    raw="bytes",
    n="int",
    sizes={"type": "map", "values": {"type": "array", "items": ["null", "long"]}},
    total=["long", "null"],
    x="double",
    f=["null", "float"],
    ok="boolean",
    several=["null", "string", "int", {"type": "fixed", "name": "Four", "size": 4}],
    ts=["null", MILLIS],
    seen=MICROS,
    day=["null", DAY],
    place=PLACE,
    other=["null", record("t.Other", city="string", deep=["null", "t.Place"])],
    faces=["null", record("t.Faces", left=FACE, right=["null", "t.Face"])],
    last="int",
)
#: An older writer: another order, also of an enum, without what is nullable, and with a column of
#: its own.
OLDER = record(
    "t.Event",
    seen=MICROS,
    x="double",
    gone=["null", "string"],
    kind="string",
    n="int",
    ok="boolean",
    place=PLACE,
    mood=MOOD | {"symbols": ["BAD", "GOOD"]},
)
NEWER = EVENT | {
    "fields": [
        each
        | (
            {"default": None}
            if isinstance(each["type"], list) and each["type"][0] == "null"
            else {}
        )
        for each in EVENT["fields"]
        if each["name"] not in ("tags", "raw", "sizes", "total", "last")
    ]
}
PAYMENT = record("t.Payment", kind="string", n="long", k=["null", "string"], at="long")
STRANGER = record("t.Stranger", name="string")
#: By id, what is written with it.
WRITTEN = {1: EVENT, 2: OLDER, 3: PAYMENT, 4: STRANGER, 300: NEWER}
#: As the older one, with a symbol that the reader does not know.
MOODIER = OLDER | {
    "fields": [
        each | ({"type": MOOD | {"symbols": ["GOOD", "UGLY"]}} if each["name"] == "mood" else {})
        for each in OLDER["fields"]
    ]
}
UNREADABLE, UNKNOWN = 5, 987_654

KINDS = [
    "a",
    "b",
    "ab",
    "",
    "it's",
    "ключ",
    "a\u0000b",
    "a%b",
    "\\",
    'sa"y\n\x1f\x7f',
    "other",
    *(f"k{n}" for n in range(30)),
]
CONDITIONS = [
    "kind = 'a'",
    "'b' = kind",
    "kind IN ('a', 'ключ', 'k7')",
    "kind <> 'a'",
    "NOT kind IN ('a', 'b')",
    "kind = 'a' AND n > 5",
    "kind = 'it''s' OR x < 0.5",
    "k IS NULL",
    "k = 'u1' OR k IS NULL",
    "n BETWEEN -3 AND 5",
    "n * 2 + 1 > 7",
    "x / n > 0.25",
    "x >= 1e300",
    "f = 0.5",
    "ok",
    "NOT ok",
    "seen > TIMESTAMP'2026-01-30 12:00:00'",
    "day = DATE'2024-10-04'",
    "day < DATE'1970-01-02' OR seen > day",
    "place.city = 'Bonn'",
    "place.height > 100",
    "other.deep.city <> 'Bonn'",
    "other.city IS NULL",
    "kind LIKE 'k%'",
    "kind LIKE 'k1%' AND k IS NULL AND n < 9",
    "NOT kind LIKE '%b' AND x > 0",
    "kind LIKE '%ч' OR k LIKE 'ü%' OR n = 5",
    "kind LIKE '%лю%' AND kind <> 'a'",
    "kind LIKE '%2%' AND kind LIKE '%k%' AND kind IN ('k2', 'k12', 'k23')",
    "k LIKE 'user-%' AND k LIKE '%7'",
    "kind LIKE 'ab'",
    "kind LIKE '%'",
    "kind LIKE '' AND place.city LIKE 'Kö%'",
    r"kind LIKE 'a\%%' OR kind LIKE '%\\\\'",
    "kind = 'b' OR kind LIKE 'a%'",
    "STARTSWITH(kind, 'k1') AND NOT ENDSWITH(k, '1')",
    "CONTAINS(kind, 'b') OR CONTAINS(kind, '') AND n > 3",
    "mood = 'GOOD'",
    "mood LIKE 'B%' AND n > 1",
    "faces.right = 'DOWN' OR faces.right IS NULL",
    "kind IN ('a', NULL)",
    "1 = 2 AND kind = 'a'",
    "1 = 1 AND kind = 'a' AND NULL IS NULL",
    "true",
]
#: What is asked of both record types.
SHARED = [
    "kind = 'a'",
    "kind <> 'b'",
    "kind IN ('k1', 'k2')",
    "kind LIKE '%1'",
    "n > 3",
    "k = 'u1'",
    "true",
]
NOT_COMPILED = {
    "kind LIKE 'a%b'": "LIKE",
    "kind LIKE 'a_'": "LIKE",
    "STARTSWITH(kind, k)": "STARTSWITH",
    "UPPER(kind) = 'A'": "UPPER",
    "kind < 'b'": "<",
    "kind = k": "=",
}


class Setting(NamedTuple):
    """A plan, what it reads, and how."""

    plan: RuleSetPlan
    catalogue: Catalogue
    options: DecodeOptions

    @property
    def compiled(self) -> CompiledDecoder:
        """Its decoder."""
        return compiled_decoder(self.plan, self.catalogue, self.options)


def event_types(several: bool, event_time: str = "ts") -> list[EventType]:
    """The event's type, and a second one."""
    types = [EventType(0, "events", "t.Event", schema(1), ("t",), event_time, "auto")]
    if several:
        types.append(EventType(1, "payments", "t.Payment", schema(3), ("t",), "at", "seconds"))
    return types


def schema(schema_id: int) -> AvroSchema:
    """A writer's schema; the reader of events has a default wherever it may."""
    written = WRITTEN[schema_id]
    if schema_id == 1:
        nullable = [
            each | {"default": None}
            if isinstance(each["type"], list) and each["type"][0] == "null"
            else each
            for each in EVENT["fields"]
        ]
        written = EVENT | {"fields": nullable}
    return parse(json.dumps(written), f"id {schema_id}")


def catalogue_of(types: Sequence[EventType], ids: Sequence[int]) -> Catalogue:
    """Who writes what."""
    of = {1: 0, 2: 0, 300: 0, 3: 1 if len(types) > 1 else None, 4: None}
    writers = {i: (Writer(i, parse(json.dumps(WRITTEN[i]), str(i)), None, of[i]),) for i in ids}
    registry = Registry(RegistrySettings("http://localhost:1"))
    return Catalogue(registry, tuple(types), writers, {UNKNOWN}, {UNREADABLE: "no"})


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


def some_setting(random: Random, topics: Sequence[str]) -> Setting:
    """Some rules over one record type or two."""
    several = random.random() < 0.5
    rules = []
    for number in range(random.randrange(1, 6)):
        both = several and random.random() < 0.5
        of = SHARED if both else CONDITIONS
        more: dict[str, Any] = {
            "key": random.choice(
                ["k", "kind", ["k", "kind"], "mood"]
                if both
                else ["k", "kind", "mood", "n", ["kind", "n", "mood"], None]
            )
        }
        more = {name: value for name, value in more.items() if value is not None}
        if not both:
            more["events"] = "events"
            if random.random() < 0.5:
                more["emit"] = {
                    "events": random.sample(
                        [
                            "kind",
                            "mood",
                            "faces.left",
                            "k",
                            "n",
                            "total",
                            "x",
                            "f",
                            "ok",
                            "seen",
                            "day",
                            "place.city",
                            "ts",
                            "other.deep.height",
                            "other.city",
                        ],
                        3,
                    )
                }
        elif random.random() < 0.5:
            more["emit"] = {"events": ["kind", "k"]}
        after = random.choice(["next", "followed_by"])
        rules.append(rule(f"r-{number}", random.choice(of), random.choice(of), after=after, **more))
    types = event_types(several, random.choice(["ts", "ts", "seen", KAFKA_TIMESTAMP, "n", "total"]))
    ahead = random.choice([None, HOUR])
    ids = [1, 2, 3, 4, 300]
    if types[0].event_time == "total" or any("total" in str(each) for each in rules):
        # Those have no default for it.
        ids = [1, 3, 4]
    types = [replace(each, topics=tuple(topics)) for each in types]
    topic = topics[0] if len(topics) == 1 else None
    options = DecodeOptions(16, ahead, keep_all=False, topic=topic)
    return Setting(planned(rules), catalogue_of(types, ids), options)


def value(random: Random, ids: Sequence[int]) -> bytes:
    """A record as a writer writes it; its values may be odd, or beyond their types."""
    written = random.choice([*ids, 1, 1, 1])
    place = {
        "city": random.choice(["Bonn", "Köln", ""]),
        "height": random.choice([None, 50.0, 120.0]),
    }
    moment = random.choice([NOW_MS, NOW_MS, NOW_MS + 2 * HOUR, 0, -1, poison.YEAR_10000 - 1])
    event = {
        "kind": random.choice(KINDS),
        "mood": random.choice(["GOOD", "BAD"]),
        "faces": random.choice([None, {"left": "UP", "right": random.choice(FACES)}]),
        "tags": [random.choice(KINDS)] * random.randrange(4),
        "k": random.choice([None, "", "u1", "ü" * 9, f"user-{random.randrange(99):040d}"]),
        "raw": random.randbytes(random.randrange(9)),
        "n": random.choice([0, 1, 5, -1, -(2**31), 2**31 - 1, random.randrange(20)]),
        "sizes": {k: [1, None] * random.randrange(3) for k in KINDS[: random.randrange(3)]},
        "total": random.choice([None, 0, NOW_MS, 2**63 - 1, -(2**63)]),
        "x": random.choice([0.0, -0.0, 0.5, 1e300, float("inf"), float("nan")]),
        "f": random.choice([None, 0.5, -1.0, float("nan")]),
        "ok": random.random() < 0.5,
        "several": random.choice([None, "text", 7, b"four"]),
        "ts": random.choice([None, *(moment,) * 8]),
        "seen": random.choice([0, NOW_MS * 1000 + 7, -1]),
        "day": random.choice([None, 0, 20_000, 20_484, -719_163, 2_932_897, 2**31 - 1, 19_999]),
        "place": place,
        "other": random.choice([None, *({"city": "Bonn", "deep": p} for p in (None, place))]),
        "last": 3,
        "gone": random.choice([None, "gone"]),
        "name": "stranger",
        "at": random.choice([NOW_MS // 1000, 0, -(2**63), 2**60, 10**12 + 1]),
    }  # fmt: skip
    body = BytesIO()
    schema = poison.without_logical_types(parse(json.dumps(WRITTEN[written]), "written").json)
    wanted = {each["name"] for each in schema["fields"]}  # type: ignore[call-overload]
    fastavro.schemaless_writer(body, schema, {n: v for n, v in event.items() if n in wanted})
    return frame(written, body.getvalue())


def damaged(random: Random, ids: Sequence[int]) -> bytes | None:
    """A record with damage."""
    if random.random() < 0.2:
        odd = [None, b"", b"\0", frame(UNKNOWN, b""), frame(UNREADABLE, b"x"), random.randbytes(20)]
        return random.choice(odd)
    made = bytearray(value(random, ids))
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


def rows_of(random: Random, values: Sequence[bytes | None], topics: Sequence[str]) -> list[Any]:
    """Kafka's rows."""
    header = [{"key": "h", "value": b"1"}]
    return [
        (
            random.choice(topics), random.randrange(3), FIRST_OFFSET + number,
            NOW + timedelta(milliseconds=random.choice([0, 1, -1])),
            random.choice([None, b"", b"key"]), None if each is None else bytearray(each),
            random.choice([None, header]),
        )
        for number, each in enumerate(values)
    ]  # fmt: skip


def both(
    spark: SparkSession, setting: Setting, rows: Sequence[Any]
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """What either makes of records, which count the same: the compiled decoder's rows, and those of
    Spark's, of the same types."""
    records = spark.createDataFrame(rows, RECORD_SQL)
    topic = setting.options.topic
    decoded = decode(records, setting.plan, setting.catalogue, setting.options).frame.toArrow()
    passed, expected = Crossing(topic).read(decoded.to_batches(), None)
    crossed = bare(records, topic).toArrow().to_batches(max_chunksize=400)
    counted, made = setting.compiled.read(crossed, None)
    assert {f.name: f.type for f in made.schema} == {f.name: f.type for f in expected.schema}
    assert summed(counted) == summed(passed)
    return made, expected


def differences(made: pa.RecordBatch, expected: pa.RecordBatch) -> dict[int, dict[str, Any]]:
    """Where rows are not those expected, by offset: as text, so that NaN is itself."""
    one, other = (
        {row["offset"]: {n: repr(v) for n, v in row.items()} for row in rows.to_pylist()}
        for rows in (made, expected)
    )
    found: dict[int, dict[str, Any]] = {
        offset: {"in one only": ("", "")} for offset in one.keys() ^ other.keys()
    }
    for offset in one.keys() & other.keys():
        mine, its = one[offset], other[offset]
        unlike = {name: (mine[name], its[name]) for name in mine if mine[name] != its[name]}
        found |= {offset: unlike} if unlike else {}
    return found


SEEDS = settings(
    max_examples=8, derandomize=True, deadline=None, database=None, phases=[Phase.generate]
)


@SEEDS
@given(seed=st.integers(0, 2**32))
def test_the_same_rows_as_spark(spark: SparkSession, seed: int) -> None:
    """Rules over everything that is compiled: rows, their types, and what all records count."""
    random = Random(seed)
    topics = random.choice([["t"], ["t"], ["t", "u"]])
    setting = some_setting(random, topics)
    ids = list(setting.catalogue.writers)
    values = [None if random.random() < 0.02 else value(random, ids) for _ in range(RECORDS)]
    made, expected = both(spark, setting, rows_of(random, values, topics))
    assert differences(made, expected) == {}
    assert made.num_rows > 0


@SEEDS
@given(seed=st.integers(0, 2**32))
def test_damaged_records_are_refused_as_by_spark(spark: SparkSession, seed: int) -> None:
    """The same rows and faults again; but where bytes are none that a writer writes, one decoder
    may refuse what the other one makes something of."""
    random = Random(seed)
    setting = some_setting(random, ["t"])
    ids = list(setting.catalogue.writers)
    values = [damaged(random, ids) for _ in range(RECORDS)]
    records = spark.createDataFrame(rows_of(random, values, ["t"]), RECORD_SQL)
    decoded = decode(records, setting.plan, setting.catalogue, setting.options).frame.toArrow()
    _, expected = Crossing("t").read(decoded.to_batches(), None)
    _, made = setting.compiled.read(bare(records, "t").toArrow().to_batches(), None)
    faults = {row["fault"] for row in made.to_pylist()}
    assert {Fault.NOT_FRAMED, Fault.UNKNOWN_ID, Fault.UNREADABLE_SCHEMA} < faults
    assert {Fault.UNDECODABLE, Fault.BAD_VALUE} & faults
    for offset, unlike in differences(made, expected).items():
        damage = values[offset - FIRST_OFFSET]
        assert damage is not None
        assert not is_as_written(damage), (damage, unlike)


def is_as_written(damage: bytes) -> bool:
    """Whether a writer could have written just these bytes."""
    schema = WRITTEN[read_schema_id(damage)]
    plain = poison.without_logical_types(parse(json.dumps(schema), "written").json)
    again = BytesIO()
    try:
        datum: Any = fastavro.schemaless_reader(BytesIO(damage[5:]), plain, None)
        fastavro.schemaless_writer(again, plain, datum)
    except Exception:  # noqa: BLE001  of many kinds
        return False
    return again.getvalue() == damage[5:]


def test_many_conditions(spark: SparkSession) -> None:
    """More than one word of bits, all of them on one text; and no rule at all."""
    random = Random(5)
    rules = [
        rule(
            f"r-{n}",
            f"kind = 'k{n % 40}' AND n > {n % 10}",
            f"k IN ('u{n}', 'u1') AND kind LIKE '%{n % 7}'",
            key="k",
        )
        for n in range(90)
    ]
    values = [value(random, [1, 2]) for _ in range(RECORDS)]
    rows = rows_of(random, values, ["t"])
    for some in (rules, []):
        catalogue = catalogue_of(event_types(several=False), [1, 2])
        options = DecodeOptions(16, None, keep_all=False, topic="t")
        made, expected = both(spark, Setting(planned(some), catalogue, options), rows)
        assert differences(made, expected) == {}
        assert "bits_0_2" in made.schema.names or not some


def test_too_far_ahead_of_the_clock(spark: SparkSession) -> None:
    """An event after the last time that is believed is judged, whether a rule wants it or not."""
    random = Random(9)
    catalogue = catalogue_of(event_types(several=False), [1])
    options = DecodeOptions(16, None, keep_all=False, topic="t")
    setting = Setting(planned([rule("r", "kind = 'a'", "kind = 'b'")]), catalogue, options)
    values = [value(random, [1]) for _ in range(RECORDS)]
    records = spark.createDataFrame(rows_of(random, values, ["t"]), RECORD_SQL)
    batches = bare(records, "t").toArrow().to_batches()
    times = {
        row["offset"]: row["time"]
        for row in Crossing("t")
        .read(
            decode(records, setting.plan, catalogue, replace(options, keep_all=True))
            .frame.toArrow()
            .to_batches(),
            None,
        )[1]
        .to_pylist()
    }
    late = {offset for offset, time in times.items() if time is not None and time > NOW_MS}
    tallies, rows = setting.compiled.read(batches, NOW_MS)
    ahead = [row for row in rows.to_pylist() if row["fault"] == Fault.TIME_OUT_OF_BOUNDS]
    assert {row["offset"] for row in ahead} == late != set()
    assert all(row["value"] == values[row["offset"] - FIRST_OFFSET] for row in ahead)
    assert {row["time"] for row in ahead} == {None} == {row["group_0"] for row in ahead}
    assert max(tally.time for tally in tallies if tally.time is not None) == NOW_MS


def test_left_to_spark() -> None:
    """What is not compiled is said, and why."""
    catalogue = catalogue_of(event_types(several=False), [1, 2])
    options = DecodeOptions(16, None, keep_all=False, topic="t")

    def reason(*rules: dict[str, Any], keep_all: bool = False) -> str:
        with pytest.raises(NotCompiledError) as error:
            compiled_decoder(planned(rules), catalogue, replace(options, keep_all=keep_all))
        return str(error.value)

    for condition, part in NOT_COMPILED.items():
        assert part in reason(rule("r", condition, "true"))
    written = catalogue.writers[2][0]
    moodier = replace(written, schema=parse(json.dumps(MOODIER), "moodier"))
    catalogue.writers[2] = (moodier,)
    assert "mood" in reason(rule("r", "mood = 'GOOD'", "true"))
    catalogue.writers[2] = (written,)
    assert "late events" in reason(rule("r", "ok", "true"), keep_all=True)
    assert "key kind, x" in reason(rule("r", "ok", "true", key=["kind", "x"]))
    assert "key UPPER(kind)" in reason(rule("r", "ok", "true", key="UPPER(kind)"))
    assert "key x" in reason(rule("r", "ok", "true", key="x"))
    assert "total" in reason(rule("r", "total > 3", "true"))
    many = [rule(f"r-{n}", f"n > {n}", "true") for n in range(70)]
    assert "64 parts" in reason(*many)
    many = [rule(f"r-{n}", f"kind = 'k{n}' AND n > {n}", "true") for n in range(600)]
    assert "512 parts" in reason(*many)


def test_it_is_compiled_before_the_first_batch(spark: SparkSession) -> None:
    """Reading needs no code but what workers load as they start."""
    prepare()
    loops = [read_records, copy_texts, number_texts, set_masks, text_hashes]
    before = [list(each.signatures) for each in loops]
    assert all(before)
    random = Random(3)
    setting = some_setting(random, ["t"])
    values = [value(random, [1, 3, 4]) for _ in range(50)]
    records = spark.createDataFrame(rows_of(random, values, ["t"]), RECORD_SQL)
    shipped = CPickleSerializer().loads(CPickleSerializer().dumps(setting.compiled))
    shipped.read(bare(records, "t").toArrow().to_batches(), None)
    assert [list(each.signatures) for each in loops] == before
