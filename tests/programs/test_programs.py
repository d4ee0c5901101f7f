"""Conditions that look back as programs: each answers as the reference does, whether it is compiled
whole or has parts that Python computes."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from spark_cep.compiler.plan import LookBackAtom
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.matcher.steps.look_back_programs import program
from spark_cep.model import Coordinates
from spark_cep.pattern.checks.validation import refusals
from spark_cep.pattern.expressions import check_types, parse
from spark_cep.pattern.tree import Contiguity, Loop, Rule, Step, Times
from spark_cep.pattern.types import (
    BIGINT,
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
from spark_cep.programs.programs import Program
from tests.matcher.runs import END_OF_TIME, KEY, BothMatchers
from tests.reference.local import LocalJob, Record

EVENT = RecordType(
    {
        "key": STRING,
        "name": STRING,
        "i": INT,
        "j": BIGINT,
        "d": DOUBLE,
        "f": FLOAT,
        "b": BOOLEAN,
        "s": STRING,
        "day": DATE,
        "at": TIMESTAMP,
        "n": DecimalType(10, 2),
        "w": DecimalType(38, 10),
        "list": ArrayType(INT),
        "in": RecordType({"i": INT, "s": STRING}),
    }
)
TYPES = RecordTypes((("", "Event", EVENT),))
STEPS = frozenset("pqr")

_MOST_INT, _MOST_BIGINT = (1 << 31) - 1, (1 << 63) - 1
_NAN, _INF = math.nan, math.inf
#: What 0.1 becomes in a FLOAT.
_TENTH = 0.10000000149011612
_DAYS = [
    dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1969, 12, 31), dt.date.min, dt.date.max,
]  # fmt: skip


def moment(*parts: int) -> dt.datetime:
    """A point in time, in UTC."""
    return dt.datetime(*parts, tzinfo=dt.UTC)  # type: ignore[misc, arg-type]


def where(text: str) -> Any:
    """A condition of the last step."""
    return parse(text, steps=STEPS)


def record(number: int, name: str, values: Mapping[str, Any], key: str = "k") -> Record:
    """The event at a place of the stream, which is its time too."""
    return Record(Coordinates("t", 0, number), number, {**values, "name": name, "key": key})


def programs_of(rule: Rule, types: RecordTypes = TYPES) -> list[Program]:
    """The programs of a rule's conditions that look back."""
    (part,) = compile_rules([rule]).partitionings
    slots = {(slot.events, slot.of_type, slot.path): n for n, slot in enumerate(part.slots)}
    (plan,) = part.step_plans
    atoms = [atom for atom in plan.atoms if isinstance(atom, LookBackAtom)]
    return [program(atom, plan, slots, types) for atom in atoms]


def compiled_whole(rule: Rule, types: RecordTypes = TYPES) -> bool:
    """Whether Python computes no part of the rule's conditions."""
    return not any(each.calls for each in programs_of(rule, types))


# One condition, one answer.


def rule_for(condition: str, taken: int) -> Rule:
    """So many events, then at once one of which the condition is true."""
    first = Step("p", None, where("name = 'p'"), times=Times(taken, taken), loop=Loop.CONSECUTIVE)
    last = Step("q", Contiguity.NEXT, where(f"name = 'q' AND ({condition})"))
    return Rule("r", 1, (first, last), key=(KEY,))


def holds(
    condition: str,
    taken: Sequence[Mapping[str, Any]],
    event: Mapping[str, Any],
    types: RecordTypes = TYPES,
) -> bool:
    """Whether the condition is true of ``event`` behind ``taken``."""
    job = BothMatchers(compile_rules([rule_for(condition, len(taken))]), types)
    before = [record(number, "p", values) for number, values in enumerate(taken)]
    job.advance([*before, record(len(taken), "q", event)], END_OF_TIME)
    assert job.outputs.dead_letters == []
    return len(job.outputs.matches) == 1


def column(name: str, *values: Any) -> list[dict[str, Any]]:
    """Events that have this one column."""
    return [{name: value} for value in values]


