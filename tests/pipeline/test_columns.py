"""Bits of events, and which events some rule wants: SQL against the conditions one by one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from service.codecs.avro_schema import parse
from service.codecs.registry import Registry
from service.codecs.registry_settings import RegistrySettings
from service.compiler.rule_set import Condition, Partitioning, compile_rules
from service.pattern.document import load_rules
from service.pattern.expressions import bind
from service.pipeline.catalogue import Catalogue, EventType
from service.pipeline.columns import WORD_BITS, partitioning_sql, word

pytestmark = pytest.mark.spark

ROWS = 600
#: Input and fields of each record type; the second one lacks what the first one has.
TYPES = (
    ("a", {"k": "string", "name": ["null", "string"], "n": ["null", "int"], "only": "string"}),
    ("b", {"k": "string", "name": ["null", "string"]}),
)
RECORDS_SQL = (
    "event_type INT, record_0 STRUCT<k: STRING, name: STRING, n: INT, only: STRING>,"
    " record_1 STRUCT<k: STRING, name: STRING>"
)
FORMS = (
    "name = '{0}'",
    "only = '{0}'",
    "'{0}' = name",
    "name = '{0}' OR k = '{0}'",
    "name = '{0}' AND k = '{1}'",
    "NOT (name = '{0}')",
    "name = 'it''s {0}'",
    "name = UPPER('{0}')",
    "name <=> '{0}'",
)
NAMES = [None, "", "it's v3", "V4", "v", *(f"v{number}" for number in range(0, 200, 3))]


def catalogue() -> Catalogue:
    """Both record types, which nobody writes."""
    types = []
    for number, (name, fields) in enumerate(TYPES):
        listed = [{"name": field, "type": kind} for field, kind in fields.items()]
        schema = {"type": "record", "name": name.upper(), "fields": listed}
        reader = parse(json.dumps(schema), name)
        types.append(EventType(number, name, name.upper(), reader, (name,), "k", "auto"))
    return Catalogue(Registry(RegistrySettings("http://localhost:1")), tuple(types), {})


def rules(count: int, random: Random) -> Partitioning:
    """Rules of one key; what they compare is drawn."""
    documents = []
    for number in range(count):
        inputs = random.choice([[], ["a"], ["b"], ["a", "b"]])
        steps: list[dict[str, str]] = []
        for step in "xy":
            forms = [*FORMS, "n = {2}"] if inputs == ["a"] else FORMS
            where = random.choice(forms[: random.choice([3, len(forms)])])
            values = (f"v{random.randrange(200)}", random.choice("pqr"), random.randrange(9))
            steps.append({"step": step, "where": where.format(*values)})
        steps[1]["after"] = random.choices(["followed_by", "next"], [9, 1])[0]
        events = {"events": inputs} if inputs else {}
        documents.append({"id": f"rule-{number}", "key": "k", "pattern": steps, **events})
    (part,) = compile_rules(
        loaded.rule for loaded in load_rules(yaml.safe_dump_all(documents), "t")
    ).partitionings
    return part


def holds(condition: Condition, known: Catalogue, kind: int, record: Mapping[str, Any]) -> bool:
    """The condition, computed by the core."""
    event_type = known.types[kind]
    if condition.events and event_type.input not in condition.events:
        return False
    if condition.expression is None:
        return True
    paths = sorted(condition.expression.columns)
    places = {path: place for place, path in enumerate(paths)}
    evaluate = bind(condition.expression, places, {}, event_type.columns)
    return evaluate([record.get(path[0]) for path in paths], []) is True


@pytest.mark.parametrize("count", [1, 40, 150])
def test_bits_are_those_of_each_condition(spark: SparkSession, count: int) -> None:
    """However many conditions compare one column, and are looked up together."""
    random = Random(count)
    known, part = catalogue(), rules(count, random)
    rows: list[tuple[Any, ...]] = []
    for _ in range(ROWS):
        name, k, n = random.choice(NAMES), random.choice("pqr"), random.choice([None, *range(9)])
        kind = random.randrange(2)
        only = random.choice(NAMES[1:])
        rows.append((0, (k, name, n, only), None) if kind == 0 else (1, None, (k, name)))
    sql = partitioning_sql(0, part, known)
    frame = spark.createDataFrame(rows, RECORDS_SQL)
    for number, text in enumerate(sql.words):
        frame = frame.withColumn(word(0, number), F.expr(text))
    words = [word(0, number) for number in range(len(sql.words))]
    answers = frame.select(*words, F.expr(sql.keep), F.expr(sql.relevant), F.expr(sql.reads))
    strict = 0
    for row, (*found, keep, relevant, reads) in zip(rows, answers.collect(), strict=True):
        record = dict(zip(TYPES[row[0]][1], row[1 + row[0]], strict=True))
        mask = sum(1 << i for i, c in enumerate(part.conditions) if holds(c, known, row[0], record))
        assert sum(each << WORD_BITS * place for place, each in enumerate(found)) == mask
        wanting = [
            rule.plan.relevant.evaluate(
                sum(1 << i for i, b in enumerate(rule.bits) if mask >> b & 1)
            )
            for rule in part.rules
            if mask >> rule.input_bit & 1
        ]
        assert relevant == any(wanting)
        assert keep == bool(list(part.touched(mask)))
        assert reads == bool(wanting)
        strict += keep and not relevant
    assert count == 1 or strict
    if count > 1:
        assert any(" IN ('v" in text for text in sql.words)


def test_strings_that_are_looked_up_together_count_once() -> None:
    """What decides whether all of it may be one generated method."""

    def evaluated(*conditions: str) -> int:
        pattern = [{"step": f"s{n}", "where": text} for n, text in enumerate(conditions)]
        for step in pattern[1:]:
            step["after"] = "followed_by"
        document = {"id": "r", "key": "k", "events": ["a"], "pattern": pattern}
        (part,) = compile_rules(
            loaded.rule for loaded in load_rules(yaml.safe_dump(document), "t")
        ).partitionings
        return partitioning_sql(0, part, catalogue()).evaluated

    one = evaluated("name = 'x'")
    assert evaluated("name = 'x'", "name = 'y'", "'z' = name") == one
    assert evaluated("name = 'x'", "only = 'y'") == one + 1
    assert evaluated("name = 'x'", "n > 1", "n > 2") == one + 2
