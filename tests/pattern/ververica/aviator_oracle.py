"""Aviator's semantics, as naive as can be: a tree is written as text, and computed.

The definitions are those of AviatorScript's ``AviatorObject`` and its kin: nil is less than all
else, whole numbers stay whole, what cannot be computed ends the evaluation. Written as text, a tree
has the parentheses that Aviator's table of precedence asks for, and no more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

Tree = tuple[Any, ...]
"""``("op", …)`` with an operator of Aviator; ``("name", path)``, ``("value", constant)``,
``("call", name, …)``, ``("regex", text)``, ``("not", tree)``, ``("neg", tree)``, ``("?", …)``."""

_LEVELS = [["?"], ["||"], ["&&"], ["==", "!=", "=~"], ["<", "<=", ">", ">="], ["+", "-"]]
_LEVELS += [["*", "/", "%"], ["not", "neg"]]
_LEVEL = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators}
_HIGHEST = len(_LEVELS)


class FailedError(Exception):
    """Aviator throws."""


class BeyondError(Exception):
    """The result is beyond what both languages promise: a whole number of more than 64 bits."""


def text_of(tree: Tree) -> str:
    """The tree in Aviator."""
    return _text(tree, 0)


def _text(tree: Tree, least: int) -> str:
    kind, *parts = tree
    level = _LEVEL.get(kind, _HIGHEST)
    match kind:
        case "name":
            text = parts[0]
        case "value":
            text = _constant(parts[0])
        case "regex":
            text = f"/{parts[0]}/"
        case "call":
            text = f"{parts[0]}({', '.join(_text(part, 0) for part in parts[1:])})"
        case "not" | "neg":
            text = f"{'!' if kind == 'not' else '-'}{_text(parts[0], level)}"
        case "?":
            asked, then, otherwise = parts
            text = f"{_text(asked, 1)} ? {_text(then, 0)} : {_text(otherwise, 0)}"
        case _:
            text = f"{_text(parts[0], level)} {kind} {_text(parts[1], level + 1)}"
    return f"({text})" if level < least else text


def _constant(value: object) -> str:
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
        return f"'{escaped}'"
    return repr(value).replace("e+", "e")


def takes(tree: Tree, event: Mapping[str, Any]) -> bool:
    """Whether Ververica's condition takes the event: where it fails, it does not."""
    try:
        return _bool(_value(tree, event))
    except FailedError:
        return False


def _value(tree: Tree, event: Mapping[str, Any]) -> Any:
    kind, *parts = tree
    match kind:
        case "value":
            return parts[0]
        case "name":
            return _property(event, parts[0].split("."))
        case "&&":
            return _bool(_value(parts[0], event)) and _bool(_value(parts[1], event))
        case "||":
            return _bool(_value(parts[0], event)) or _bool(_value(parts[1], event))
        case "?":
            return _value(parts[1] if _bool(_value(parts[0], event)) else parts[2], event)
        case "not":
            return not _bool(_value(parts[0], event))
        case "neg":
            return _whole(-_number(_value(parts[0], event)))
        case "=~":
            return _matches(_value(parts[0], event), parts[1][1])
        case "call":
            return _whole(_CALLS[parts[0]](*(_value(part, event) for part in parts[1:])))
    left, right = (_value(part, event) for part in parts)
    if kind in _COMPARISONS:
        return _COMPARISONS[kind](_order(left, right))
    return _whole(_arithmetic(kind, left, right))


def _property(event: Any, path: list[str]) -> Any:
    for name in path:
        if event is None:
            raise FailedError
        event = event[name]
    return event


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise FailedError
    return value


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FailedError
    return value


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise FailedError
    return value


def _whole(value: Any) -> Any:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise BeyondError
    return value


def _order(left: Any, right: Any) -> int:
    """Java's compareTo; -0.0, less than 0.0 there, is equal to it here."""
    if left is None or right is None:
        return (left is not None) - (right is not None)
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) - math.isnan(right)
    return int(left > right) - int(left < right)


_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "==": lambda order: order == 0,
    "!=": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


def _matches(text: Any, pattern: str) -> bool:
    return text is not None and re.fullmatch(pattern, _string(text)) is not None


def _arithmetic(operator: str, left: Any, right: Any) -> Any:
    if operator == "+" and (isinstance(left, str) or isinstance(right, str)):
        return "".join("null" if part is None else str(part) for part in (left, right))
    left, right = _number(left), _number(right)
    whole = isinstance(left, int) and isinstance(right, int)
    if not whole:
        left, right = float(left), float(right)
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    if whole and right == 0:
        raise FailedError
    if whole:
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - quotient * right
    if operator == "/":
        return left / right
    return math.nan if math.isinf(left) else math.fmod(left, right)


def _substring(text: Any, begin: int, end: int | None = None) -> str:
    whole = _string(text)
    stop = len(whole) if end is None else end
    if not 0 <= begin <= stop <= len(whole):
        raise FailedError
    return whole[begin:stop]


def _rounded(value: Any, function: Callable[[float], int]) -> float:
    number = float(_number(value))
    return number if math.isinf(number) or math.isnan(number) else float(function(number))


def _log(value: Any) -> float:
    number = float(_number(value))
    if number == 0:
        return -math.inf
    return math.log(number) if not number < 0 else math.nan


def _long(value: Any) -> int:
    number = _number(value)
    if isinstance(number, float) and (math.isnan(number) or abs(number) >= 2**63):
        raise BeyondError
    return int(number)


def _sqrt(value: Any) -> float:
    number = float(_number(value))
    return math.sqrt(number) if not number < 0 else math.nan


_CALLS: dict[str, Callable[..., Any]] = {
    "string.contains": lambda text, part: _string(part) in _string(text),
    "string.startsWith": lambda text, part: _string(text).startswith(_string(part)),
    "string.endsWith": lambda text, part: _string(text).endswith(_string(part)),
    "string.length": lambda text: len(_string(text)),
    "string.indexOf": lambda text, part: _string(text).find(_string(part)),
    "string.substring": _substring,
    "math.abs": lambda x: abs(_number(x)),
    "math.floor": lambda x: _rounded(x, math.floor),
    "math.ceil": lambda x: _rounded(x, math.ceil),
    "math.sqrt": _sqrt,
    "math.log": _log,
    "long": _long,
    "double": lambda x: float(_number(x)),
}
