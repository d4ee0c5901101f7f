"""The test kit next to the job: the same rules over the same events find the same.

Events go to the kit as a test would send them, and to the job as a producer would write them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from random import Random
from typing import Any, NamedTuple

import fastavro
import pytest
import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.codecs.registry.framing import frame
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas, WriterSchema
from spark_cep.codecs.registry.schema_ids import SchemaId
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.event_times import KAFKA_TIMESTAMP
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions, record_types
from spark_cep.pipeline.decode.packing import Packing
from spark_cep.runner.batch import Batch, RunSettings
from spark_cep.runner.runner import Runner
from spark_cep.testkit import RuleTest
from tests.e2e.schemas import MILLIS, field, record
from tests.pipeline.decode import schemas
from tests.pipeline.decode.reference import Kafka, kafka_records
from tests.pipeline.decode.test_decoder import CONDITIONS, KEYS, SHARED

START_MS = 1_767_225_600_000
END_MS = START_MS + (1 << 40)
FULL = {"t.Event": "t", "t.Payment": "u"}


class Sent(NamedTuple):
    """An event: its record type, its time after the start, and its columns."""

    type: str
    after_ms: int
    values: Mapping[str, Any]


def of_kit(rules: str, known: Mapping[str, AvroSchema], events: Sequence[Sent]) -> Any:
    """What the kit finds. Inputs are called like their topics."""
    kit = RuleTest(
        load_rules(rules, "rules.yaml"),
        schemas={topic: known[name].json for name, topic in FULL.items() if name in known},
        allowed_disorder=None,
    )
    for event in events:
        kit.send(event.values, at=START_MS + event.after_ms, input=FULL[event.type])
    kit.watermark(END_MS)
    return (
        sorted((m.rule_id, m.match_id, m.key or "", repr(dict(m.measures))) for m in kit.matches),
        sorted((t.rule_id, t.match_id, t.already_matched) for t in kit.timeouts),
        sorted(repr((d.event.number, d.reason, d.rule_id, d.step)) for d in kit.dead_letters),
    )


def encoded(schema_id: int, schema: AvroSchema, values: Mapping[str, Any]) -> bytes:
    """An event as a producer writes it."""
    body = BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(schema.json), dict(values))
    return frame(schema_id, body.getvalue())


def of_job(rules: str, known: Mapping[str, AvroSchema], events: Sequence[Sent]) -> Any:
    """What the job finds."""
    numbers = {name: number for number, name in enumerate(known)}
    types = tuple(
        EventType(n, FULL[name], name, known[name], (FULL[name],), KAFKA_TIMESTAMP, "auto")
        for name, n in numbers.items()
    )
    writers: dict[SchemaId, tuple[WriterSchema, ...]] = {
        1 + n: (WriterSchema(1 + n, known[name], None, n),) for name, n in numbers.items()
    }
    records = []
    for offset, event in enumerate(events):
        value = encoded(1 + numbers[event.type], known[event.type], event.values)
        time = START_MS + event.after_ms
        records.append(Kafka(FULL[event.type], 0, offset, time, None, value))
    schemas = ResolvedSchemas(types, writers)
    loaded = load_rules(rules, "rules.yaml")
    plan = compile_rules((each.rule for each in loaded), record_types(schemas))
    settings = RunSettings("maximum")
    packing = Packing(schemas, DecodeOptions(settings.key_groups, None, keep_all=False))
    batch = Batch(kafka_records(records), watermark=END_MS)
    outputs = Runner(plan, packing, settings).apply(batch).outputs
    return (
        sorted(
            (m.rule_id, m.match_id, m.key or "", repr(dict(m.measures))) for m in outputs.matches
        ),
        sorted((t.rule_id, t.match_id, t.already_matched) for t in outputs.timeouts),
        sorted(repr((d.at.offset, d.reason, d.rule_id, d.step)) for d in outputs.dead_letters),
    )


#: Conditions on both record types, but for one that the check refuses.
ON_BOTH = [condition for condition in SHARED if "t = at" not in condition]
#: Measures over both record types, and over those of one.
MEASURES = {
    "kinds": "COLLECT(one.kind)", "most": "MAX(two.n)", "sum": "SUM(one.n)", "last": "LAST(two.k)",
    "double": "AVG(two.x)",
}  # fmt: skip
MEASURES_OF_ONE = {
    "amount": "SUM(one.amount)", "wide": "MIN(two.wide)", "float": "MAX(one.f) + 1",
    "time": "LAST(two.seen) - FIRST(one.seen)", "day": "MAX(one.day)", "tags": "LAST(one.tags)",
    "city": "CONCAT(LAST(one.place.city), '!')", "big": "SUM(two.big)", "raw": "FIRST(two.raw)",
}  # fmt: skip
LOOK_BACKS = ["n >= LAST(one.n)", "x > FIRST(one.x) OR x IS NULL", "kind <> LAST(one.kind)"]
LOOK_BACKS_OF_ONE = [
    "amount > LAST(one.amount) / 2", "seen >= FIRST(one.seen)", "f <> LAST(one.f) OR f IS NULL",
    "place.city = LAST(one.place.city)", "big + 1 > LAST(one.big)", "mood = FIRST(one.mood)",
]  # fmt: skip


def some_rules(random: Random, *, both: bool) -> str:
    """Rules over one record type or two, some with look-backs, keys and measures of all kinds; and
    some in SQL, to which NULL is a key, with the keys of others and their own."""
    rules = []
    for number in range(4):
        of_two = both and random.random() < 0.5
        conditions, measures = (ON_BOTH, MEASURES) if of_two else (CONDITIONS, MEASURES_OF_ONE)
        looks = LOOK_BACKS if of_two else LOOK_BACKS + LOOK_BACKS_OF_ONE
        first, second = random.sample(conditions, 2)
        if random.random() < 0.7:
            second = f"({second}) AND ({random.choice(looks)})"
        chosen = random.sample(sorted(measures), 3)
        key = random.choice(["k", ["k", "kind"], "UPPER(kind)"] if of_two else KEYS)
        rules.append(
            {
                "id": f"r-{number}",
                "events": ["t", "u"] if of_two else "t",
                "pattern": [
                    {"step": "one", "where": first},
                    {"step": "two", "after": "followed_by", "where": second},
                ],
                "within": "10 minutes",
                "emit": {"measures": {name: measures[name] for name in chosen}},
                **({} if key is None else {"key": key}),
            }
        )
    for number, columns in enumerate(random.sample(["k", "k, kind", "kind", "day", "ts, k"], 2)):
        if not both or columns.startswith("k"):
            condition = random.choice(["n >= PREV(n)", "x > FIRST(x)", "k IS NULL"])
            query = f"""SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY {columns} ORDER BY seen
              MEASURES COUNT(*) AS m, LAST(kind) AS l, FIRST(k) AS k2 PATTERN (one two+)
              WITHIN INTERVAL '10' MINUTES DEFINE two AS {condition})"""
            rules.append({"id": f"q-{number}", "sql": query})
    return yaml.safe_dump_all(rules)


def some_events(random: Random, known: Mapping[str, AvroSchema]) -> list[Sent]:
    """Events with values of all kinds, few of them equal in time."""
    events = []
    for _ in range(60):
        name = random.choice([*known])
        values = schemas._value(random, known[name], known[name].root, "")
        events.append(Sent(name, random.randrange(3_600_000), values))
    return events


@settings(max_examples=25, derandomize=True, database=None, phases=[Phase.generate])
@given(seed=st.integers(0, 2**32), both=st.booleans())
@pytest.mark.slow
def test_the_same_is_found(seed: int, both: bool) -> None:
    """Matches with their keys and measures, timeouts, and dead letters of keys and conditions."""
    random = Random(seed)
    known = {"t.Event": schemas.reader()}
    if both:
        known["t.Payment"] = parse(schemas.PAYMENT, "payment")
    rules, events = some_rules(random, both=both), some_events(random, known)
    assert of_kit(rules, known, events) == of_job(rules, known, events)


def case(where: str, *, key: str = "'all'", events: Any = "t", measure: str = "'-'") -> str:
    """A rule of one step."""
    step = {"step": "one", "where": where}
    emit = {"measures": {"measure": measure}}
    rule = {"id": "r", "events": events, "key": key, "pattern": [step], "emit": emit}
    return yaml.safe_dump(rule)


BOTH = ["t", "u"]


@pytest.mark.parametrize(
    ("rule", "columns", "values", "matches"),
    [
        # Numbers have the width of the column, and of the event's own record type.
        (case("f = 0.1"), {"f": "float"}, [{"f": 0.1}], 0),
        (case("f = 0.1"), {"f": "double"}, [{"f": 0.1}], 1),
        (case("n + 1 IS NULL", events=BOTH), {"n": ("int", "long")}, [{"n": 2**31 - 1}], (1, 0)),
        (case("n / 4 = 2.5"), {"n": "double"}, [{"n": 10}], 1),
        (
            case("f = 16777216", events=BOTH),
            {"f": ("float", "double")},
            [{"f": 16777217}],
            (1, 0),
        ),
        # Keys are texts as SQL writes them.
        (
            case("true", key="at"),
            {"at": MILLIS},
            [{"at": datetime(2026, 1, 2, hour, tzinfo=UTC)} for hour in (0, 3)],
            2,
        ),
        (case("true", key="day"), {"day": schemas.DAY}, [{"day": date(2026, 1, 2)}], 1),
        (case("true", key="a"), {"a": schemas.decimal(12, 2)}, [{"a": Decimal("1.50")}], 1),
        (case("true", key="ok"), {"ok": "boolean"}, [{"ok": True}], 1),
        # No key, and what fails.
        (case("true", key="k"), {"k": ["null", "string"]}, [{"k": None}, {"k": ""}], 1),
        (case("true", key="10 % n"), {"n": "int"}, [{"n": 0}, {"n": 2}], 1),
        # Times are cut to the column's unit, and are in UTC.
        (
            case("at = TIMESTAMP '2026-01-02 03:04:05.678'"),
            {"at": MILLIS},
            [{"at": datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC)}],
            1,
        ),
        (case("m = 'BAD'"), {"m": schemas.enum("GOOD", "BAD")}, [{"m": "BAD"}, {"m": "GOOD"}], 1),
        (case("n IS NOT DISTINCT FROM NULL"), {"n": ["null", "int"]}, [{"n": None}], 1),
        (
            case("true", measure="LAST(one.u)"),
            {"u": ["null", "string", "int"]},
            [{"u": 5}, {"u": "x"}, {"u": None}],
            3,
        ),
    ],
)  # fmt: skip
def test_values_are_those_of_the_schema(
    rule: str, columns: dict[str, Any], values: Sequence[Mapping[str, Any]], matches: Any
) -> None:
    """Kit and job find the same, of one record type or of two whose columns differ."""
    known: dict[str, AvroSchema] = {}
    for number, name in enumerate(FULL):
        own = {c: kind[number] if isinstance(kind, tuple) else kind for c, kind in columns.items()}
        known[name] = parse(record(name, **own), name)
    numbers = matches if isinstance(matches, tuple) else (matches,)
    for name, number in zip(known, numbers, strict=False):
        events = [Sent(name, after, one) for after, one in enumerate(values)]
        of_one = of_kit(rule, known, events)
        assert of_one == of_job(rule, known, events)
        assert len(of_one[0]) == number


def test_what_is_left_out_has_the_default_of_the_schema() -> None:
    """As a column that its writer does not have."""
    fields = {"n": field("int", default=7), "kind": "string"}
    event = parse(record("t.Event", **fields), "event")
    kit = RuleTest(load_rules(case("n = 7"), "r"), schemas={"t": event.json})
    kit.send(kind="a")
    kit.send(kind="a", n=8)
    kit.finish()
    assert [match.events() for match in kit.matches] == [[{"kind": "a"}]]


@pytest.mark.parametrize(
    ("kind", "value", "allowed"),
    [
        ("int", 2**31, "the column is INT"),
        ("long", 2**63, "the column is BIGINT"),
        ("long", 1.5, "the column is BIGINT"),
        ("int", True, "the column is INT"),
        ("string", 5, "the column is STRING"),
        ("string", "\ud800", "the column is STRING"),
        ("string", None, "the column is STRING"),
        (["null", "double"], "2000", "the column is DOUBLE or NULL"),
        (schemas.decimal(4, 2), Decimal("1.555"), r"the column is DECIMAL\(4, 2\)"),
        (schemas.enum("SEPA", "SWIFT"), "SWFIT", "the symbols are SEPA, SWIFT; did you mean"),
        (["null", schemas.enum("SEPA")], "SPO", "the symbols are SEPA"),
    ],
)  # fmt: skip
def test_what_no_producer_could_write_is_refused(kind: Any, value: Any, allowed: str) -> None:
    """With the column, the value and what is allowed."""
    event = record("t.Event", x=kind)
    kit = RuleTest(load_rules(case("x IS NULL"), "r"), schema=event)
    with pytest.raises(ValueError, match=rf"t\.Event\.x cannot be .*: {allowed}"):
        kit.send(x=value)