#: Condition, events taken, the event in question; each holds.
TRUE: list[tuple[str, list[dict[str, Any]], dict[str, Any]]] = [
    # FIRST and LAST.
    ("LAST(p.i) = 3", column("i", 1, 2, 3), {}),
    ("LAST(p.i, 2) = 1", column("i", 1, 2, 3), {}),
    ("LAST(p.i, 3) IS NULL", column("i", 1, 2, 3), {}),
    ("FIRST(p.i) = 1", column("i", 1, 2, 3), {}),
    ("FIRST(p.i, 2) = 3", column("i", 1, 2, 3), {}),
    ("FIRST(p.i, 3) IS NULL", column("i", 1, 2, 3), {}),
    ("LAST(p.i) IS NULL AND FIRST(p.i) IS NULL", column("i", None, 2, None), {}),
    ("LAST(p.in.i) = 7 AND `in`.s = LAST(p.in.s)", column("in", {"i": 7, "s": "x"}),
     {"in": {"i": 1, "s": "x"}}),
    ("LAST(p.in.i) IS NULL", column("in", None), {}),
    # Aggregates skip NULLs; without any value they are NULL, COUNT 0.
    ("SUM(p.i) = 4", column("i", 1, None, 3), {}),
    ("SUM(p.i) IS NULL AND AVG(p.i) IS NULL", column("i", None, None), {}),
    ("MIN(p.i) IS NULL AND MAX(p.i) IS NULL", column("i", None), {}),
    ("COUNT(p.i) = 0 AND COUNT(p.*) = 2", column("i", None, None), {}),
    ("COUNT(p.i) = 2 AND COUNT(p.*) = 3", column("i", 1, None, 1), {}),
    ("COUNT(r.*) = 0 OR COUNT(p.*) = 9", column("i", 1), {}),
    ("AVG(p.i) = 1.5D", column("i", 1, None, 2), {}),
    ("AVG(p.j) = 9223372036854775808D", column("j", _MOST_BIGINT, _MOST_BIGINT), {}),
    ("MIN(p.i) = -2 AND MAX(p.i) = 3", column("i", 3, None, -2), {}),
    ("MIN(p.j) = -9223372036854775808", column("j", 0, -(1 << 63)), {}),
    ("MAX(p.j) = 9223372036854775807", column("j", 0, _MOST_BIGINT), {}),
    ("MIN(p.s) = 'A' AND MAX(p.s) = 'ü'", column("s", "z", "ü", "A", None), {}),
    ("MIN(p.b) = FALSE AND MAX(p.b)", column("b", True, False), {}),
    ("MIN(p.day) = DATE '1969-12-31'", column("day", _DAYS[0], _DAYS[2]), {}),
    ("MAX(p.at) = TIMESTAMP '2024-02-29 00:00:00.000001'",
     column("at", moment(2024, 2, 29), moment(2024, 2, 29, 0, 0, 0, 1)), {}),
    ("MIN(p.d) = -1 AND MAX(p.d) = 2", column("d", 2.0, -1.0, None), {}),
    ("MIN(p.d) = 1 AND MAX(p.d) = LAST(p.d)", column("d", 1.0, _NAN), {}),
    ("MIN(p.f) = LAST(p.f) AND MAX(p.f) = FIRST(p.f)", column("f", _INF, -_INF), {}),
    ("SUM(p.d) = LAST(p.d)", column("d", 1.0, _NAN), {}),
    ("SUM(p.d) IS NOT NULL AND SUM(p.d) > 1e308", column("d", _INF, -_INF), {}),
    ("SUM(p.f) = 0.5D", column("f", 0.25, 0.25), {}),
    # Comparisons of one type.
    ("i < LAST(p.i)", column("i", _MOST_INT), {"i": -_MOST_INT - 1}),
    ("j > LAST(p.j)", column("j", -(1 << 63)), {"j": _MOST_BIGINT}),
    ("j <> LAST(p.j)", column("j", 1 << 53), {"j": (1 << 53) + 1}),
    ("d = LAST(p.d)", column("d", _NAN), {"d": _NAN}),
    ("d > LAST(p.d) AND d >= LAST(p.d) AND d <> LAST(p.d)", column("d", _INF), {"d": _NAN}),
    ("d < LAST(p.d) AND d <= LAST(p.d)", column("d", _NAN), {"d": _INF}),
    ("d = LAST(p.d)", column("d", 0.0), {"d": -0.0}),
    ("f = LAST(p.f)", column("f", _TENTH), {"f": _TENTH}),
    ("b > LAST(p.b)", column("b", False), {"b": True}),
    ("s = LAST(p.s)", column("s", "ü"), {"s": "ü"}),
    # Text is in the order of code points, which is that of UTF-8; UTF-16 has another.
    ("s > LAST(p.s)", column("s", "\uffff"), {"s": "\U0001f600"}),
    ("s > LAST(p.s)", column("s", ""), {"s": "a"}),
    ("day > LAST(p.day)", column("day", dt.date.min), {"day": dt.date.max}),
    ("at > LAST(p.at)", column("at", moment(1969, 12, 31, 23, 59, 59, 999_999)),
     {"at": moment(1970, 1, 1)}),
    # Comparisons of two types.
    ("i = LAST(p.j)", column("j", 5), {"i": 5}),
    ("i < LAST(p.j)", column("j", _MOST_BIGINT), {"i": _MOST_INT}),
    ("j = LAST(p.d)", column("d", 2.0**53), {"j": (1 << 53) + 1}),
    ("j = LAST(p.d)", column("d", 2.0**63), {"j": _MOST_BIGINT}),
    ("i < LAST(p.d)", column("d", _NAN), {"i": 1}),
    ("d <> LAST(p.f)", column("f", _TENTH), {"d": 0.1}),
    ("day = LAST(p.at)", column("at", moment(2024, 2, 29)), {"day": _DAYS[1]}),
    ("day < LAST(p.at)", column("at", moment(2024, 2, 29, 0, 0, 0, 1)), {"day": _DAYS[1]}),
    ("at > LAST(p.day)", column("day", dt.date.min), {"at": moment(1, 1, 1, 0, 0, 0, 1)}),
    ("LAST(p.at) BETWEEN day AND DATE '2024-03-01'", column("at", moment(2024, 2, 29, 12)),
     {"day": _DAYS[1]}),
    # Constants.
    ("LAST(p.i) = 1 AND LAST(p.i) < 2L AND LAST(p.i) > 0.5D", column("i", 1), {}),
    ("LAST(p.s) = 'it''s ü'", column("s", "it's ü"), {}),
    ("LAST(p.s) <> 'only in the text'", column("s", "other"), {}),
    ("LAST(p.day) = DATE '2024-02-29'", column("day", _DAYS[1]), {}),
    ("LAST(p.at) = TIMESTAMP '2024-02-29 12:00:00'", column("at", moment(2024, 2, 29, 12)), {}),
    ("LAST(p.b) = TRUE AND FIRST(p.b) = FALSE", column("b", False, True), {}),
    ("(LAST(p.i) = NULL) IS NULL", column("i", 1), {}),
    ("(LAST(p.d) > NULL) IS NULL", column("d", 1.0), {}),
    # BETWEEN and IN.
    ("LAST(p.i) BETWEEN 1 AND 3", column("i", 3), {}),
    ("i BETWEEN FIRST(p.i) AND LAST(p.d)", [{"i": 1, "d": 0.0}, {"i": 9, "d": 2.5}], {"i": 2}),
    ("LAST(p.i) NOT BETWEEN 4 AND 9", column("i", 3), {}),
    ("(i BETWEEN 5 AND LAST(p.i)) IS FALSE", column("i", None), {"i": 1}),
    ("(i BETWEEN 1 AND LAST(p.i)) IS NULL", column("i", None), {"i": 1}),
    ("LAST(p.i) IN (1, 2, 3)", column("i", 2), {}),
    ("i IN (FIRST(p.i), LAST(p.i))", column("i", 5, 6), {"i": 6}),
    ("LAST(p.i) NOT IN (1, 2)", column("i", 3), {}),
    ("(LAST(p.i) IN (1, NULL)) IS NULL", column("i", 2), {}),
    ("LAST(p.i) IN (NULL, 2)", column("i", 2), {}),
    ("LAST(p.s) IN ('a', 'ü')", column("s", "ü"), {}),
    ("LAST(p.d) IN (1, 2)", column("d", 2.0), {}),
    ("day IN (LAST(p.at), DATE '2000-01-01')", column("at", moment(2024, 2, 29)),
     {"day": _DAYS[1]}),
    # All of a list is brought to DOUBLE where one of it is.
    ("j IN (LAST(p.j), 0.5D)", column("j", (1 << 53) + 1), {"j": 1 << 53}),
    # Logic of three values.
    ("LAST(p.b) OR i = 1", column("b", None), {"i": 1}),
    ("(LAST(p.b) OR i = 1) IS NULL", column("b", None), {"i": 2}),
    ("(LAST(p.b) AND i = 1) IS FALSE", column("b", None), {"i": 2}),
    ("(LAST(p.b) AND i = 1) IS NULL", column("b", None), {"i": 1}),
    ("(NOT LAST(p.b)) IS NULL", column("b", None), {}),
    ("NOT LAST(p.b)", column("b", False), {}),
    ("LAST(p.b) IS TRUE AND FIRST(p.b) IS FALSE", column("b", False, True), {}),
    ("LAST(p.b) IS NOT TRUE AND LAST(p.b) IS NOT FALSE", column("b", None), {}),
    ("(NULL OR LAST(p.b)) IS TRUE", column("b", True), {}),
    ("(LAST(p.b) AND b AND i = 1) = (i = LAST(p.i))", [{"b": True, "i": 1}], {"b": True, "i": 1}),
    # Arithmetic: DOUBLE.
    ("d = LAST(p.d) + 0.5D", column("d", 1.0), {"d": 1.5}),
    ("d > LAST(p.d) * 1.1", column("d", 10.0), {"d": 11.1}),
    ("LAST(p.d) < 1.5", column("d", 1.25), {}),
    ("d = LAST(p.d) - i", column("d", 1.0), {"d": -1.0, "i": 2}),
    ("d = LAST(p.d) * LAST(p.j)", [{"d": 0.5, "j": 3}], {"d": 1.5}),
    ("d = i / LAST(p.i)", column("i", 4), {"i": 1, "d": 0.25}),
    ("(i / LAST(p.i)) IS NULL", column("i", 0), {"i": 1}),
    ("(d / LAST(p.d)) IS NULL", column("d", -0.0), {"d": 1.0}),
    ("(d / LAST(p.d)) > 1e308", column("d", _NAN), {"d": 1.0}),
    ("d * LAST(p.d) = 1e308 * 10", column("d", 1e308), {"d": 10.0}),
    ("(LAST(p.d) + d) IS NULL", column("d", None), {"d": 1.0}),
    ("-LAST(p.d) = d", column("d", 2.0), {"d": -2.0}),
    ("-LAST(p.f) < d", column("f", _INF), {"d": 0.0}),
    ("(-LAST(p.d)) IS NULL", column("d", None), {}),
    # Arithmetic: INT; beyond its range is NULL.
    ("i = LAST(p.i) + 1", column("i", 1), {"i": 2}),
    ("i = LAST(p.i) - FIRST(p.i)", column("i", 1, 5), {"i": 4}),
    ("LAST(p.i) * 3 > i", column("i", 4), {"i": 11}),
    ("(LAST(p.i) + 1) IS NULL", column("i", _MOST_INT), {}),
    ("(LAST(p.i) - 1) IS NULL", column("i", -_MOST_INT - 1), {}),
    ("(LAST(p.i) * i) IS NULL", column("i", 46_341), {"i": 46_341}),
    ("LAST(p.i) * i = 2147395600", column("i", 46_340), {"i": 46_340}),
    ("(LAST(p.i) * i) IS NULL", column("i", -_MOST_INT - 1), {"i": -_MOST_INT - 1}),
    ("(LAST(p.i) + 1 - 1) IS NULL", column("i", _MOST_INT), {}),
    # Arithmetic: BIGINT, remainders, signs.
    ("i % LAST(p.i) = 1", column("i", 3), {"i": 7}),
    ("-LAST(p.i) = i", column("i", 3), {"i": -3}),
    ("-LAST(p.j) = j", column("j", 3), {"j": -3}),
    ("j + LAST(p.j) = 3", column("j", 1), {"j": 2}),
    ("(j + LAST(p.j)) IS NULL", column("j", _MOST_BIGINT), {"j": 1}),
    ("i * LAST(p.j) = 6", column("j", 2), {"i": 3}),
    ("COUNT(p.*) + 1 = 3", column("i", 1, 2), {}),
    ("i % LAST(p.i) = -1", column("i", 3), {"i": -7}),
    ("i % LAST(p.i) = 1", column("i", -3), {"i": 7}),
    ("(i % LAST(p.i)) IS NULL", column("i", 0), {"i": 7}),
    ("j % LAST(p.j) = 0", column("j", -1), {"j": -(1 << 63)}),
    ("d % LAST(p.d) = -1.5D", column("d", 2.0), {"d": -3.5}),
    ("(-LAST(p.j)) IS NULL AND ABS(LAST(p.j)) IS NULL", column("j", -(1 << 63)), {}),
    ("(-LAST(p.i)) IS NULL AND ABS(LAST(p.i)) IS NULL", column("i", -_MOST_INT - 1), {}),
    ("(j * LAST(p.j)) IS NULL", column("j", -1), {"j": -(1 << 63)}),
    ("(j - LAST(p.j)) IS NULL", column("j", 1), {"j": -(1 << 63)}),
    ("j * LAST(p.j) = -9223372036854775808", column("j", 1 << 62), {"j": -2}),
    ("ABS(i - LAST(p.i)) = 3", column("i", 5), {"i": 2}),
    # Decimals of up to 18 digits.
    ("LAST(p.n) = 1.50", column("n", Decimal("1.5")), {}),
    ("SUM(p.n) = 3", column("n", Decimal("1.25"), Decimal("1.75")), {}),
    ("i > LAST(p.n)", column("n", Decimal("1.5")), {"i": 2}),
    ("LAST(p.i) < 1.5", column("i", 1), {}),
    ("COUNT(p.n) = 1", column("n", Decimal(1)), {}),
    ("n + LAST(p.n) = 0.3 AND n - LAST(p.n) = -0.1", column("n", Decimal("0.20")),
     {"n": Decimal("0.10")}),
    ("n * 2 > LAST(p.n)", column("n", Decimal("0.99")), {"n": Decimal("0.50")}),
    ("n < LAST(p.d)", column("d", 0.11), {"n": Decimal("0.10")}),
    ("n = LAST(p.d)", column("d", 0.1), {"n": Decimal("0.10")}),
    ("n IN (1, LAST(p.n), 0.125)", column("n", Decimal("7.25")), {"n": Decimal("7.25")}),
    ("n BETWEEN 1.255 AND LAST(p.i)", column("i", 2), {"n": Decimal("1.26")}),
    ("MAX(p.n) - MIN(p.n) >= 99999999.99",
     column("n", Decimal("-0.01"), Decimal("99999999.99")), {}),
    ("COALESCE(LAST(p.n), n, 0) = 0", column("n", None), {"n": None}),
    ("-LAST(p.n) = ABS(n) - 2", column("n", Decimal(1)), {"n": Decimal(-1)}),
    # Choices.
    ("COALESCE(LAST(p.i), 7) = 7", column("i", None), {}),
    ("CASE WHEN LAST(p.i) = 1 THEN i = 2 ELSE FALSE END", column("i", 1), {"i": 2}),
    ("CASE WHEN b THEN 1 WHEN LAST(p.b) THEN 0.5 ELSE NULL END = 0.5", column("b", True), {}),
    ("CASE WHEN i > 1 THEN 'x' ELSE LAST(p.s) END = 's'", column("s", "s"), {"i": 1}),
    ("GREATEST(i, LAST(p.i), 2) = 5 AND LEAST(i, LAST(p.i)) = 1", column("i", 5), {"i": 1}),
    ("GREATEST(d, LAST(p.d)) = LAST(p.d)", column("d", _NAN), {"d": _INF}),
    ("LEAST(i, LAST(p.i)) = 4", column("i", None), {"i": 4}),
    ("CAST(LAST(p.i) AS DOUBLE) / 2 = d", column("i", 1), {"d": 0.5}),
    ("CAST(LAST(p.n) AS DOUBLE) = d", column("n", Decimal("0.3")), {"d": 0.3}),
    # Parts of a moment.
    ("HOUR(at) = HOUR(LAST(p.at))", column("at", moment(1969, 12, 31, 23, 1)),
     {"at": moment(2024, 1, 1, 23, 59)}),
    ("MINUTE(LAST(p.at)) = 59 AND SECOND(LAST(p.at)) = 58",
     column("at", moment(1969, 12, 31, 23, 59, 58, 1)), {}),
    ("UNIX_MILLIS(at) - UNIX_MILLIS(LAST(p.at)) = 1000", column("at", moment(1970, 1, 1)),
     {"at": moment(1970, 1, 1, 0, 0, 1)}),
    ("UNIX_SECONDS(LAST(p.at)) = -1", column("at", moment(1969, 12, 31, 23, 59, 59, 999_999)), {}),
    (f"(i IN ({', '.join(f'LAST(p.i, {n})' for n in range(20))})) IS NULL", column("i", 1), {}),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "taken", "event"), TRUE)
