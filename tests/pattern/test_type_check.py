"""Types of a rule's expressions against the record types that its events may have."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from spark_cep.errors import Problem
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.several_types import merged
from spark_cep.pattern.type_check import type_check, type_warnings
from spark_cep.pattern.types import RecordType, record_type


def record(name: str, **fields: Any) -> RecordType:
    """A record type with these fields."""
    declared = [{"name": field, "type": kind} for field, kind in fields.items()]
    return record_type({"type": "record", "name": name, "namespace": "shop", "fields": declared})


PLACED = record("OrderPlaced", order_id="string", amount="double", ts="long", tag="string")
PAID = record("OrderPaid", order_id="string", ts="long", tag="int")
ORDERS = [("input a", "shop.OrderPlaced", PLACED), ("input b", "shop.OrderPaid", PAID)]


def problems(text: str) -> list[Problem]:
    """What the type check says of a rule, with orders as its events."""
    (loaded,) = load_rules("id: r\n" + textwrap.dedent(text).lstrip("\n"), "rule.yaml")
    return type_check(loaded, ORDERS)


def underlined(problem: Problem) -> str:
    """The characters that a problem points at."""
    assert problem.span is not None
    assert problem.excerpt is not None
    start = problem.span.column - 1
    return problem.excerpt[start : start + problem.span.length]


def test_right_rule_has_no_problem() -> None:
    """Columns of the step's own type, of any type, of other steps, and nested measures."""
    text = """
        key: order_id
        pattern:
          - {step: a, of_type: OrderPlaced, where: amount > 10}
          - {step: b, after: followed_by, of_type: shop.OrderPaid, where: ts > LAST(a.ts)}
          - {step: c, after: followed_by, where: amount > FIRST(a.amount) AND ts > 1}
        emit: {measures: {spent: SUM(a.amount)}, events: [amount, ts]}
    """
    assert problems(text) == []


SEVERAL = "column tag is STRING in shop.OrderPlaced (input a), INT in shop.OrderPaid (input b)"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("pattern: [{step: a, where: ts > 5 AND tag > 1000}]", "tag"),
        ("pattern: [{step: a, times: 1+, until: tag IS NULL}]", "tag"),
        (
            "pattern: [{step: a}, {step: b, after: next, where: ts > 1 AND LAST(a.tag) = 'x'}]",
            "a.tag",
        ),
        ("key: tag\npattern: [{step: a}]", "tag"),
        ("pattern: [{step: a}]\nemit: {measures: {m: MAX(a.tag)}}", "a.tag"),
        ("pattern: [{step: a}]\nemit: {events: [ts, tag]}", "tag"),
    ],
)
def test_a_column_of_several_types_is_refused(text: str, wrong: str) -> None:
    """Wherever it stands; the message names the record types, where they are from and what each
    has."""
    (problem,) = problems(text)
    assert (problem.rule, problem.message, underlined(problem)) == ("r", SEVERAL, wrong)
    assert "`of_type`" in str(problem.allowed)
    assert "`events`" in str(problem.allowed)


def test_of_type_says_which_type_a_column_has() -> None:
    """Then it has one."""
    text = """
        pattern:
          - {step: a, of_type: OrderPlaced, where: tag = 'x'}
          - {step: b, after: next, of_type: OrderPaid, where: tag = 1 AND LAST(a.tag) = 'x'}
        emit: {measures: {m: MAX(b.tag)}}
    """
    assert problems(text) == []


@pytest.mark.parametrize(
    ("one", "other", "several"),
    [
        ("int", "long", False),
        ("float", "double", False),
        ("int", ["null", "int"], False),
        ("null", "string", False),
        ("int", "double", True),
        ("string", {"type": "enum", "name": "E", "symbols": ["A"]}, False),
        ("long", {"type": "long", "logicalType": "timestamp-millis"}, True),
        ("string", ["int", "string"], True),
        (["string", "int"], ["int", "string"], True),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, True),
    ],
)
def test_types_that_are_one(one: Any, other: Any, several: bool) -> None:
    """Two sizes of a number are, other types are not; also of records of one name."""
    (loaded,) = load_rules("{id: r, pattern: [{step: a, where: x IS NULL}]}", "rule.yaml")
    known = [("input a", "shop.E", record("E", x=one)), ("input b", "shop.E", record("E", x=other))]
    found = [problem.message for problem in type_check(loaded, known)]
    assert len(found) == several
    assert all("in shop.E (input a)" in each and "in shop.E (input b)" in each for each in found)


