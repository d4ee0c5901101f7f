"""Compiled arithmetic computes what the reference does, at the ends of each type above all.

Each operation is asked in the three places where compiled code computes: conditions that the
decoder answers, look-backs of step rules, and conditions of row patterns.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.representation import Representation, representation, to_whole
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.row_pattern import plan_query
from spark_cep.compiler.rule_set import Condition, compile_rules
from spark_cep.matcher.batch.events import EventTable, Names
from spark_cep.model import Coordinates, Event
from spark_cep.pattern.expressions import bind, check_types, parse
from spark_cep.pattern.expressions.values.arithmetic import equal
from spark_cep.pattern.sql import load_query
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
    DecimalType,
    RecordType,
    SqlType,
)
from spark_cep.programs.event_masks import Bit, EventMasks, event_masks
from spark_cep.programs.loops import expression_loop as op
from tests.matcher.runs import END_OF_TIME, KEY
from tests.programs.test_programs import compiled_whole, moment, record, where
from tests.reference.local import LocalJob
from tests.reference.row_pattern.compiled import Loops, States
from tests.reference.row_pattern.results import objects

Pair = tuple[Any, Any]

RANGES: dict[SqlType, tuple[int, int]] = {
    INT: (-(1 << 31), (1 << 31) - 1),
    BIGINT: (-(1 << 63), (1 << 63) - 1),
}
_WHOLE_ENDS = [None, 0, 1, -1, 2, -3, 46_341]
_ENDS: dict[SqlType, list[Any]] = {
    INT: [*_WHOLE_ENDS, 46_340, -46_341, (1 << 31) - 1, 1 - (1 << 31), -(1 << 31)],
    # The product of 124258542541001689 and 2147483647 wraps to a positive number.
    BIGINT: [
        *_WHOLE_ENDS, 124_258_542_541_001_689, (1 << 31) - 1, 1 << 33, 3_037_000_499,
        3_037_000_500, -3_037_000_500, (1 << 53) + 1, 1 << 62, (1 << 63) - 1, 1 - (1 << 63),
        -(1 << 63),
    ],
    DOUBLE: [
        None, 0.0, -0.0, 1.0, -0.5, 0.1, 5e-324, 2.0**53, -(2.0**63), 2.0**63,
        1.7976931348623157e308, math.inf, -math.inf, math.nan,
    ],
    FLOAT: [
        None, 0.0, -0.0, 1.0, 0.10000000149011612, 2.0**-149, -(2.0**63), 3.4028234663852886e38,
        math.inf, math.nan,
    ],
    DATE: [None, dt.date.min, dt.date.max, dt.date(1970, 1, 1), dt.date(1969, 12, 31)],
    TIMESTAMP: [
        None, moment(1, 1, 1), moment(9999, 12, 31), moment(9999, 12, 31, 23, 59, 59, 999_999),
        moment(1970, 1, 1), moment(1969, 12, 31, 23, 59, 59, 999_999),
    ],
}  # fmt: skip


def ends(kind: SqlType) -> list[Any]:
    """The values of a type at which arithmetic may go wrong, and NULL."""
    if isinstance(kind, DecimalType):
        most = 10**kind.precision - 1
        wholes = (0, 1, -1, min(10**kind.scale, most), most, -most)
        return [None, *(Decimal(whole).scaleb(-kind.scale) for whole in wholes)]
    return _ENDS[kind]


class Operation(NamedTuple):
    """An expression of columns of these types, ``{x}`` and ``{y}``.

    An aggregate, of step or variable ``{p}``, is over three events: their ``x`` are the first value
    of a pair, the second, and the first again.
    """

    text: str
    x: SqlType
    y: SqlType

    def __str__(self) -> str:
        return f"{self.text.format(x='x', y='y', p='p')} of {self.x} and {self.y}"

    @property
    def aggregates(self) -> bool:
        """True where it is over events taken before."""
        return "{p}" in self.text

    @property
    def event(self) -> RecordType:
        """The columns, and ``z``, which the result is compared with."""
        columns = {"key": STRING, "name": STRING, "a": INT, "x": self.x, "y": self.y}
        types = RecordType(columns)
        expression = parse(self.text.format(x="x", y="y", p="p"), steps=frozenset("p"))
        kind = check_types(expression, types, {"p": types})
        if isinstance(kind, DecimalType):
            kind = DecimalType(18, kind.scale)
        return RecordType({**columns, "z": BIGINT if kind == INT else kind})

    def condition(self, x: str, p: str = "") -> str:
        """The condition that the result is ``z``."""
        text = self.text.format(x=x, y="y", p=p)
        return f"CASE WHEN z IS NULL THEN ({text}) IS NULL ELSE ({text}) = z END"

    def results(self, pairs: Sequence[Pair]) -> list[Any]:
        """The reference's results."""
        if self.aggregates:
            return [AGGREGATES[self.text](*pair) for pair in pairs]
        expression = parse(self.text.format(x="x", y="y"))
        compute = bind(expression, {("x",): 0, ("y",): 1}, {}, self.event)
        return [compute(pair, ()) for pair in pairs]

    def cases(self, pairs: Iterable[Pair]) -> list[Case]:
        """Pairs with their results, and with what might be taken for these."""
        given = list(pairs)
        kind = self.event.fields["z"]
        zero = False if kind == BOOLEAN else 0.0 if kind == DOUBLE else 0
        found = []
        for pair, result in zip(given, self.results(given), strict=True):
            others = [None, zero, *_neighbours(result, kind), *self._wrapped(pair)]
            made = [Case(pair, z, _is_same(z, result)) for z in others]
            found += [Case(pair, result, True), *(each for each in made if not each.holds)]
        return found

    def _wrapped(self, pair: Pair) -> Iterator[int]:
        """The exact result of whole numbers, cut to 32 and to 64 bits."""
        if self.text in EXACT and {self.x, self.y} <= set(RANGES) and None not in pair:
            result = EXACT[self.text](*pair)
            for bits in (32, 64):
                yield (result + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


class Case(NamedTuple):
    """Two values, a third, and whether that is the result of the operation on the two."""

    pair: Pair
    z: Any
    holds: bool


def _is_same(z: Any, result: Any) -> bool:
    return z is result if None in (z, result) else equal(z, result)


def _neighbours(result: Any, kind: SqlType) -> list[Any]:
    if kind == BIGINT and result is not None:
        return [result ^ 1]
    if kind == DOUBLE and result is not None and math.isfinite(result):
        return [math.nextafter(result, math.inf)]
    return []


EXACT: dict[str, Callable[[int, int], int]] = {
    "{x} + {y}": lambda x, y: x + y,
    "{x} - {y}": lambda x, y: x - y,
    "{x} * {y}": lambda x, y: x * y,
    "-{x}": lambda x, _: -x,
    "ABS({x})": lambda x, _: abs(x),
}


def _sum(x: Any, y: Any) -> Any:
    total = _added(x, y, x)
    low, high = RANGES[BIGINT]
    return None if isinstance(total, int) and not low <= total <= high else total


def _mean(x: Any, y: Any) -> float | None:
    values = [float(each) for each in (x, y, x) if each is not None]
    return _added(*values) / len(values) if values else None


def _added(*values: Any) -> Any:
    """In this order, without what the sum of Python makes of doubles."""
    total = None
    for value in values:
        if value is not None:
            total = value if total is None else total + value
    return total


AGGREGATES: dict[str, Callable[[Any, Any], Any]] = {
    "SUM({p}.x)": _sum,
    "AVG({p}.x)": _mean,
}
WHOLE = [(INT, INT), (INT, BIGINT), (BIGINT, INT), (BIGINT, BIGINT)]
DOUBLES = [(DOUBLE, DOUBLE), (DOUBLE, BIGINT), (BIGINT, DOUBLE), (FLOAT, INT)]
OPERATIONS = [
    *(Operation(f"{{x}} {sign} {{y}}", x, y) for sign in "+-*/%" for x, y in (*WHOLE, *DOUBLES)),
    *(Operation(f"(-{{x}}) {sign} {{y}}", BIGINT, BIGINT) for sign in "+-*%"),
    *(Operation(f"({{x}} * {{y}}) {sign} {{y}}", x, y) for sign in "+-*%" for x, y in WHOLE[::3]),
    *(
        Operation(text, kind, kind)
        for text in ("-{x}", "ABS({x})", "ABS({x} - {y})", "GREATEST({x}, {y})", "LEAST({x}, {y})")
        for kind in (INT, BIGINT, DOUBLE, DecimalType(17, 2))
    ),
    # Brought to one scale, or to DOUBLE.
    *(Operation(f"{{x}} {sign} {{y}}", DecimalType(17, 2), DecimalType(15, 0)) for sign in "+-<"),
    *(Operation(f"{{x}} {sign} {{y}}", DecimalType(17, 7), INT) for sign in "+-="),
    *(Operation(f"{{x}} {sign} {{y}}", DecimalType(15, 4), DOUBLE) for sign in "+-*/%<"),
    Operation("{x} * {y}", DecimalType(9, 2), DecimalType(9, 9)),
    Operation("{x} * {y}", DecimalType(8, 3), INT),
    Operation("{x} = {y}", INT, DecimalType(18, 8)),
    Operation("COALESCE({x}, {y}, 0)", DecimalType(18, 4), DecimalType(14, 0)),
    Operation("{x} < {y}", BIGINT, DOUBLE),
    # Dates, moments and their parts.
    *(Operation(f"{{x}} {sign} {{y}}", DATE, TIMESTAMP) for sign in "=<>"),
    *(
        Operation(f"{part}({{x}})", TIMESTAMP, TIMESTAMP)
        for part in ("HOUR", "MINUTE", "SECOND", "UNIX_SECONDS", "UNIX_MILLIS")
    ),
    Operation("UNIX_MILLIS({x}) - UNIX_MILLIS({y})", TIMESTAMP, TIMESTAMP),
    Operation("UNIX_MILLIS({x}) * {y}", TIMESTAMP, BIGINT),
]
OF_SEVERAL = [
    *(Operation("SUM({p}.x)", kind, kind) for kind in (INT, BIGINT, DOUBLE, FLOAT)),
    *(Operation("AVG({p}.x)", kind, kind) for kind in (INT, BIGINT, DOUBLE, FLOAT)),
]
OF_DECIMALS = Operation("SUM({p}.x)", DecimalType(12, 3), DecimalType(12, 3))


def masks_of(operation: Operation) -> tuple[EventMasks, ColumnVectors]:
    """The condition of the decoder, compiled whole."""
    types, vectors = RecordTypes((("", "", operation.event),)), ColumnVectors()
    bit = Bit(Condition((), None, parse(operation.condition("x"))), 0, 1)
    masks = event_masks(types, [bit], 1, vectors)
    assert not masks.evaluated
    return masks, vectors


def by_decoder(operation: Operation, cases: Sequence[Case]) -> list[bool]:
    """Asks for the condition bits of events."""
    masks, vectors = masks_of(operation)
    wholes = np.zeros((len(cases), vectors.width), np.int64)
    doubles, nulls = wholes.view(np.float64), np.zeros(wholes.shape, np.uint8)
    for (path, kind), vector in vectors.values.items():
        convert: Callable[[Any], Any] = float
        target: np.ndarray[Any, Any] = doubles
        if representation(kind) == Representation.WHOLE:
            convert, target = to_whole(kind), wholes
        for row, case in enumerate(cases):
            value = {"x": case.pair[0], "y": case.pair[1], "z": case.z}[path[0]]
            nulls[row, vector] = value is None
            if value is not None:
                target[row, vector] = convert(value)
    types, data = np.zeros(len(cases), np.int32), np.zeros(1, np.uint8)
    return [bool(bits) for bits in masks.of(types, data, wholes, doubles, nulls)[:, 0]]


def _events(operation: Operation, case: Case) -> list[dict[str, Any]]:
    """The columns of the events taken before, then of the one that is asked."""
    x, y = case.pair
    taken = [{"x": each, "a": 0} for each in ((x, y, x) if operation.aggregates else (x,))]
    return [*taken, {"y": y, "z": case.z, "a": 1}]


def by_look_back(operation: Operation, cases: Sequence[Case]) -> list[bool]:
    """Asks a rule that looks back at ``x``; it takes each event for which the condition holds."""
    types, count = RecordTypes((("", "Event", operation.event),)), len(_events(operation, cases[0]))
    taken = Times(count - 1, count - 1)
    first = Step("p", None, where("name = 'p'"), times=taken, loop=Loop.CONSECUTIVE)
    asked = f"name = 'q' AND ({operation.condition('LAST(p.x)', 'p')})"
    rule = Rule("r", 1, (first, Step("q", Contiguity.NEXT, where(asked))), key=(KEY,))
    assert compiled_whole(rule, types)
    job = LocalJob(compile_rules([rule]), types)
    records = [
        record(count * number + place, "pq"[values["a"]], values)
        for number, case in enumerate(cases)
        for place, values in enumerate(_events(operation, case))
    ]
    job.advance(records, END_OF_TIME)
    assert job.outputs.dead_letters == []
    found = {match.steps["q"][0].at.offset // count for match in job.outputs.matches}
    return [number in found for number in range(len(cases))]


def by_row_pattern(operation: Operation, cases: Sequence[Case]) -> list[bool]:
    """Asks a row pattern; each row for which the condition holds ends a match."""
    count = len(_events(operation, cases[0]))
    asked = f"a = 1 AND ({operation.condition('LAST(P.x)', 'P')})"
    clause = f"MEASURES z AS m PATTERN (P{{{count - 1}}} Q) DEFINE P AS a = 0, Q AS {asked}"
    text = f"SELECT * FROM t MATCH_RECOGNIZE ({clause})"
    matcher = Loops(plan_query(load_query(text, "c.sql", operation.event)))
    assert not matcher.compiled.lowered.calls
    rows = [
        Event(0, Coordinates("t", 0, count * number + place), 0, columns)
        for number, case in enumerate(cases)
        for place, values in enumerate(_events(operation, case))
        for columns in [tuple(values.get(path[0]) for path in matcher.plan.columns)]
    ]
    names = Names()
    table = EventTable.of(rows, names, matcher.slots)
    key = np.arange(len(rows)) // count
    run = matcher.apply(States(), table, key, 1, names, closed=True)
    found = {key for piece in run for key, _ in objects(piece)}
    return [number in found for number in range(len(cases))]


Ask = Callable[[Operation, Sequence[Case]], list[bool]]
PLACES: dict[str, tuple[Ask, list[Operation]]] = {
    "decoder": (by_decoder, OPERATIONS),
    "look-back": (by_look_back, [*OPERATIONS, *OF_SEVERAL, OF_DECIMALS]),
    "row pattern": (by_row_pattern, [*OPERATIONS, *OF_SEVERAL]),
}


def check(place: str, operation: Operation, pairs: Iterable[Pair]) -> None:
    """The place answers each case as the reference does."""
    ask, _ = PLACES[place]
    cases = operation.cases(pairs)
    wrong = [
        case
        for case, said in zip(cases, ask(operation, cases), strict=True)
        if said is not case.holds
    ]
    assert not wrong, f"{operation}: {wrong}"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.slow
def test_at_the_ends(place: str) -> None:
    """Each value with each other one."""
    for operation in PLACES[place][1]:
        check(place, operation, product(ends(operation.x), ends(operation.y)))


def test_whole_numbers_have_the_ends_of_their_type() -> None:
    """The reference itself gives exact results, and NULL where the type has none."""
    for operation in OPERATIONS:
        if operation.text not in EXACT or {operation.x, operation.y} - set(RANGES):
            continue
        low, high = RANGES[INT if (operation.x, operation.y) == (INT, INT) else BIGINT]
        pairs = [(x, y) for x in ends(operation.x)[1:] for y in ends(operation.y)[1:]]
        for pair, result in zip(pairs, operation.results(pairs), strict=True):
            exact = EXACT[operation.text](*pair)
            assert result == (exact if low <= exact <= high else None), (str(operation), pair)


def test_all_operations() -> None:
    """The operations above use every code of the machine that computes."""
    asked = {code for each in OPERATIONS for code in masks_of(each)[0].programs.operations["code"]}
    computing = {*range(op.TO_DOUBLE, op.ABS + 1), *range(op.ADD, op.REMAINDER + 1)}
    computing |= {code + op.DOUBLE for code in (op.NEGATE, op.ABS)}
    computing |= {code + op.DOUBLE for code in range(op.ADD, op.REMAINDER + 1)}
    # A quotient is DOUBLE.
    assert computing - asked == {op.DIVIDE}


def values(kind: SqlType) -> st.SearchStrategy[Any]:
    """Values of a type, often near its ends."""
    known = st.sampled_from(ends(kind))
    if kind in RANGES:
        low, high = RANGES[kind]
        powers = st.builds(
            lambda power, sign, beside: sign * (1 << power) + beside,
            st.integers(0, 62), st.sampled_from([1, -1]), st.integers(-2, 2),
        )  # fmt: skip
        return st.one_of(known, st.integers(low, high), powers.filter(lambda n: low <= n <= high))
    if kind == DOUBLE:
        return st.one_of(known, st.floats())
    if kind == FLOAT:
        return st.one_of(known, st.floats(width=32))
    if kind == DATE:
        return st.one_of(known, st.dates())
    if kind == TIMESTAMP:
        return st.one_of(known, st.datetimes(timezones=st.just(dt.UTC)))
    assert isinstance(kind, DecimalType)
    most, scale = 10**kind.precision - 1, kind.scale
    return st.one_of(known, st.integers(-most, most).map(lambda n: Decimal(n).scaleb(-scale)))


@st.composite
def pairs_of(draw: st.DrawFn, operation: Operation) -> Pair:
    """Two values; of whole numbers often such that the product, the sum or the difference is near
    an end."""
    x, y = draw(values(operation.x)), draw(values(operation.y))
    low, high = RANGES.get(operation.y, (0, 0))
    if operation.x in RANGES and high and x and draw(st.booleans()):
        end = draw(st.sampled_from([low, high]))
        y = draw(st.sampled_from([end // x, end - x, x - end])) + draw(st.integers(-1, 1))
        y = min(max(y, low), high)
    return x, y


@pytest.mark.parametrize("place", PLACES)
def test_random_values(place: str) -> None:
    """An operation and some values."""

    @settings(max_examples=60, derandomize=True, database=None, deadline=None)
    @given(st.data())
    def agree(data: st.DataObject) -> None:
        operation = data.draw(st.sampled_from(PLACES[place][1]))
        check(place, operation, data.draw(st.lists(pairs_of(operation), min_size=1, max_size=20)))

    agree()