def test_compiled(condition: str, taken: list[dict[str, Any]], event: dict[str, Any]) -> None:
    """The condition is true, its negation is not, and no part of it needs Python."""
    assert compiled_whole(rule_for(condition, len(taken)))
    assert holds(condition, taken, event)
    assert not holds(f"NOT ({condition})", taken, event)


@pytest.mark.parametrize(("condition", "taken", "event"), TRUE)
def test_without_types(condition: str, taken: list[dict[str, Any]], event: dict[str, Any]) -> None:
    """Without known types Python computes it, and answers as the reference without them."""
    holds(condition, taken, event, RecordTypes())


#: Condition, events taken, the event in question; each holds, and Python computes some part of it.
CALLED: list[tuple[str, list[dict[str, Any]], dict[str, Any]]] = [
    ("UPPER(LAST(p.s)) = 'Ü'", column("s", "ü"), {}),
    ("LENGTH(s) > LENGTH(LAST(p.s))", column("s", "a"), {"s": "ab"}),
    ("LAST(p.s) LIKE 'a%'", column("s", "abc"), {}),
    ("s <=> LAST(p.s)", column("s", None), {"s": None}),
    ("s IS NOT DISTINCT FROM LAST(p.s)", column("s", "x"), {"s": "x"}),
    ("TRY_CAST(LAST(p.s) AS INT) = 5", column("s", "5"), {}),
    ("LAST(p.i) + NULL IS NULL", column("i", 1), {}),
    ("SUM(p.i + 1) = 5", column("i", 1, 2), {}),
    ("LAST(p.i * 2) = 4", column("i", 1, 2), {}),
    ("MAX(UPPER(p.s)) = 'B'", column("s", "a", "b"), {}),
    ("LAST(p.list)[0] = 4", column("list", [4, 5]), {}),
    ("SIZE(LAST(p.list)) = 2", column("list", [4, 5]), {}),
    ("LAST(p.in).i = 7", column("in", {"i": 7}), {}),
    ("SUM(p.n) + SUM(p.i) = 5.5", [{"n": Decimal("1.25"), "i": 3}, {"n": Decimal("1.25")}], {}),
    ("AVG(p.n) = 1.5", column("n", Decimal("1.25"), Decimal("1.75")), {}),
    ("n / LAST(p.n) = 0.5", column("n", Decimal(2)), {"n": Decimal(1)}),
    ("w > LAST(p.w)", column("w", Decimal("12345678901234567890.5")),
     {"w": Decimal("12345678901234567890.6")}),
    ("w + n > LAST(p.w) AND LOWER(s) = 'x'", column("w", Decimal(1)),
     {"w": Decimal(1), "n": Decimal("0.01"), "s": "X"}),
    ("CONCAT(LAST(p.s), s) = 'ab' AND CONCAT(s, 'c') = LAST(p.s, 1)", column("s", "bc", "a"),
     {"s": "b"}),
    ("CONCAT(LAST(p.s), 'z') > s", column("s", "b"), {"s": "ba"}),
    ("SIZE(list) = SIZE(LAST(p.list)) + 1", column("list", [1]), {"list": [1, 2]}),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "taken", "event"), CALLED)