@pytest.mark.parametrize(
    ("where", "several"),
    [("inner.x = 1", False), ("inner.y = 1", True), ("inner IS NULL", True), ("mixed.x = 1", True)],
)
def test_fields_of_records_that_differ(where: str, several: bool) -> None:
    """A field is looked at alone; the record as a whole is of several types."""

    def inner(name: str, y: str) -> dict[str, Any]:
        fields = [{"name": "x", "type": "int"}, {"name": "y", "type": y}]
        return {"type": "record", "name": name, "fields": fields}

    one = record("A", inner=inner("I", "int"), mixed=inner("M", "int"))
    two = record("B", inner=inner("J", "string"), mixed="string")
    (loaded,) = load_rules(f"{{id: r, pattern: [{{step: a, where: {where}}}]}}", "rule.yaml")
    assert len(type_check(loaded, [("", "A", one), ("", "B", two)])) == several


@pytest.mark.parametrize(
    ("step", "wrong"),
    [
        ("{step: a, where: amuont > 10}", "amuont"),
        ("{step: a, of_type: OrderPaid, where: amount > 10}", "amount"),
        ("{step: a, times: 1+, until: nothing = 1}", "nothing"),
        ("{step: a, where: 'x.y = 1'}", "x.y"),
    ],
)
def test_unknown_column_is_underlined(step: str, wrong: str) -> None:
    """A column must be in the step's type, or in any type where the step names none."""
    (problem,) = problems(f"pattern: [{step}]")
    assert (problem.rule, problem.step, underlined(problem)) == ("r", "a", wrong)


def test_unknown_record_type_is_refused() -> None:
    """`of_type` names a type of the input; the nearest one is named."""
    (problem,) = problems("pattern: [{step: a, of_type: OrderPiad, where: x = 1}]")
    assert problem.render() == (
        "rule.yaml:2:30: [rule r] [step a] unknown record type `OrderPiad`\n"
        "2 | pattern: [{step: a, of_type: OrderPiad, where: x = 1}]\n"
        "                                 ^^^^^^^^^\n"
        "  help: did you mean `OrderPaid`? record types here: OrderPaid,"
        " OrderPlaced, shop.OrderPaid, shop.OrderPlaced"
    )


def test_condition_must_be_true_or_false() -> None:
    """A number or a text is no condition."""
    (problem,) = problems("pattern: [{step: a, where: amount + 1}]")
    assert (problem.message, underlined(problem)) == (
        "`where` is a DOUBLE, not a condition",
        "amount + 1",
    )


def test_key_must_be_in_every_type_that_a_step_takes() -> None:
    """An event without key cannot be placed, so each type needs it."""
    text = "key: [order_id, amount]\npattern: [{step: a, of_type: OrderPaid}]"
    (problem,) = problems(text)
    assert underlined(problem) == "amount"
    whole = "key: [order_id, CAST(amount AS INT)]\npattern: [{step: a, of_type: OrderPlaced}]"
    assert problems(whole) == []


def test_a_key_over_columns_of_several_types() -> None:
    """An event has some of its columns; the others are NULL. One with none of them has no key."""
    steps = "pattern: [{step: a, of_type: OrderPlaced}, {step: b, after: next, of_type: OrderPaid}]"
    assert problems(f"key: COALESCE(order_id, CAST(amount AS STRING))\n{steps}") == []
    (problem,) = problems(f"key: CAST(amount AS STRING)\n{steps}")
    assert (problem.message, underlined(problem)) == ("the event has no column amount", "amount")
    (problem,) = problems(f"key: COALESCE(order_id, amuont)\n{steps}")
    assert (problem.message, underlined(problem)) == (
        "the event has no column amuont; did you mean amount?",
        "amuont",
    )


def test_a_double_is_no_key() -> None:
    """The text of a DOUBLE, by which keys are told apart, is not the same everywhere."""
    (problem,) = problems("key: amount\npattern: [{step: a, of_type: OrderPlaced}]")
    assert (problem.message, underlined(problem)) == ("the key is a DOUBLE", "amount")


def test_key_must_be_one_value() -> None:
    """A record or list is no key."""
    event = record("E", tags={"type": "array", "items": "string"})
    (loaded,) = load_rules("{id: r, key: tags, pattern: [{step: a}]}", "t")
    assert [p.message for p in type_check(loaded, [("", "E", event)])] == ["the key is an ARRAY"]


def test_measures_and_emitted_columns_are_checked() -> None:
    """Measures and the list of columns name columns that exist, and nothing else."""
    text = """
        pattern: [{step: a}]
        emit:
          measures: {total: SUM(a.amuont)}
          events: [amount, tz]
    """
    found = problems(text)
    assert {problem.span.line for problem in found if problem.span} == {4, 5}
    assert [underlined(problem) for problem in found][1:] == ["tz"]


