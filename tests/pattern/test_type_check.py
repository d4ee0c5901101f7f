"""Types of a rule's expressions against the record types that its events may have."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from service.errors import Problem
from service.pattern.document import load_rules
from service.pattern.type_check import merged, type_check
from service.pattern.types import RecordType, record_type


def record(name: str, **fields: Any) -> RecordType:
    """A record type with these fields."""
    declared = [{"name": field, "type": kind} for field, kind in fields.items()]
    return record_type({"type": "record", "name": name, "namespace": "shop", "fields": declared})


PLACED = record("OrderPlaced", order_id="string", amount="double", ts="long", tag="string")
PAID = record("OrderPaid", order_id="string", ts="long", tag="int")
ORDERS = {
    "OrderPlaced": PLACED,
    "shop.OrderPlaced": PLACED,
    "OrderPaid": PAID,
    "shop.OrderPaid": PAID,
}


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
          - {step: c, after: followed_by, where: amount > FIRST(a.amount) AND tag = 1}
        emit: {measures: {spent: SUM(a.amount)}, events: [amount, ts]}
    """
    assert problems(text) == []


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


def test_a_double_is_no_key() -> None:
    """The text of a DOUBLE, by which keys are told apart, is not the same everywhere."""
    (problem,) = problems("key: amount\npattern: [{step: a, of_type: OrderPlaced}]")
    assert (problem.message, underlined(problem)) == ("the key is a DOUBLE", "amount")


def test_key_must_be_one_value() -> None:
    """A record or list is no key."""
    event = record("E", tags={"type": "array", "items": "string"})
    (loaded,) = load_rules("{id: r, key: tags, pattern: [{step: a}]}", "t")
    assert [p.message for p in type_check(loaded, {"E": event})] == ["the key is an ARRAY"]


def test_measures_and_emitted_columns_are_checked() -> None:
    """Measures and the list of columns name columns that exist, and nothing else."""
    text = """
        pattern: [{step: a}]
        emit:
          measures: {total: SUM(a.amuont)}
          events: [amount, tz, amount + 1, "'"]
    """
    found = problems(text)
    assert {problem.span.line for problem in found if problem.span} == {4, 5}
    assert [underlined(problem) for problem in found][1:3] == ["tz", "amount + 1"]
    assert found[2].message == "`amount + 1` is not a column"


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