def test_called(condition: str, taken: list[dict[str, Any]], event: dict[str, Any]) -> None:
    """What has no operation is computed by Python, and answered."""
    assert not compiled_whole(rule_for(condition, len(taken)))
    assert holds(condition, taken, event)
    assert not holds(f"NOT ({condition})", taken, event)


def test_only_the_part_without_operation_is_called() -> None:
    """The rest of a condition stays compiled."""
    (one,) = programs_of(rule_for("(UPPER(LAST(p.s)) = s) = (d > LAST(p.d) + 1)", 1))
    (call,) = one.calls
    assert str(call.kind) == "STRING"
    assert len(call.operands) == 1


def test_more_than_fits_on_the_stack() -> None:
    """A condition that needs more room than the machine has is one call of Python."""
    cases = " ".join(f"WHEN i = {number} THEN LAST(p.i) + {number}" for number in range(40))
    (one,) = programs_of(rule_for(f"CASE {cases} ELSE 0 END = 30", 1))
    assert len(one.calls) == 1
    assert holds(f"CASE {cases} ELSE 0 END = 30", column("i", 1), {"i": 29})


@pytest.mark.parametrize("count", [6, 7, 40])
def test_many_iterative_conditions(count: int) -> None:
    """A rule may have many conditions that look back; what comes of each combination of answers is
    found when it is met."""
    asked = " AND ".join(f"i > LAST(p.i) + {n}" for n in range(count))
    assert holds(asked, column("i", 0), {"i": count})
    assert not holds(asked, column("i", 0), {"i": count - 1})
    either = " OR ".join(f"i = LAST(p.i) + {n}" for n in range(count))
    assert holds(either, column("i", 0), {"i": count - 1})
    assert not holds(either, column("i", 0), {"i": count})


