"""One spelling per expression: the text by which expressions are compared and shown.

The text is Spark SQL as far as the expression is; look-backs are written as the language has them.
Parsing it again (with the same steps and the same kind) gives an equal expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from spark_cep.pattern.expressions.intervals import Months, interval_text
from spark_cep.pattern.expressions.nodes import (
    ALL_STEPS,
    COMPARISONS,
    Call,
    Cast,
    ClassifierAt,
    Column,
    ColumnAt,
    ColumnPath,
    Expression,
    Lambda,
    Literal,
    LookBack,
    MatchNumber,
    Member,
    Node,
    Reference,
    RowAggregate,
    RowPosition,
    RowReference,
    RowValue,
    Variable,
    walk,
)
from spark_cep.pattern.types import BIGINT, DOUBLE

_OR, _AND, _NOT, _PREDICATE, _REMAINDER, _SUM, _PRODUCT, _UNARY, _PRIMARY = range(9)
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
_KEYWORD_LIST = """
ALL AND ANTI ANY ARRAY AS ASC BETWEEN BY CASE CAST CROSS CURRENT_DATE CURRENT_TIME
CURRENT_TIMESTAMP CURRENT_USER DATE DESC DISTINCT DIV ELSE END ESCAPE EXCEPT EXISTS FALSE FETCH
FILTER FOR FROM FULL GROUP HAVING IF ILIKE IN INNER INTERSECT INTERVAL INTO IS JOIN LATERAL
LEFT LIKE LIMIT MAP MINUS NATURAL NOT NULL OFFSET ON OR ORDER OUTER OVER PARTITION RIGHT RLIKE
ROW ROWS SELECT SEMI SET SOME STRUCT TABLE THEN TIMESTAMP TO TRUE UNION UNIQUE UNKNOWN USING
VALUES WHEN WHERE WINDOW WITH
"""
KEYWORDS = frozenset(_KEYWORD_LIST.split())
"""Names that are quoted in canonical text, so that every version of the parser reads them."""


_NEGATED = frozenset({"IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE"})
_JUNCTIONS = {"AND": _AND, "OR": _OR}
_LEVELS: dict[str, tuple[str, int, tuple[int, ...]]] = {
    **{
        o: (f"{{}} {o} {{}}", _PREDICATE, (_REMAINDER, _REMAINDER))
        for o in (*COMPARISONS, "LIKE", "ILIKE", "RLIKE")
    },
    **{o: (f"{{}} {o} {{}}", _SUM, (_SUM, _PRODUCT)) for o in "+-"},
    **{o: (f"{{}} {o} {{}}", _PRODUCT, (_PRODUCT, _UNARY)) for o in "*/"},
    "%": ("{} % {}", _REMAINDER, (_UNARY, _UNARY)),
    **{o: (f"{{}} {o}", _PREDICATE, (_REMAINDER,)) for o in ("IS NULL", "IS TRUE", "IS FALSE")},
    "NEGATE": ("-{}", _UNARY, (_PRIMARY,)),
    "BETWEEN": ("{} BETWEEN {} AND {}", _PREDICATE, (_REMAINDER, _REMAINDER, _REMAINDER)),
    "[]": ("{}[{}]", _PRIMARY, (_PRIMARY, _OR)),
}
"""For operators of fixed form: the form, how tightly it binds, and its operands at least."""


def expression(node: Node, text: str | None = None) -> Expression:
    """The expression of a vetted tree; ``text`` defaults to the canonical text."""
    canonical = _write(node, _OR, "")
    parts = list(walk(node))
    columns = frozenset(part.path for part in parts if isinstance(part, Column))
    look_backs = dict.fromkeys(part.look_back for part in parts if isinstance(part, Reference))
    row_values = dict.fromkeys(part.value for part in parts if isinstance(part, RowReference))
    return Expression(
        text=canonical if text is None else text,
        canonical=canonical,
        node=node,
        columns=columns,
        look_backs=tuple(look_backs),
        row_values=tuple(row_values),
    )


def name(path: ColumnPath) -> str:
    """A dotted name as an author writes it."""
    return ".".join(part if _is_plain(part) else f"`{part}`" for part in path)


def _is_plain(part: str) -> bool:
    return _PLAIN_NAME.match(part) is not None and part.upper() not in KEYWORDS


def timestamp_text(value: datetime) -> str:
    """A point in time as ``yyyy-MM-dd HH:mm:ss[.ffffff]`` in UTC."""
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ")


def _write(node: Node, level: int, prefix: str) -> str:
    text, own = _text(node, prefix)
    return f"({text})" if own < level else text


def _text(node: Node, prefix: str) -> tuple[str, int]:
    match node:
        case Literal():
            return _literal(node)
        case Column(path=path):
            return (f"{prefix}{name(path)}", _PRIMARY)
        case Reference(look_back=look_back):
            return (_look_back(look_back), _PRIMARY)
        case RowReference(value=value):
            return (row_value_text(value), _PRIMARY)
        case Member(operand=operand, name=member):
            return (f"{_write(operand, _PRIMARY, prefix)}.{name((member,))}", _PRIMARY)
        case Variable(name=variable):
            return (name((variable,)), _PRIMARY)
        case Lambda(parameter=parameter, body=body):
            return (f"{name((parameter,))} -> {_write(body, _OR, prefix)}", _OR)
        case Cast(operand=operand, target=target):
            return (f"CAST({_write(operand, _OR, prefix)} AS {target})", _PRIMARY)
        case Call(operator=operator, arguments=arguments):
            return _call(operator, arguments, prefix)


def _look_back(look_back: LookBack) -> str:
    prefix = "" if look_back.step == ALL_STEPS else f"{name((look_back.step,))}."
    argument = look_back.argument
    inner = f"{prefix}*" if argument is None else _write(argument.node, _OR, prefix)
    number = look_back.offset or look_back.limit
    function, _, distinct = look_back.function.partition(" ")
    distinct = distinct and f"{distinct} "
    return f"{function}({distinct}{inner}{f', {number}' if number else ''})"


def row_value_text(value: RowValue) -> str:
    """A value of a row pattern match; navigation, RUNNING and FINAL are always written out."""
    match value:
        case MatchNumber():
            return "MATCH_NUMBER()"
        case ClassifierAt(position=position):
            if position is None:
                return "CLASSIFIER()"
            return _navigation(position, lambda of: f"CLASSIFIER({of})")
        case ColumnAt(position=position, path=path):
            return _navigation(position, lambda of: f"{of}.{name(path)}" if of else name(path))
        case RowAggregate(function=function, arguments=arguments):
            of = _union(value.variables)
            inner = ", ".join(_write(argument.node, _OR, of) for argument in arguments)
            function, _, distinct = function.partition(" ")
            distinct = distinct and f"{distinct} "
            mode = "FINAL" if value.final else "RUNNING"
            return f"{mode} {function}({distinct}{inner or f'{of}*'})"


def _union(variables: tuple[str, ...]) -> str:
    """The prefix of a column; several variables stand for the SUBSET that has them."""
    return "" if not variables else f"{'|'.join(name((v,)) for v in variables)}."


def _navigation(position: RowPosition, shown: Callable[[str], str]) -> str:
    inner = shown(_union(position.variables).removesuffix("."))
    mode = "FINAL" if position.final else "RUNNING"
    offset = f", {position.offset}" if position.offset else ""
    text = f"{mode} {position.pick}({inner}{offset})"
    if not position.shift:
        return text
    return f"{'NEXT' if position.shift > 0 else 'PREV'}({text}, {abs(position.shift)})"


def _call(operator: str, arguments: tuple[Node, ...], prefix: str) -> tuple[str, int]:
    levels = _LEVELS.get(operator)
    if levels is not None:
        template, own, operands = levels
        texts = map(_write, arguments, operands, (prefix,) * len(operands))
        return (template.format(*texts), own)
    if operator in _JUNCTIONS:
        level = _JUNCTIONS[operator]
        return (f" {operator} ".join(_write(a, level + 1, prefix) for a in arguments), level)
    if operator == "NOT":
        return _negation(arguments[0], prefix)
    texts_of_all = [_write(argument, _OR, prefix) for argument in arguments]
    if operator == "IN":
        subject = _write(arguments[0], _REMAINDER, prefix)
        return (f"{subject} IN ({', '.join(texts_of_all[1:])})", _PREDICATE)
    if operator in ("CASE", "CASE OF"):
        return (_case(operator, texts_of_all), _PRIMARY)
    return (f"{operator}({', '.join(texts_of_all)})", _PRIMARY)


def _negation(operand: Node, prefix: str) -> tuple[str, int]:
    if isinstance(operand, Call) and operand.operator.startswith("IS "):
        subject = _write(operand.arguments[0], _REMAINDER, prefix)
        return (f"{subject} IS NOT {operand.operator[3:]}", _PREDICATE)
    if isinstance(operand, Call) and operand.operator in _NEGATED:
        subject = _write(operand.arguments[0], _REMAINDER, prefix)
        rest = _call(operand.operator, operand.arguments, prefix)[0][len(subject) :]
        return (f"{subject} NOT{rest}", _PREDICATE)
    return (f"NOT {_write(operand, _PREDICATE, prefix)}", _NOT)


def _case(operator: str, parts: list[str]) -> str:
    head = "CASE"
    if operator == "CASE OF":
        head += f" {parts.pop(0)}"
    default = parts.pop()
    branches = zip(parts[::2], parts[1::2], strict=True)
    arms = "".join(f" WHEN {when} THEN {then}" for when, then in branches)
    return f"{head}{arms} ELSE {default} END"


def _literal(node: Literal) -> tuple[str, int]:
    value = node.value
    if value is None:
        return ("NULL", _PRIMARY)
    if isinstance(value, bool):
        return (str(value).upper(), _PRIMARY)
    if isinstance(value, str):
        return (f"'{''.join(_ESCAPES.get(c, c) for c in value)}'", _PRIMARY)
    if isinstance(value, (timedelta, Months)):
        return (interval_text(value), _PRIMARY)
    if isinstance(value, datetime):
        return (f"TIMESTAMP '{timestamp_text(value)}'", _PRIMARY)
    if isinstance(value, date):
        return (f"DATE '{value.isoformat()}'", _PRIMARY)
    level = _UNARY if str(value).startswith("-") else _PRIMARY
    if isinstance(value, Decimal):
        return (f"{value:f}BD", level)
    if node.type == DOUBLE:
        return (f"{value!r}D", level)
    wide = node.type == BIGINT and -(2**31) <= value < 2**31
    return (f"{value}L" if wide else str(value), level)
