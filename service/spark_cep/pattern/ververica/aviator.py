"""AviatorScript conditions as conditions of a rule.

:func:`sql_condition` gives the SQL that is true for an event exactly where Ververica's
``AviatorCondition`` takes the event, or says what of the expression has no counterpart and where it
stands. That condition takes no event on which the expression fails; an expression without variables
takes every event there, whatever it says, and is refused here.

The answers are the same but for: whole numbers beyond 64 bits (Aviator's wrap, SQL's are NULL);
-0.0, which is less than 0 to Aviator alone; constants with a fraction, which Aviator adds up digit
by digit, so that the last bit may differ; text order and lengths of characters beyond U+FFFF.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from lark import Token

from spark_cep.documents.nearest import instead
from spark_cep.pattern.expressions import ExpressionError, TextProblem, parse
from spark_cep.pattern.expressions.canonical import expression
from spark_cep.pattern.expressions.nodes import Call, Column, Literal, Node, children
from spark_cep.pattern.expressions.problems import refused
from spark_cep.pattern.expressions.reading.reader import MAX_TREE
from spark_cep.pattern.types import BIGINT, DOUBLE, INT, NULL, STRING
from spark_cep.pattern.ververica import aviator_truth as truth_of
from spark_cep.pattern.ververica.aviator_arithmetic import arithmetic, negative
from spark_cep.pattern.ververica.aviator_functions import FUNCTIONS, call
from spark_cep.pattern.ververica.aviator_syntax import Syntax, parse_aviator, place
from spark_cep.pattern.ververica.aviator_truth import NoCounterpartError, Truth, Value, ValueKind
from spark_cep.pattern.ververica.java_patterns import whole_text_pattern

MOST_NODES = 5_000
"""Most parts of the SQL: conditions that may fail are written twice, once for each answer."""

_COMPARISONS = {"==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "b": "\b", "f": "\f", "\\": "\\"}
_ESCAPE = re.compile(r"\\([\s\S])")
_RESERVED = frozenset(
    {"lambda", "fn", "end", "if", "else", "for", "in", "return", "break", "continue", "let"}
    | {"while", "elsif", "try", "catch", "finally", "throw", "new", "use"}
)
_NO_COUNTERPART = {
    "bits": "operators on bits are not supported",
    "shift": "operators on bits are not supported",
    "power": "`**` is not supported; math.pow(a, b) is",
    "index": "elements of lists and maps, as in `a[0]`, are not supported",
}
_Read = TypeVar("_Read")
_LONG = range(-(2**63), 2**63)
_INT = range(-(2**31), 2**31)


def sql_condition(text: str, steps: frozenset[str] = frozenset()) -> str:
    """The condition that an Aviator expression makes, in canonical SQL.

    Args:
        text: The expression.
        steps: The names of the pattern's steps, which records of the event must not have: in SQL
            their dotted names would look back.

    Raises:
        ExpressionError: With every part that has no counterpart, by its place in ``text``.
    """
    syntax = parse_aviator(text)
    reader = _AviatorReader(steps)
    truth = reader.truth(syntax)
    if not reader.problems and not reader.reads:
        message = "the expression reads no field; Ververica takes every event then"
        help_text = "no condition for every event, or one that reads the event"
        reader.problems.append(TextProblem(message, place(syntax), help_text))
    if not reader.problems and _size(truth.true, {}) > MOST_NODES:
        message = f"the expression needs more than {MOST_NODES:,} operators in SQL"
        reader.problems.append(TextProblem(message, place(syntax)))
    if reader.problems:
        raise ExpressionError(reader.problems)
    sql = expression(truth.true).canonical
    try:
        parse(sql)
    except ExpressionError as error:
        message = f"the expression is too large in SQL: {error.problems[0].message}"
        raise refused(message, place(syntax)) from None
    return sql


class _RefusedError(Exception):
    """This part is refused; the problem is noted."""


class _AviatorReader:
    """Reads the tree of one expression; what is refused of it is in ``problems``."""

    def __init__(self, steps: frozenset[str]) -> None:
        self.problems: list[TextProblem] = []
        self.reads = False
        self._steps = steps
        self._depth = 0

    def truth(self, syntax: Syntax) -> Truth:
        """A part as a condition; one that is refused is false."""
        try:
            return self._as_truth(self._read(syntax), syntax)
        except _RefusedError:
            return truth_of.constant(False)

    def _disjunction(self, parts: list[Syntax]) -> Truth:
        return truth_of.disjunction([self.truth(part) for part in parts])

    def _conjunction(self, parts: list[Syntax]) -> Truth:
        return truth_of.conjunction([self.truth(part) for part in parts])

    def _refuse(self, message: str, syntax: Syntax, allowed: str | None = None) -> _RefusedError:
        self.problems.append(TextProblem(message, place(syntax), allowed))
        return _RefusedError()

    def _read(self, syntax: Syntax) -> Value | Truth:
        if isinstance(syntax, Token):
            return self._constant(syntax)
        if syntax.data in _NO_COUNTERPART:
            raise self._refuse(_NO_COUNTERPART[syntax.data], syntax)
        self._depth += 1
        try:
            if self._depth > MAX_TREE:
                message = f"more than {MAX_TREE} operators stand inside one another"
                raise self._refuse(message, syntax)
            read: Callable[[list[Syntax]], Value | Truth] = getattr(self, f"_{syntax.data}")
            return read(list(syntax.children))
        except NoCounterpartError as error:
            raise self._refuse(str(error), syntax, error.allowed) from None
        finally:
            self._depth -= 1

    def _as_truth(self, part: Value | Truth, syntax: Syntax) -> Truth:
        if isinstance(part, Truth):
            return part
        if part.kind is ValueKind.ANY:
            return truth_of.condition(part)
        raise self._refuse(f"a condition is expected here, found {part.kind.value}", syntax)

    def _value(self, syntax: Syntax) -> Value:
        part = self._read(syntax)
        if isinstance(part, Value):
            return part
        if isinstance(part.true, Literal):
            return Value(part.true, ValueKind.TRUTH, certain=True)
        raise self._refuse("a value is expected here, found a condition", syntax)

    def _all(self, read: Callable[[Syntax], _Read], parts: Sequence[Syntax]) -> list[_Read]:
        """Read all parts, all of whose problems are noted."""
        values: list[_Read] = []
        for part in parts:
            try:
                values.append(read(part))
            except _RefusedError:
                continue
        if len(values) < len(parts):
            raise _RefusedError
        return values

    def _all_values(self, parts: Sequence[Syntax]) -> list[Value]:
        return self._all(self._value, parts)

    def _choice(self, parts: list[Syntax]) -> Truth:
        asked = self.truth(parts[0])
        then, otherwise = (self._answer(part) for part in parts[1:])
        return truth_of.choice(asked, then, otherwise)

    def _answer(self, syntax: Syntax) -> Truth:
        """Translate a branch behind `?` or `:`; its nil would be the value of the whole."""
        try:
            branch = self._read(syntax)
            if isinstance(branch, Value):
                message = "a value as an answer of `? :` is not supported"
                raise self._refuse(message, syntax, "a condition, such as `a == true`")
        except _RefusedError:
            return truth_of.constant(False)
        return branch

    def _equality(self, parts: list[Syntax]) -> Truth:
        first, operator, second, *rest = parts
        truth = self._compared(first, str(operator), second)
        for operator, operand in zip(rest[::2], rest[1::2], strict=True):
            if operator not in ("==", "!="):
                raise self._refuse("a condition is not comparable by size", operator)
            truth = self._same(truth, self.truth(operand), str(operator))
        return truth

    _relation = _equality

    def _compared(self, first: Syntax, operator: str, second: Syntax) -> Truth:
        if operator == "=~":
            return self._matches(first, second)
        if operator in ("==", "!="):
            left, right = self._all(self._read, (first, second))
            if isinstance(left, Truth) or isinstance(right, Truth):
                return self._same_as_condition(left, right, operator, (first, second))
        left, right = self._all_values((first, second))
        return truth_of.compared(_COMPARISONS[operator], left, right)

    def _same_as_condition(
        self,
        left: Value | Truth,
        right: Value | Truth,
        operator: str,
        places: tuple[Syntax, Syntax],
    ) -> Truth:
        for value, truth, at in ((left, right, places[0]), (right, left, places[1])):
            if isinstance(value, Value):
                assert isinstance(truth, Truth)
                if not isinstance(truth.true, Literal):
                    message = "a value beside a condition: what is nil would have to be false"
                    raise self._refuse(message, at, "compare it with `true` or `false` by itself")
                constant = Value(truth.true, ValueKind.TRUTH, certain=True)
                return truth_of.compared(_COMPARISONS[operator], value, constant)
        assert isinstance(left, Truth)
        assert isinstance(right, Truth)
        return self._same(left, right, operator)

    @staticmethod
    def _same(left: Truth, right: Truth, operator: str) -> Truth:
        same = truth_of.same_truth(left, right)
        return same if operator == "==" else truth_of.inverse(same)

    def _matches(self, text: Syntax, pattern: Syntax) -> Truth:
        if not isinstance(pattern, Token) or pattern.type != "REGEX":
            raise self._refuse("a pattern, as in `=~ /a+/`, is expected here", pattern)
        java = pattern[1:-1]
        if not java or java[0] in " \t\r\n'\"#" or java.endswith("\\"):
            raise self._refuse("Aviator reads this pattern otherwise than it is written", pattern)
        (value,) = self._all_values([text])
        if value.kind not in (ValueKind.ANY, ValueKind.TEXT):
            raise self._refuse(f"`=~` of {value.kind.value} fails; it takes text", text)
        try:
            constant = Literal(whole_text_pattern(java), STRING)
        except ValueError as error:
            raise self._refuse(str(error), pattern) from None
        matched = Call("RLIKE", (value.node, constant))
        missed = truth_of.either(truth_of.negated(matched), value.is_nil)
        return Truth(matched, missed, value.certain)

    def _sum(self, parts: list[Syntax]) -> Value:
        result, *others = self._all_values(parts[::2])
        for operator, other in zip(parts[1::2], others, strict=True):
            result = arithmetic(str(operator), result, other)
        return result

    _product = _sum

    def _sign(self, parts: list[Syntax]) -> Value | Truth:
        sign, operand = parts
        if sign == "~":
            raise self._refuse(_NO_COUNTERPART["bits"], sign)
        if sign == "!":
            return truth_of.inverse(self.truth(operand))
        (value,) = self._all_values([operand])
        return negative(value)

    def _path(self, parts: list[Syntax]) -> Value | Truth:
        token = parts[0]
        name = str(token)
        if name == "nil":
            return Value(Literal(None, NULL), ValueKind.NIL, certain=True)
        if name in ("true", "false"):
            return truth_of.constant(name == "true")
        if name in _RESERVED or "$" in name:
            raise self._refuse(f"`{name}` is not supported", token)
        path = tuple(name.split("."))
        if len(path) > 1 and path[0] in self._steps:
            message = f"`{path[0]}` is a node of the pattern and a field of the event"
            raise self._refuse(message, token, "another name for the node")
        self.reads = True
        if len(path) == 1:
            return Value(Column(path), ValueKind.ANY, nilable=True, certain=True)
        guard = truth_of.is_not_null(Column(path[:-1]))
        return Value(Column(path), ValueKind.ANY, nilable=True, guard=guard)

    def _call(self, parts: list[Syntax]) -> Value | Truth:
        token, *arguments = [part for part in parts if part is not None]
        name = str(token)
        if name not in FUNCTIONS:
            allowed = instead(name, FUNCTIONS, "functions")
            raise self._refuse(f"the function {name} is not supported", token, allowed)
        return call(name, self._all_values(arguments))

    def _constant(self, token: Token) -> Value:
        if token.type == "REGEX":
            raise self._refuse("a pattern stands behind `=~` alone", token)
        if token.type == "STRING":
            return Value(Literal(self._text(token), STRING), ValueKind.TEXT, certain=True)
        text = str(token)
        if text[-1] in "NM":
            raise self._refuse("numbers beyond 64 bits and decimals are not supported", token)
        if text[:2].lower() == "0x" or text.isdigit():
            value = int(text, 16 if text[:2].lower() == "0x" else 10)
            if value not in _LONG:
                raise self._refuse("numbers beyond 64 bits and decimals are not supported", token)
            kind = INT if value in _INT else BIGINT
            return Value(Literal(value, kind), ValueKind.LONG, certain=True, wide=True)
        number = float(text)
        if number == float("inf"):
            raise self._refuse(f"{text} is beyond DOUBLE", token)
        return Value(Literal(number, DOUBLE), ValueKind.DOUBLE, certain=True, wide=True)

    def _text(self, token: Token) -> str:
        inside = token[1:-1]
        if "#{" in inside:
            raise self._refuse("expressions inside text, as in `#{a}`, are not supported", token)
        for escape in _ESCAPE.finditer(inside):
            if escape[1] not in _ESCAPES and escape[1] != token[0]:
                raise self._refuse(f"`\\{escape[1]}` is not an escape of Aviator", token)
        return _ESCAPE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), inside)


def _size(node: Node, known: dict[int, int]) -> int:
    """Return the number of operators in the text of the node; a shared part counts each time."""
    if id(node) not in known:
        known[id(node)] = 1 + sum(_size(child, known) for child in children(node))
    return known[id(node)]