def test_all_steps() -> None:
    """Over the events of all steps, COUNT is compiled; a column may differ from type to type."""
    slots = {((), None, (name,)): number for number, name in enumerate(EVENT.fields)}
    (part,) = compile_rules([rule_for("LAST(p.i) = 1", 1)]).partitionings
    (plan,) = part.step_plans
    for text, called in (("COUNT(*) = 1", False), ("LAST(i) = 1", True)):
        atom = LookBackAtom(parse(text, steps=STEPS, measure=True), None, "q")
        assert bool(program(atom, plan, slots, TYPES).calls) is called


def test_types_that_differ() -> None:
    """A column that has one type here and another there is Python's, unless the step says which."""
    other = RecordType({"key": STRING, "name": STRING, "i": STRING})
    types = RecordTypes((("", "Event", EVENT), ("", "Other", other)))
    rule = rule_for("LAST(p.i) = 1", 1)
    assert not compiled_whole(rule, types)
    first, last = rule.pattern
    typed = Rule("r", 1, (replace(first, of_type="Event"), last), key=(KEY,))
    assert compiled_whole(typed, types)


@pytest.mark.parametrize(
    ("name", "value"), [("i", "many"), ("i", 1 << 64), ("d", "1,5"), ("day", 5), ("at", "now")]
)
def test_a_value_that_is_not_of_its_type(name: str, value: Any) -> None:
    """It is said, with the column: types that are said to be known must be right."""
    plan = compile_rules([rule_for(f"LAST(p.{name}) = {name}", 1)])
    job = LocalJob(plan, TYPES)
    with pytest.raises(ValueError, match=f"column {name} has a value that is no"):
        job.advance([record(0, "p", {name: value})], END_OF_TIME)


