"""Calls of functions by name, and what their arguments must be.

Calls over a step's events are read by ``look_backs``, those over a match's rows by ``row_values``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from spark_cep.documents.nearest import nearest
from spark_cep.pattern.expressions.functions import ALIASES, FUNCTIONS, SPECIAL_CALLS
from spark_cep.pattern.expressions.functions.withheld import INSTEAD, WITHHELD
from spark_cep.pattern.expressions.nodes import Call, Cast, Literal, Node, Span
from spark_cep.pattern.expressions.problems import ExpressionError, TextProblem, refused
from spark_cep.pattern.expressions.values.like import ilike_matcher, like_matcher
from spark_cep.pattern.expressions.values.literals import like_problem
from spark_cep.pattern.types import DATE, INT, NULL

MAX_ROUND_DIGITS = 18
_KINDS = {str: "a string", int: "a whole number"}
_MATCHERS: dict[str, Callable[[str], Any]] = {"LIKE": like_matcher, "ILIKE": ilike_matcher}


def check_count(name: str, count: int, span: Span) -> None:
    """``ExpressionError`` if a function does not take that many arguments."""
    if name in SPECIAL_CALLS:
        least, most = SPECIAL_CALLS[name]
        takes = f"{most} argument{'s' * (most != 1)}"
        fits = least <= count <= most
    else:
        row = FUNCTIONS[name]
        least, most_of_any = row.arguments
        takes = row.count
        fits = least <= count and (most_of_any is None or count <= most_of_any)
    if not fits:
        raise refused(f"{name} takes {takes}, not {count}", span)


def call(name: str, arguments: tuple[Node, ...], span: Span) -> Node:
    """The call of a function that takes that many arguments; ``ExpressionError`` if it takes others
    than these."""
    match name:
        case "MOD":
            return Call("%", arguments, span)
        case "IF":
            condition, then, otherwise = (*arguments, Literal(None, NULL, span))[:3]
            return Call("CASE", (condition, then, otherwise), span)
        case "ROUND":
            return _round(arguments, span)
        case "TO_DATE" if len(arguments) == 1:
            return Cast(arguments[0], DATE, span)
        case "LIKE" | "ILIKE":
            return _like(name, arguments, span)
    row = FUNCTIONS[name]
    constants = []
    problems = []
    for place, kind in row.constants.items():
        if place >= len(arguments):
            continue
        argument = arguments[place]
        # Not isinstance: True is an int.
        if not isinstance(argument, Literal) or type(argument.value) is not kind:
            message = f"argument {place + 1} of {name} must be {_KINDS[kind]} in the text"
            at = argument.span if argument.span != (0, 0) else span
            problems.append(TextProblem(message, at))
        else:
            constants.append(argument)
    if problems:
        raise ExpressionError(problems)
    if row.prepare is not None:
        try:
            row.prepare(*(constant.value for constant in constants))
        except ValueError as error:
            at = constants[0].span if len(constants) == 1 else span
            raise refused(f"{name}: {error}", at) from error
    return Call(name, arguments, span)


def unknown_function(written: str, span: Span, others: Iterable[str]) -> ExpressionError:
    """The error of a name that is no function; ``others`` are functions beside those of
    ``functions``."""
    name = written.upper()
    message = f"the function {written} is not allowed"
    if name in WITHHELD:
        return refused(f"{message}: {WITHHELD[name]}", span)
    if name in INSTEAD:
        return refused(message, span, f"use {INSTEAD[name]}")
    near = nearest(name, sorted((*others, *FUNCTIONS, *ALIASES, *SPECIAL_CALLS)))
    return refused(message, span, f"did you mean {near}?" if near else None)


def _like(operator: str, operands: tuple[Node, ...], span: Span) -> Node:
    pattern = operands[1]
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise refused(f"the pattern of {operator} must be a string in the text", span)
    problem = like_problem(pattern.value)
    if problem is not None:
        raise refused(problem, pattern.span)
    try:
        _MATCHERS[operator](pattern.value)
    except ValueError as error:
        raise refused(f"{operator}: {error}", pattern.span) from error
    return Call(operator, operands, span)


def _round(arguments: tuple[Node, ...], span: Span) -> Node:
    value, digits = (*arguments, Literal(0, INT, span))[:2]
    if isinstance(digits, Literal) and digits.type == INT:
        count = digits.value
        if isinstance(count, int) and 0 <= count <= MAX_ROUND_DIGITS:
            return Call("ROUND", (value, digits), span)
    message = f"ROUND takes a number of digits from 0 to {MAX_ROUND_DIGITS}"
    raise refused(message, digits.span)
