"""Expressions as Python functions of the values they read.

``bind`` builds closures once; each event then costs a few of them. Values: see ``values``; arrays
are sequences, maps are mappings, records are mappings or offer ``record["field"]``. With schemas
the types are Spark's. Without, whole numbers count as BIGINT, and a decimal's precision and scale
are those of its value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from spark_cep.pattern.expressions.checking.lambdas import variables_of
from spark_cep.pattern.expressions.checking.types import Typing, round_digits
from spark_cep.pattern.expressions.evaluation.evaluators import (
    DIRECT,
    FIRST_OR_EXTREME,
    LOGIC,
    Evaluator,
    compared,
    junction,
    membership,
    null_if,
    strict,
    strict1,
    strict2,
)
from spark_cep.pattern.expressions.functions import FUNCTIONS, LAMBDAS, Function, at_index
from spark_cep.pattern.expressions.nodes import (
    ARITHMETIC,
    Call,
    Cast,
    Column,
    ColumnPath,
    Expression,
    Lambda,
    Literal,
    LookBack,
    Member,
    Node,
    Reference,
    RowReference,
    RowValue,
    Variable,
    children,
)
from spark_cep.pattern.expressions.values import arithmetic as values
from spark_cep.pattern.expressions.values.casting import caster
from spark_cep.pattern.expressions.values.like import ilike_matcher, like_matcher
from spark_cep.pattern.expressions.values.type_rules import INTEGRAL, common_type
from spark_cep.pattern.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME,
    DOUBLE,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    DecimalType,
    RecordType,
    SqlType,
)

_PLAIN = frozenset({STRING, BINARY, BOOLEAN, DATE, TIMESTAMP, DAY_TIME})


def bind(
    e: Expression,
    columns: Mapping[ColumnPath, int],
    look_backs: Mapping[LookBack, int],
    event: RecordType | None = None,
    steps: Mapping[str, RecordType] | None = None,
    row_values: Mapping[RowValue, int] | None = None,
) -> Evaluator:
    """The function ``f(column_values, look_back_values)`` that computes the expression.

    ``columns`` and ``look_backs`` give the place of each value; ``KeyError`` when one is missing.
    Values of a row pattern match (``row_values``) are among those of look-backs.
    """
    references: dict[LookBack | RowValue, int] = dict(look_backs.items())
    references.update((row_values or {}).items())
    return _Binder(columns, references, Typing(event, steps)).bind(e.node)


class _Binder:
    """Turns nodes into closures."""

    def __init__(
        self,
        columns: Mapping[ColumnPath, int],
        references: Mapping[LookBack | RowValue, int],
        typing: Typing,
    ) -> None:
        self._columns = columns
        self._references = references
        self._typing = typing
        self._frames: list[_Frame] = []

    def bind(self, node: Node) -> Evaluator:
        """The closure for one node."""
        behind = self._place(node)
        if behind is not None:
            return _left_behind(behind)
        match node:
            case Literal(value=value):
                return lambda _c, _r: value
            case Column(path=path):
                column = self._columns[path]
                return lambda c, _r: c[column]
            case Reference(look_back=look_back):
                place = self._references[look_back]
                return lambda _c, r: r[place]
            case RowReference(value=value):
                row_place = self._references[value]
                return lambda _c, r: r[row_place]
            case Member(operand=operand, name=name):
                return strict1(lambda record: _member(record, name), self.bind(operand))
            case Cast(operand=operand, target=target):
                return strict1(caster(target), self.bind(operand))
            case Lambda() | Variable():
                raise AssertionError("a lambda is bound with its call")
            case Call():
                return self._over_elements(node) if node.operator in LAMBDAS else self._call(node)

    def _place(self, node: Node) -> int | None:
        """Return the place in ``r``, counted from its end, of the value that lambdas leave for a
        node."""
        behind = 0
        for frame in reversed(self._frames):
            if isinstance(node, Variable) and node.name == frame.parameter:
                return -behind - 1
            if id(node) in frame.once:
                return frame.once[id(node)] - behind - len(frame.once) - 1
            behind += len(frame.once) + 1
        return None

    def _over_elements(self, node: Call) -> Evaluator:
        """A call with a lambda. Its body finds behind ``r`` what is computed once, then the
        element."""
        self._typing.type_of(node)  # from here on the lambda's parameter has a type
        array, test = node.arguments
        assert isinstance(test, Lambda)
        items = self.bind(array)
        once = list(_once(test.body, frozenset({test.parameter})))
        constant = [self.bind(part) for part in once]
        places = {id(part): place for place, part in enumerate(once)}
        self._frames.append(_Frame(test.parameter, places))
        holds = self.bind(test.body)
        self._frames.pop()
        compute = STRICT[node.operator]

        def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
            given = items(c, r)
            if given is None:
                return None
            around = (*r, *[part(c, r) for part in constant])
            return compute(given, lambda item: holds(c, (*around, item)))

        return run

    def _call(self, node: Call) -> Evaluator:
        operator = node.operator
        arguments = [self.bind(argument) for argument in node.arguments]
        kinds = [self._typing.type_of(argument) for argument in node.arguments]
        if operator in DIRECT:
            if _same_order(kinds[0], kinds[1]):
                return strict2(DIRECT[operator], *arguments)
            return compared(operator, *arguments)
        if operator in ARITHMETIC:
            result = self._typing.type_of(node)
            if result == DOUBLE:
                arguments = [*map(_constant, node.arguments, arguments)]
            return strict2(values.arithmetic(operator, result), *arguments)
        if operator in ("AND", "OR"):
            return junction(arguments, decisive=operator == "OR")
        if operator in LOGIC:
            return LOGIC[operator](*arguments)
        if operator in _LIKE:
            return strict1(_LIKE[operator](arguments[1]((), ())), arguments[0])
        if operator == "IN":
            return membership(_converted(arguments, kinds, common_type(kinds) or UNKNOWN))
        if operator in ("CASE", "CASE OF"):
            return self._case(node, arguments, kinds)
        return self._function(node, arguments, kinds)

    def _case(self, node: Call, arguments: list[Evaluator], kinds: list[SqlType]) -> Evaluator:
        start = 1 if node.operator == "CASE OF" else 0
        whens = range(start, len(arguments) - 1, 2)
        result = self._typing.type_of(node)
        results = [*(index + 1 for index in whens), len(arguments) - 1]
        values_of = _converted([arguments[i] for i in results], [kinds[i] for i in results], result)
        default = values_of.pop()
        if start:
            tests = [compared("=", arguments[0], arguments[index]) for index in whens]
        else:
            tests = [arguments[index] for index in whens]
        branches = list(zip(tests, values_of, strict=True))

        def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
            for test, value in branches:
                if test(c, r):
                    return value(c, r)
            return default(c, r)

        return run

    def _function(self, node: Call, arguments: list[Evaluator], kinds: list[SqlType]) -> Evaluator:
        operator = node.operator
        result = self._typing.type_of(node)
        if operator in ("COALESCE", "GREATEST", "LEAST"):
            return FIRST_OR_EXTREME[operator](_converted(arguments, kinds, result))
        if operator == "ARRAY":
            alike = _converted(arguments, kinds, common_type(kinds) or UNKNOWN)
            return lambda c, r: [argument(c, r) for argument in alike]
        if operator == "NULLIF":
            return null_if(arguments)
        if operator == "ROUND":
            digits = round_digits(node)
            return strict1(lambda v: values.round_half_up(v, digits, result), arguments[0])
        if operator in _SIGNED:
            compute = _SIGNED[operator]
            return strict1(lambda value: compute(value, result), arguments[0])
        row = FUNCTIONS.get(operator)
        if row is not None and row.prepare is not None:
            return _prepared(row, row.prepare, arguments)
        return strict(STRICT[operator], arguments)


def _left_behind(place: int) -> Evaluator:
    return lambda _c, r: r[place]


class _Frame(NamedTuple):
    """A lambda around what is being bound, with the places of what is computed once for it."""

    parameter: str
    once: dict[int, int]


def _once(node: Node, inside: frozenset[str]) -> Iterator[Node]:
    """The largest parts of a lambda's body that are computed, and not from its element."""
    if isinstance(node, (Call, Cast, Member)) and not variables_of(node) & inside:
        yield node
        return
    inner = inside | {node.parameter} if isinstance(node, Lambda) else inside
    for child in children(node):
        yield from _once(child, inner)