# Sums.


@pytest.mark.parametrize(
    ("given", "total"),
    [
        ([_MOST_BIGINT, 0], _MOST_BIGINT),
        ([_MOST_BIGINT, 1], None),
        ([_MOST_BIGINT, 1, -1], _MOST_BIGINT),
        ([_MOST_BIGINT] * 9 + [-_MOST_BIGINT] * 9, 0),
        ([-(1 << 63)] * 4 + [_MOST_BIGINT] * 4, -4),
        ([-(1 << 63), -1], None),
        ([-(1 << 63), -1, 1], -(1 << 63)),
        ([-1] * 5, -5),
        ([(1 << 32) - 1] * 3, 3 * ((1 << 32) - 1)),
        ([-(1 << 32)] * 3, -3 * (1 << 32)),
    ],
)
def test_a_sum_has_the_range_of_its_result(given: list[int], total: int | None) -> None:
    """However far the sums on the way to it go."""
    asked = "SUM(p.j) IS NULL" if total is None else f"SUM(p.j) = {total}"
    assert holds(asked, column("j", *given), {})
    for order in (given[::-1], sorted(given)):
        assert holds(asked, column("j", *order), {})


#: The order of addition decides about the result.
UNEVEN = [
    [0.1, 0.2, 0.3],
    [0.3, 0.2, 0.1],
    [1e308, 1e308, -1e308],
    [1e308, -1e308, 1e308],
    [1e16, 1.0, 1.0],
    [1.0, 1.0, 1e16],
    [-0.0, -0.0],
    [5e-324, 5e-324],
]