def test_merged_records() -> None:
    """Fields of all types together; where they differ, nested records are merged, others open."""
    inner = {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}
    other = {"type": "record", "name": "J", "fields": [{"name": "y", "type": "int"}]}
    one = record("A", nested=inner, n="null", same="int", differs="int")
    two = record("B", nested=other, n="int", same="int", differs="string")
    expected = "STRUCT<nested: STRUCT<x: INT, y: INT>, n: INT, same: INT, differs: UNKNOWN>"
    assert str(merged([one, two])) == str(merged([two, one])).replace("y: INT, x", "x: INT, y")
    assert str(merged([one, two])) == expected
    assert merged([one]) is one


KIND = {"type": "enum", "name": "Kind", "symbols": ["SEPA", "SWIFT", "CARD"]}
OLD_KIND = {**KIND, "name": "OldKind", "symbols": ["SEPA", "CASH"]}
TRANSFER = record(
    "Transfer",
    kind=KIND,
    before=["null", "Kind"],
    text="string",
    inner={"type": "record", "name": "Inner", "fields": [{"name": "kind", "type": "Kind"}]},
    either=["string", "Kind"],
)
CASH = record("Cash", kind=OLD_KIND, text="string")
NOTE = record("Note", kind="string")


def warned(rule: str, *types: RecordType) -> list[Problem]:
    """The warnings about a rule on events of these types."""
    (loaded,) = load_rules("id: r\n" + rule, "rule.yaml")
    known = [("", kind.name, kind) for kind in types]
    assert type_check(loaded, known) == []
    return type_warnings(loaded, known)


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("kind = 'SPO'", "'SPO'"),
        ("'SWFT' = kind", "'SWFT'"),
        ("kind <> 'sepa'", "'sepa'"),
        ("kind IN ('SEPA', 'CRAD')", "'CRAD'"),
        ("NOT kind IN ('CRAD')", "'CRAD'"),
        ("text = 'x' OR before <=> 'NONE'", "'NONE'"),
        ("inner.kind = 'SPA' AND text = 'SPA'", "'SPA'"),
        ("CASE kind WHEN 'SEPA' THEN true WHEN 'SEPO' THEN false ELSE false END", "'SEPO'"),
        ("kind = 'CARD'", None),
        ("before IN ('SEPA', NULL)", None),
        ("text = 'SPO'", None),
        ("either.member1 = 'CARD'", None),
        ("kind LIKE 'S%'", None),
        ("UPPER(kind) = 'SPO'", None),
    ],
)
def test_a_symbol_that_an_enum_does_not_have_is_warned_about(
    condition: str, text: str | None
) -> None:
    """It stands in no event; the nearest one and all are named, and the place is underlined."""
    found = warned(f'key: text\npattern: [{{step: a, where: "{condition}"}}]', TRANSFER)
    assert [underlined(problem) for problem in found] == ([] if text is None else [text])
    for problem in found:
        assert (problem.rule, problem.step) == ("r", "a")
        assert f"{text} is no symbol of the enum " in problem.message
        assert "symbols here: SEPA, SWIFT, CARD" in str(problem.allowed)


def test_the_nearest_symbol_is_named() -> None:
    """As for columns."""
    (problem,) = warned("pattern: [{step: a, where: kind = 'SPA'}]", TRANSFER)
    assert problem.render().splitlines()[-1] == (
        "  help: did you mean `SEPA`? symbols here: SEPA, SWIFT, CARD"
    )


def test_symbols_of_several_record_types() -> None:
    """Those of any of them may come; text may be anything."""
    rule = "pattern:\n- {step: a, where: \"kind IN ('CASH', 'CARD', 'SPO')\"}"
    assert [underlined(problem) for problem in warned(rule, TRANSFER, CASH)] == ["'SPO'"]
    assert warned(rule, TRANSFER, CASH, NOTE) == []
    of_type = "pattern:\n- {step: a, of_type: Cash, where: \"kind IN ('CASH', 'CARD')\"}"
    assert [underlined(problem) for problem in warned(of_type, TRANSFER, CASH)] == ["'CARD'"]


def test_symbols_in_look_backs_and_measures() -> None:
    """Of the step that is looked back at."""
    rule = """
pattern:
  - {step: a, of_type: Transfer, times: 1+, until: kind = 'END'}
  - {step: b, of_type: Cash, after: followed_by, where: LAST(a.kind) = 'CASH'}
emit: {measures: {m: "IF(FIRST(b.kind) = 'CARD', 1, COUNT(a.*))"}}
"""
    found = warned(rule.lstrip(), TRANSFER, CASH)
    assert [underlined(problem) for problem in found] == ["'END'", "'CASH'", "'CARD'"]