def _prepared(
    row: Function, prepare: Callable[..., Callable[..., Any]], arguments: list[Evaluator]
) -> Evaluator:
    """A function that is made from its constants, once."""
    constants = [place for place in sorted(row.constants) if place < len(arguments)]
    compute = prepare(*(arguments[place]((), ()) for place in constants))
    operands = [operand for place, operand in enumerate(arguments) if place not in constants]
    if row.nulls:
        return lambda c, r: compute(*[operand(c, r) for operand in operands])
    return strict(compute, operands)


STRICT: Mapping[str, Callable[..., Any]] = {
    "[]": at_index,
    **{name: row.evaluate for name, row in FUNCTIONS.items() if row.evaluate is not None},
}
"""What is NULL when an argument is, whatever the types."""
_LIKE = {"LIKE": like_matcher, "ILIKE": ilike_matcher}
_SIGNED = {"NEGATE": values.negate, "ABS": values.absolute}


def _member(record: Any, name: str) -> Any:
    return record.get(name) if isinstance(record, Mapping) else record[name]


def _same_order(left: SqlType, right: SqlType) -> bool:
    """Return whether Python orders the values of two types as SQL does, NULLs aside."""
    exact = all(kind in INTEGRAL or isinstance(kind, DecimalType) for kind in (left, right))
    return exact or (left == right and left in _PLAIN)


def _converted(operands: list[Evaluator], kinds: list[SqlType], target: SqlType) -> list[Evaluator]:
    """The operands with their values brought to one type, where the types are known."""
    if target not in (DOUBLE, TIMESTAMP) and not isinstance(target, DecimalType):
        return list(operands)
    convert = caster(target)
    return [
        operand if kind == target else strict1(convert, operand)
        for operand, kind in zip(operands, kinds, strict=True)
    ]


def _constant(node: Node, operand: Evaluator) -> Evaluator:
    """A numeric literal as DOUBLE, once and for all; anything else as it is."""
    if not isinstance(node, Literal) or node.value is None:
        return operand
    value = caster(DOUBLE)(node.value)
    return lambda _c, _r: value