@pytest.mark.parametrize("given", UNEVEN)
@pytest.mark.parametrize(("function", "divisor"), [("SUM", 1), ("AVG", None)])
def test_sums_of_doubles_to_the_bit(function: str, divisor: int | None, given: list[float]) -> None:
    """They are added in the order of the events."""
    total = 0.0
    for value in given:
        total += value
    total /= divisor or len(given)
    assert holds(f"{function}(p.d) = d", column("d", *given), {"d": total})
    for beside in (math.nextafter(total, _INF), math.nextafter(total, -_INF)):
        if beside != total:
            assert not holds(f"{function}(p.d) = d", column("d", *given), {"d": beside})


def test_an_average_of_whole_numbers_is_a_sum_of_doubles() -> None:
    """Each is brought to DOUBLE before it is added."""
    given = [(1 << 53) + 1, 1, 1]
    mean = (float(given[0]) + 1 + 1) / 3
    assert mean != sum(given) / 3
    assert holds("AVG(p.j) = d", column("j", *given), {"d": mean})


# Random conditions.

NUMBERS = ("INT", "BIGINT", "DOUBLE")
COLUMNS = {
    "INT": ["i"], "BIGINT": ["j"], "DOUBLE": ["d", "f"], "BOOLEAN": ["b"], "STRING": ["s"],
    "DATE": ["day"], "TIMESTAMP": ["at"],
}  # fmt: skip
LITERALS = {
    "INT": ["0", "1", "-1", "2147483647", "-2147483648"],
    "BIGINT": ["1L", "9007199254740993", "9223372036854775807", "-9223372036854775808"],
    "DOUBLE": ["0D", "0.5D", "-1D", "1e308", "9007199254740992D"],
    "BOOLEAN": ["TRUE", "FALSE"],
    "STRING": ["''", "'a'", "'ü'", "'not in the stream'"],
    "DATE": ["DATE '1970-01-01'", "DATE '2024-02-29'"],
    "TIMESTAMP": ["TIMESTAMP '1970-01-01 00:00:00'", "TIMESTAMP '2024-02-29 00:00:00.000001'"],
}
POOLS: dict[str, list[Any]] = {
    "i": [None, 0, 1, 2, -1, 46_341, _MOST_INT, -_MOST_INT - 1],
    "j": [None, 0, 1, -1, 1 << 53, (1 << 53) + 1, _MOST_BIGINT, -(1 << 63)],
    "d": [None, 0.0, -0.0, 1.0, 0.1, 0.2, _NAN, _INF, -_INF, 1e308, 5e-324, 2.0**53, 2.0**63],
    "f": [None, 0.5, 1.0, _TENTH, _NAN, _INF],
    "b": [None, True, False],
    "s": [None, "", "a", "b", "ü", "\uffff", "\U0001f600"],
    "day": [None, *_DAYS],
    "at": [
        None, moment(1970, 1, 1), moment(2024, 2, 29), moment(2024, 2, 29, 0, 0, 0, 1),
        moment(1969, 12, 31, 23, 59, 59, 999_999),
    ],
}  # fmt: skip


@st.composite
def look_backs(draw: st.DrawFn, kind: str, steps: str) -> str:
    """A look-back of this type."""
    step = draw(st.sampled_from(steps))
    functions = ["FIRST", "LAST", "MIN", "MAX"]
    read = draw(st.sampled_from(COLUMNS[kind]))
    if kind == "BIGINT":
        functions += ["SUM", "SUM", "COUNT", "COUNT(*)"]
    elif kind == "DOUBLE":
        functions += ["SUM", "AVG"]
    function = draw(st.sampled_from(functions))
    if function == "COUNT(*)":
        return f"COUNT({step}.*)"
    if function == "COUNT":
        return f"COUNT({step}.{draw(st.sampled_from(list(POOLS)))})"
    if function == "SUM" and kind == "BIGINT":
        read = draw(st.sampled_from(["i", "j"]))
    if function == "AVG":
        read = draw(st.sampled_from(["i", "j", "d", "f"]))
    offset = draw(st.integers(0, 2)) if function in ("FIRST", "LAST") else 0
    return f"{function}({step}.{read}, {offset})" if offset else f"{function}({step}.{read})"


@st.composite
def terms(draw: st.DrawFn, kind: str, steps: str, depth: int = 2) -> str:
    """A value of this type."""
    shape = draw(st.integers(0, 7))
    if shape == 0:
        return draw(st.sampled_from(LITERALS[kind]))
    if shape <= 2:
        return draw(st.sampled_from(COLUMNS[kind]))
    if shape <= 5 or depth == 0 or kind not in ("INT", "DOUBLE"):
        return draw(look_backs(kind, steps))
    if kind == "DOUBLE" and shape == 6 and draw(st.booleans()):
        return f"(-({draw(look_backs(kind, steps))}))"
    operator = draw(st.sampled_from("+-*" if kind == "INT" else "+-*/"))
    sides = [kind, kind]
    if kind == "DOUBLE":
        # A quotient of whole numbers is DOUBLE, too.
        sides[draw(st.integers(0, 1))] = draw(st.sampled_from(NUMBERS))
    left, right = (draw(terms(side, steps, depth - 1)) for side in sides)
    return f"({left} {operator} {right})"


