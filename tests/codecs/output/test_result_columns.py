"""Results that stayed columns: byte for byte the records that they would be as objects."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_cep.codecs.output.avro_results import AvroResults
from spark_cep.codecs.output.outputs import (
    MATCH_ID_HEADER,
    OutputEncoder,
    OutputRecord,
    OutputTopics,
)
from spark_cep.codecs.output.result_columns import EncodedResults
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import RuleSetPlan, compile_rules
from spark_cep.matcher.findings.chains import Chains
from spark_cep.matcher.findings.results import Results
from spark_cep.matcher.row_pattern import reporting
from spark_cep.model import Coordinates, Match, MatchRow, Timeout
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    RecordType,
)
from tests.codecs.output.test_outputs import noon
from tests.matcher.runs import END_OF_TIME, TYPES, taken_by
from tests.matcher.strategies import keyed_streams, rules
from tests.reference.job import ReferenceJob
from tests.reference.local import LocalJob, Record
from tests.sql_rules import sql_rule

TOPICS = ["t", "тема", "x" * 200]
OUTPUT_TOPICS = OutputTopics("matches", "timeouts", "late", "dead", "shadow", "rows")
TYPES_OF_RECORDS = ["Event", None, "a.b.Öther"]


def encoder(largest: int = 1_000_000) -> OutputEncoder:
    """Large ids, so that all four bytes count."""
    ids = AvroResults(0x01020304, 0xFFFFFFFF, 3, 4)
    return OutputEncoder(OUTPUT_TOPICS, ids, noon, largest)


def records_of(
    encode: OutputEncoder, encoded: EncodedResults, *, shadow: bool = False
) -> list[OutputRecord]:
    """As the writer puts them together."""
    headers = encode.result_headers(encoded)
    topic = encode.result_topic(encoded.kind, shadow=shadow)
    keys = [*encoded.keys.values(), None]
    return [
        OutputRecord(
            topic, keys[key], value, [*headers[rule], *([(MATCH_ID_HEADER, name)] if name else [])]
        )
        for rule, key, name, value in zip(
            encoded.rule, encoded.key, encoded.ids.values(), encoded.values.values(), strict=True
        )
    ]


def both(
    plan: RuleSetPlan, records: list[Record], encode: OutputEncoder, types: RecordTypes = TYPES
) -> tuple[list[OutputRecord], list[OutputRecord], LocalJob]:
    """The records of a job's results as objects, and as columns; and the second job."""
    as_objects, as_columns = LocalJob(plan, types), LocalJob(plan, types, columns=True)
    for job in (as_objects, as_columns):
        middle = records[len(records) // 2].time if records else 0
        job.advance(records, middle)
        job.reload()
        job.advance([], END_OF_TIME)
    assert as_columns.outputs.counts == as_objects.outputs.counts
    assert as_columns.outputs.dead_letters == as_objects.outputs.dead_letters
    found = []
    shadow = {(rule.id, rule.version) for rule in (each.rule for each in plan.plans[::2])}

    def is_shadow(result: Match | MatchRow | Timeout) -> bool:
        return (result.rule_id, result.rule_version) in shadow

    for job in (as_objects, as_columns):
        out = [encode.match(each, shadow=is_shadow(each)) for each in job.outputs.matches]
        out += [encode.timeout(each, shadow=is_shadow(each)) for each in job.outputs.timeouts]
        out += [encode.row(each, shadow=is_shadow(each)) for each in job.outputs.rows]
        for results in job.outputs.results:
            encoded, letters = encode.results(results)
            rest, apart = encoded.split(shadow)
            out += records_of(encode, rest) + records_of(encode, apart, shadow=True)
            out += [letter for _, letter in letters]
        found.append(sorted(out, key=repr))
    assert not as_objects.outputs.results
    assert not as_columns.outputs.rows
    return found[0], found[1], as_columns


@pytest.mark.slow
@settings(
    max_examples=150,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(data=st.data())
def test_columns_are_the_records_that_objects_would_be(data: st.DataObject) -> None:
    """Rules of all kinds, several at once, with keys, topics and types of all lengths."""
    each = data.draw(st.lists(rules(), min_size=1, max_size=3))
    plan = compile_rules(
        replace(rule, id=f"rule-{number}" + "é" * number, version=1 + 1000**number)
        for number, rule in enumerate(each)
    )
    key = {"k": data.draw(st.sampled_from(["k", "", "ключ" * 40])), "l": "l"}
    stream = [
        replace(
            record,
            at=Coordinates(TOPICS[number % 3], number % 5, record.at.offset * 10**12),
            type=TYPES_OF_RECORDS[number % 3],
            values={**record.values, "key": key[record.values["key"]]},
        )
        for number, record in enumerate(data.draw(keyed_streams()))
    ]
    as_objects, as_columns, _ = both(plan, stream, encoder())
    assert as_columns == as_objects


RULES = """\
id: ab
key: key
pattern:
  - {step: z, where: "name = 'a'"}
  - {step: b, after: followed_by, where: "name = 'b'", times: 1+}
  - {step: a, after: followed_by, where: "name = 'c'"}
within: 20 ms
---
id: measured
key: key
pattern:
  - {step: a, where: "name = 'a'"}
  - {step: b, after: followed_by, where: "name = 'b'"}
within: 10 ms
emit:
  measures: {price: a.price}
"""


def stream(count: int) -> list[Record]:
    """Letters in turn, of seven keys."""
    return [
        Record(
            Coordinates("t", 0, number),
            number,
            {"name": "abbcx"[number // 7 % 5], "price": number, "key": f"k{number % 7}"},
            type="Event",
        )
        for number in range(count)
    ]


def plan() -> RuleSetPlan:
    """One rule of each kind."""
    return compile_rules(loaded.rule for loaded in load_rules(RULES, "rules.yaml"))


def test_rules_that_emit_more_than_coordinates_are_columns() -> None:
    """In the same run as one that does not."""
    as_objects, as_columns, job = both(plan(), stream(400), encoder())
    assert as_columns == as_objects
    assert not job.outputs.matches + job.outputs.timeouts
    found = Counter(
        results.plans[rule].rule.id
        for results in job.outputs.results
        if isinstance(results, Results)
        for rule in results.rule
    )
    assert set(found) == {"ab", "measured"}
    assert min(found.values()) > 50


@pytest.mark.parametrize("largest", [280, 430, 445, 460, 470])
def test_what_is_too_large_is_a_dead_letter(largest: int) -> None:
    """The same ones, in the same words."""
    as_objects, as_columns, _ = both(plan(), stream(400), encoder(largest))
    assert as_columns == as_objects
    assert any(record.topic == "dead" for record in as_columns)
    assert all(record.size <= largest or record.topic == "dead" for record in as_columns)


def test_pieces_are_bounded_by_their_events() -> None:
    """But a single result with more stays whole."""
    lengths = [1, 9, 3, 25, 2, 2, 10, 4]
    count = sum(lengths)
    whole = Chains(
        np.cumsum(lengths),
        np.arange(count, dtype=np.int32) % 3,
        np.arange(count, dtype=np.int32)[::-1],
    )
    alike = np.ones(count, np.int64)
    pieces = list(whole.cut(alike, 10))
    assert all(len(piece.events) <= 10 or len(piece.ends) == 1 for _, piece in pieces)
    assert len(pieces) == 6
    taken = [taken_by(piece, row) for _, piece in pieces for row in range(len(piece.ends))]
    assert taken == [taken_by(whole, row) for row in range(len(lengths))]
    rows = [row for part, _ in pieces for row in range(len(lengths))[part]]
    assert rows == list(range(len(lengths)))
    assert [len(piece.ends) for _, piece in whole.cut(alike, 1)] == [1] * len(lengths)
    # The last event, which is the first that is taken, is heavy.
    heavy = np.where(np.arange(count) == count - 1, 8, 1)
    assert [len(piece.ends) for _, piece in whole.cut(heavy, 17)][:2] == [2, 1]


def test_large_payloads_make_small_pieces() -> None:
    """Results of rules that emit them are not all in memory as bytes at once."""
    text = RULES.replace("measures: {price: a.price}", "events: all")
    whole = compile_rules(loaded.rule for loaded in load_rules(text, "rules.yaml"))
    large = b"x" * 100_000
    records = [replace(record, payload=large) for record in stream(1_200)]
    job = LocalJob(whole, TYPES, columns=True)
    job.advance(records, END_OF_TIME)
    sizes = [
        sum(len(value or b"") for value in each.events.payload.values())
        for each in job.outputs.results
        if each.events.payload is not None
    ]
    assert len(sizes) > 2
    assert max(sizes) < 20_000_000


WITHIN = "WITHIN INTERVAL '5' MILLISECONDS DEFINE"
IN_SQL = {
    "a timeout for each row at which the search began": (
        f"PARTITION BY k ORDER BY ts MEASURES COUNT(*) AS n PATTERN (B+ A C) {WITHIN} "
        "A AS v = 0, B AS v = 1, C AS v = 2"
    ),
    "rows of an exclusion are taken, too": (
        "PARTITION BY k ORDER BY ts ALL ROWS PER MATCH AFTER MATCH SKIP TO NEXT ROW "
        f"PATTERN (A {{- B+ -}} C) {WITHIN} A AS v = 0, B AS v = 1, C AS v = 2"
    ),
    "some have no row": (
        f"ORDER BY ts MEASURES v AS v PATTERN (A B C) {WITHIN} "
        "A AS NEXT(v, 2) >= v, B AS v = 1, C AS v = 1"
    ),
    "a match without rows stands before one": (
        f"PARTITION BY k ORDER BY ts MEASURES MATCH_NUMBER() AS m, CLASSIFIER() AS c, v AS v "
        f"AFTER MATCH SKIP TO NEXT ROW PATTERN (A*) {WITHIN} A AS v = 0"
    ),
}
EVENT = RecordType({"k": STRING, "ts": BIGINT, "v": BIGINT})


def in_sql(clause: str, event: RecordType) -> tuple[RuleSetPlan, RecordTypes]:
    """The plan of a rule, and the type of the events of topic ``t``."""
    types = RecordTypes((("t", "Event", event),))
    statement = f"SELECT * FROM t MATCH_RECOGNIZE ({clause})"
    return compile_rules([sql_rule(statement, event, rule_id="правило")], types), types


def rows_of_letters(values: Sequence[Mapping[str, Any]]) -> list[Record]:
    """Events of two keys with these columns."""
    return [
        Record(
            Coordinates(TOPICS[number % 3], number % 5, number),
            number + 4 * (number // 9),
            {"k": "xy"[number % 2], "ts": 0, **columns},
            "t",
        )
        for number, columns in enumerate(values)
    ]


@pytest.mark.parametrize("name", IN_SQL)
def test_rules_in_sql(name: str) -> None:
    """Their matches and timeouts, with and without rows, and rows of the result."""
    plan, types = in_sql(IN_SQL[name], EVENT)
    records = rows_of_letters([{"v": int(v)} for v in "1110121012201120011210120112201210"])
    as_objects, as_columns, job = both(plan, records, encoder(), types)
    assert as_columns == as_objects
    assert not job.outputs.matches + job.outputs.timeouts
    outputs = job.outputs.as_objects()
    found: list[Match | Timeout] = [*outputs.matches, *outputs.timeouts]
    assert len(found) > 2
    takes = {bool(each.steps) for each in found}
    assert takes == ({True} if "row at" in name or "exclusion" in name else {True, False})


ROWS = "MEASURES COUNT(*) AS n, CLASSIFIER() AS c, MATCH_NUMBER() AS m ALL ROWS PER MATCH"
ROWS_IN_SQL = {
    "rows that no match covers": (
        f"PARTITION BY k ORDER BY ts {ROWS} WITH UNMATCHED ROWS PATTERN (A B C+?) "
        "DEFINE A AS v = 1, B AS v = 0, C AS v = 1"
    ),
    "rows of empty matches, of overlapping ones, without key": (
        f"ORDER BY ts {ROWS} AFTER MATCH SKIP TO NEXT ROW PATTERN (A* B?) "
        "DEFINE A AS v = 0, B AS v = 2"
    ),
}


@pytest.mark.parametrize("largest", [1_000_000, 370])
@pytest.mark.parametrize("most", [50_000, 4])
@pytest.mark.parametrize("name", ROWS_IN_SQL)
def test_rows_in_sql(name: str, largest: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte for byte the records of rows that are objects, also where pieces cut a match in two, and
    dead letters in place of those that are too large."""
    monkeypatch.setattr(reporting, "MOST_TAKEN_EVENTS", most)
    plan, types = in_sql(ROWS_IN_SQL[name], EVENT)
    records = rows_of_letters([{"v": int(v)} for v in "1110121012201120011210120112201210"])
    as_objects, as_columns, job = both(plan, records, encoder(largest), types)
    assert as_columns == as_objects
    topics = Counter(record.topic for record in as_columns)
    assert topics["dead"] > 2 if largest < 400 else topics["shadow"] > 30
    assert all(record.size <= largest for record in as_columns if record.topic != "dead")
    pieces = [len(each) for each in job.outputs.results]
    assert max(pieces) <= most
    rows = job.outputs.as_objects().rows
    assert len(rows) == sum(pieces)
    assert {row.variable is None for row in rows} == {True, False}
    assert ({row.match_id is None for row in rows} == {True, False}) == ("no match" in name)


def test_large_columns_make_small_pieces() -> None:
    """As payloads do, of rules in SQL, too."""
    of_text = RecordType({"k": STRING, "ts": BIGINT, "v": BIGINT, "text": STRING})
    records = rows_of_letters([{"v": 0, "text": "x" * 20_000}] * 3_000)
    for rows in ("ALL ROWS PER MATCH", "ONE ROW PER MATCH"):
        clause = f"ORDER BY ts MEASURES A.text AS t {rows} PATTERN (A) DEFINE A AS v = 0"
        plan, types = in_sql(clause, of_text)
        job = LocalJob(plan, types, columns=True)
        job.advance(records, END_OF_TIME)
        pieces = [len(each) for each in job.outputs.results]
        assert sum(pieces) == len(records)
        assert max(pieces) * 20_000 < 20_000_000


ALL_KINDS = RecordType(
    {
        "k": STRING,
        "ts": BIGINT,
        "v": BIGINT,
        "small": INT,
        "flag": BOOLEAN,
        "real": DOUBLE,
        "single": FLOAT,
        "text": STRING,
        "day": DATE,
        "moment": TIMESTAMP,
        "exact": DecimalType(10, 2),
        "large": DecimalType(38, 2),
        "list": ArrayType(BIGINT),
        "raw": BINARY,
    }
)
VALUES: list[dict[str, Any]] = [
    {},
    {
        "small": -1, "flag": True, "real": math.nan, "single": 0.5, "text": "",
        "day": date(1969, 12, 31), "moment": datetime(2026, 1, 1, tzinfo=UTC),
        "exact": Decimal("-1.50"), "large": Decimal("1e30"), "list": [1, None], "raw": b"\0",
    },
    {
        "small": 2**31 - 1, "flag": False, "real": -0.0, "single": -math.inf, "text": "тема\0",
        "day": date(9999, 12, 31), "moment": datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
        "exact": Decimal("12345678.99"), "large": Decimal(0), "list": [], "raw": b"",
    },
]  # fmt: skip


@settings(max_examples=20, derandomize=True, database=None, deadline=None)
@given(st.lists(st.sampled_from(VALUES), min_size=12, max_size=40))
def test_measures_of_all_types(values: list[dict[str, Any]]) -> None:
    """NULLs among them, and values that Python computes."""
    names = [name for name in ALL_KINDS.fields if name not in ("k", "ts", "v")]
    measures = ", ".join(f"{row}.{name} AS {row}_{name}" for name in names for row in "ab")
    clause = (
        f"PARTITION BY k ORDER BY ts MEASURES {measures}, UPPER(a.text) AS up, COUNT(*) AS n,"
        " SUM(real) AS total, MATCH_NUMBER() AS m, a.v * 9223372036854775807 AS none"
        " AFTER MATCH SKIP TO NEXT ROW PATTERN (a b?) DEFINE b AS v = 1"
    )
    plan, types = in_sql(clause, ALL_KINDS)
    nothing = dict.fromkeys(names)
    records = rows_of_letters(
        [{**nothing, **each, "v": 2**61 * (n % 3) + n % 2} for n, each in enumerate(values)]
    )
    as_objects, as_columns, job = both(plan, records, encoder(), types)
    assert as_columns == as_objects
    assert not job.outputs.matches
    # The last row of each key waits for another.
    assert sum(map(len, job.outputs.results)) == len(values) - 2


OF_STEPS = """\
id: r{number}
key: k
pattern:
  - {{step: a, where: "v >= 0"}}
  - {{step: b, after: next, where: "v < 0", times: 1+, optional: true}}
within: 9 ms
emit:
{emit}
"""


@settings(max_examples=20, derandomize=True, database=None, deadline=None)
@given(st.lists(st.sampled_from(VALUES), min_size=12, max_size=40), st.booleans())
def test_rules_of_steps_emit_all_types(values: list[dict[str, Any]], known: bool) -> None:
    """NULLs among them, measures that fail, columns and payloads, of several rules in one table;
    as the records of the reference's matches, which are objects, with types and without."""
    names = [name for name in ALL_KINDS.fields if name not in ("k", "ts", "v")]
    measures = ", ".join(f"{step}_{name}: {step}.{name}" for name in names for step in "ab")
    measures += ", up: UPPER(a.text), n: COUNT(b.v), total: SUM(b.real), some: 'COLLECT(b.v, 2)'"
    wrong = "a.real + 1" if known else "a.list + 1"
    emits = (
        f"  measures: {{{measures}, wrong: {wrong}}}",
        f"  events: [{', '.join(names)}]",
        f"  events: all\n  measures: {{b_raw: b.raw, wrong: {wrong}}}",
        "  events: none",
    )
    text = "---\n".join(OF_STEPS.format(number=n, emit=emit) for n, emit in enumerate(emits))
    types = RecordTypes((("t", "Event", ALL_KINDS),)) if known else RecordTypes()
    plan = compile_rules([loaded.rule for loaded in load_rules(text, "rules.yaml")], types)
    rows = [
        {**dict.fromkeys(names), **each, "v": -1 if n % 4 > 1 else 1}
        for n, each in enumerate(values)
    ]
    records = [
        replace(each, payload=None if n % 5 == 0 else b"p" * (n % 4), type="Event")
        for n, each in enumerate(rows_of_letters(rows))
    ]
    reference = ReferenceJob(plan, types)
    job = LocalJob(plan, types, columns=True)
    for each in (reference, job):
        each.advance(records, END_OF_TIME)
    encode = encoder()
    as_objects = [encode.match(match) for match in reference.outputs.matches]
    as_objects += [encode.timeout(timeout) for timeout in reference.outputs.timeouts]
    as_columns = [
        record
        for results in job.outputs.results
        for record in records_of(encode, encode.results(results)[0])
    ]
    assert sorted(as_columns, key=repr) == sorted(as_objects, key=repr) != []
    letters = job.outputs.dead_letters
    assert sorted(letters, key=repr) == sorted(reference.outputs.dead_letters, key=repr)
    fails = not known and any(each for n, each in enumerate(values) if n % 4 < 2)
    assert {each.detail.split(":")[0] for each in letters} == ({"wrong"} if fails else set())
    as_objects, as_columns, _ = both(plan, records, encoder(700), types)
    assert as_columns == as_objects
    assert any(record.topic == "dead" for record in as_columns)
