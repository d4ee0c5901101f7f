"""Plans as data: what comes back is the plan, in all parts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from random import Random
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.rules import PAYMENTS
from bench.rules import document as bench_rule
from bench.sql_rules import SCENARIOS
from spark_cep.compiler.formula import All, AnyOf, Atom, Constant, Formula, Not
from spark_cep.compiler.plan import Plan
from spark_cep.compiler.plan_data import PLAN_DATA
from spark_cep.compiler.row_pattern import RowPatternPlan, plan_query
from spark_cep.compiler.rule_set import AnyPlan, compile_rule, compile_rules
from spark_cep.errors import RuleSetError, StateError
from spark_cep.packing import pack, unpack
from spark_cep.pattern.document.loading import examine_sql_file, load_rules
from spark_cep.pattern.expressions import Expression, parse
from spark_cep.pattern.sql import load_query
from spark_cep.pattern.tree import Rule
from spark_cep.pattern.types import (
    ArrayType,
    DecimalType,
    MapType,
    PrimitiveType,
    RecordType,
    SqlType,
    UnreadableType,
)
from spark_cep.rules.sources.folder import read_rules
from tests.conformance import cases, plan_of
from tests.conformance.match_recognize import query_of
from tests.conftest import ROOT
from tests.matcher.row_pattern.clauses import EVENT, clauses
from tests.matcher.strategies import rules as rules_that_run
from tests.pattern.document.test_canonical import rules as rules_of_all_fields
from tests.pattern.expressions.random_text import random_expressions
from tests.pattern.expressions.samples import EXPRESSIONS
from tests.sql_rules import rule_of

SPEC = ROOT / "tests" / "spec"
#: Bases, of whose parts each is one of these.
CLOSED = {
    Formula: (Constant, Atom, Not, All, AnyOf),
    SqlType: (PrimitiveType, DecimalType, ArrayType, MapType, RecordType, UnreadableType),
}


def parts(value: Any) -> Any:
    """All that is in a value, with its types; without what takes no part in equality and has a
    default. Equality alone says less: of an expression it asks for the text."""
    if is_dataclass(value):
        kept = [
            each
            for each in fields(value)
            if each.compare or (each.name in ("text", "source") and not isinstance(value, Rule))
        ]
        inner = [(each.name, parts(getattr(value, each.name))) for each in kept]
        return type(value).__qualname__, type(value).__module__, inner
    if isinstance(value, Mapping):
        return [(parts(key), parts(each)) for key, each in value.items()]
    if isinstance(value, tuple):
        return "tuple", [parts(each) for each in value]
    if isinstance(value, frozenset):
        return "frozenset", sorted(map(repr, value))
    return type(value), repr(value)


def comes_back(plan: AnyPlan) -> None:
    """The plan is the same after its way through data, and its text and fingerprint are."""
    back = PLAN_DATA.tree_of(PLAN_DATA.bytes_of(plan))
    assert back == plan
    assert parts(back) == parts(plan)
    assert (back.fingerprint, str(back)) == (plan.fingerprint, str(plan))


def in_sql(text: str, name: str) -> list[Rule]:
    """The rules of a file in SQL."""
    loaded, problems = examine_sql_file(text, name)
    assert not problems
    return [one.rule for one in loaded]


def written() -> Iterator[tuple[str, Rule]]:
    """The rules of the examples, the demo and the benchmarks."""
    for folder in ("examples/rules", "examples/ververica", "examples/demo/rules"):
        for rule in read_rules(ROOT / folder).rules:
            yield f"{folder}/{rule.id}", rule
    texts = {str(each.relative_to(ROOT)): each.read_text("utf-8") for each in sql_files()}
    texts |= {f"bench/{each.name}.sql": each.in_sql for each in SCENARIOS}
    for name, text in texts.items():
        for rule in in_sql(text, name):
            yield name, rule
    texts = {"payments": PAYMENTS.read_text("utf-8")}
    texts |= {f"bench/{each.name}.yaml": each.in_yaml for each in SCENARIOS}
    for name in ("fails", "relevant", "look_back", "open", "untouched"):
        texts[name] = bench_rule(name, 60_000, "7", 3)
    for name, text in texts.items():
        for one in load_rules(text, name):
            yield f"{name}/{one.rule.id}", one.rule


def sql_files() -> list[Path]:
    """The rules in SQL of the examples."""
    return sorted((ROOT / "examples").rglob("*.sql"))


@pytest.mark.parametrize(
    "rule", [rule for _, rule in written()], ids=[name for name, _ in written()]
)
def test_rules_that_are_written_down(rule: Rule) -> None:
    """Examples and benchmarks."""
    comes_back(compile_rule(rule))
    assert PLAN_DATA.tree_of(PLAN_DATA.bytes_of(rule)) == rule


@pytest.mark.parametrize("name", ["flink-answers.jsonl", "flink-answers-random.jsonl"])
def test_rules_with_answers_of_flink(name: str) -> None:
    """All that are not refused."""
    found = 0
    for case in cases(SPEC / name):
        try:
            (plan,) = plan_of(case).plans
        except RuleSetError:
            continue
        comes_back(plan)
        found += 1
    assert found > 50


def test_statements_with_answers_of_trino() -> None:
    """All that are not refused."""
    found = 0
    for case in cases(SPEC / "trino-answers.jsonl"):
        try:
            query = query_of(case)
        except RuleSetError:
            continue
        comes_back(plan_query(query))
        found += 1
    assert found > 50


@given(rules_that_run())
def test_random_rules(rule: Rule) -> None:
    """Of steps and groups of all kinds."""
    comes_back(compile_rule(rule))


@settings(max_examples=50)
@given(rules_of_all_fields())
def test_random_rules_with_all_fields(rule: Rule) -> None:
    """Also those that are no part of the plan."""
    comes_back(compile_rule(rule))


@given(clauses())
def test_random_statements(drawn: tuple[str, object]) -> None:
    """With and without the types of events."""
    for event in (None, EVENT):
        query = load_query(drawn[0], "random", event)
        (plan,) = compile_rules([rule_of(query)]).plans
        comes_back(plan)


@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_expressions(seed: int) -> None:
    """With constants of all types, and the random ones of other tests."""
    for text in [*EXPRESSIONS, *random_expressions(Random(seed), 20)]:
        one = parse(text)
        back: Expression = PLAN_DATA.tree_of(PLAN_DATA.bytes_of(one))
        assert parts(back) == parts(one)


def test_a_deep_expression() -> None:
    """As deep as can be read: rows of data are not nested in one another."""
    one = parse(" + ".join(["x"] * 60))
    assert parts(PLAN_DATA.tree_of(PLAN_DATA.bytes_of(one))) == parts(one)


def _classes(hint: Any) -> Iterator[type]:
    if get_args(hint):
        for each in get_args(hint):
            yield from _classes(each)
    elif hint in CLOSED:
        yield from CLOSED[hint]
    elif isinstance(hint, type) and (is_dataclass(hint) or issubclass(hint, Enum)):
        yield hint


def test_the_classes_are_those_of_plans() -> None:
    """Each class that stands in a field of a plan, or of what is in it, and no other."""
    found: set[type] = set()
    waiting: list[type] = [Plan, RowPatternPlan]
    while waiting:
        kind = waiting.pop()
        if kind in found:
            continue
        found.add(kind)
        if is_dataclass(kind):
            for hint in get_type_hints(kind).values():
                waiting += _classes(hint)
    assert set(PLAN_DATA.classes.values()) == found


def test_an_unknown_class() -> None:
    """Has no place in the data, and is refused by its name there."""
    with pytest.raises(TypeError, match="of type object has no place in a tree"):
        PLAN_DATA.bytes_of(object())
    version, rows = unpack(PLAN_DATA.bytes_of(parse("x = 1")))
    data = pack([version, json.loads(json.dumps(rows).replace('"Call"', '"system"'))])
    with pytest.raises(StateError, match="of the unknown kind 'system'"):
        PLAN_DATA.tree_of(data)