@st.composite
def alike(draw: st.DrawFn, steps: str, count: int) -> list[str]:
    """Values that can be compared with each other."""
    kind = draw(st.sampled_from([*NUMBERS, *NUMBERS, *COLUMNS]))
    family = next((f for f in (NUMBERS, ("DATE", "TIMESTAMP")) if kind in f), (kind,))
    kinds = [kind, *(draw(st.sampled_from(family)) for _ in range(count - 1))]
    return [draw(terms(each, steps)) for each in kinds]


@st.composite
def conditions(draw: st.DrawFn, steps: str, depth: int = 2) -> str:
    """A condition that looks back at any of ``steps``."""
    shape = draw(st.sampled_from(["compare"] * 4 + ["between", "in", "null", "boolean", "logic"]))
    if shape == "logic" and depth:
        more = [draw(conditions(steps, depth - 1)) for _ in range(draw(st.integers(1, 3)))]
        if len(more) == 1:
            test = draw(st.sampled_from(["NOT ({})", "({}) IS TRUE", "({}) IS FALSE"]))
            return test.format(more[0])
        joined = draw(st.sampled_from([" AND ", " OR "])).join(f"({one})" for one in more)
        # As a value, a junction stays one condition; else its parts are asked one by one.
        return f"({joined}) IS NOT NULL" if draw(st.integers(0, 3)) == 0 else joined
    if shape == "between":
        value, low, high = draw(alike(steps, 3))
        return f"{value} {draw(st.sampled_from(['', 'NOT ']))}BETWEEN {low} AND {high}"
    if shape == "in":
        value, *items = draw(alike(steps, draw(st.integers(2, 4))))
        items += ["NULL"] * (draw(st.integers(0, 3)) == 0)
        return f"{value} {draw(st.sampled_from(['', 'NOT ']))}IN ({', '.join(items)})"
    if shape == "null":
        value = draw(terms(draw(st.sampled_from(list(COLUMNS))), steps))
        return f"({value}) IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    if shape == "boolean":
        return draw(terms("BOOLEAN", steps))
    left, right = draw(alike(steps, 2))
    return f"{left} {draw(st.sampled_from(['=', '<>', '<', '<=', '>', '>=']))} {right}"


@st.composite
def rules(draw: st.DrawFn, number: int) -> Rule:
    """A loop, perhaps with a condition on its own events, then one or two steps that look back."""
    loop = draw(st.sampled_from([Loop.RELAXED, Loop.COMBINATIONS]))
    own = f"name = 'p' OR ({draw(conditions('p'))})" if draw(st.booleans()) else "name = 'p'"
    steps = [Step("p", None, where(own), times=Times(1, 3), loop=loop)]
    after = draw(st.sampled_from([Contiguity.NEXT, Contiguity.FOLLOWED_BY_ANY]))
    steps.append(Step("q", after, where(draw(conditions("p")))))
    if draw(st.booleans()):
        third = draw(conditions("pq"))
        steps.append(Step("r", Contiguity.FOLLOWED_BY_ANY, where(third), times=Times(1, 2)))
    rule = Rule(f"r{number}", 1, tuple(steps), key=(KEY,))
    assume(not any(refusals(rule)))
    for step in steps:
        assert step.where is not None
        assert check_types(step.where, EVENT, dict.fromkeys("pqr", EVENT)) == BOOLEAN
    return rule


@st.composite
def streams(draw: st.DrawFn) -> list[Record]:
    """Events of one key; each column from few values, so that they often meet."""
    return [
        record(
            number,
            draw(st.sampled_from("ppq")),
            {name: draw(st.sampled_from(pool)) for name, pool in POOLS.items()},
        )
        for number in range(draw(st.integers(2, 7)))
    ]


@pytest.mark.slow
def test_random_conditions() -> None:
    """Both matchers find and remember the same."""
    ran = matched = 0

    @settings(
        max_examples=150,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
    )
    @given(st.lists(st.integers(0, 2), min_size=1, max_size=2, unique=True), streams(), st.data())
    def agree(numbers: list[int], events: list[Record], data: st.DataObject) -> None:
        nonlocal matched, ran
        plan = compile_rules([data.draw(rules(number)) for number in numbers])
        ran += 1
        job = BothMatchers(plan, TYPES)
        cut = data.draw(st.integers(0, len(events)))
        job.advance(events[:cut], cut - 1)
        job.reload()
        job.advance(events[cut:], END_OF_TIME)
        assert job.outputs.dead_letters == []
        matched += bool(job.outputs.matches)

    agree()
    assert matched > 0.1 * ran
