"""Text to expression: tokens are vetted, sqlglot parses, the tree is vetted."""

from __future__ import annotations

import re

from sqlglot import Token
from sqlglot.errors import ParseError

from spark_cep.pattern.expressions.canonical import expression
from spark_cep.pattern.expressions.checking.growth import growth_problems
from spark_cep.pattern.expressions.checking.lambdas import lambda_problems
from spark_cep.pattern.expressions.nodes import Expression
from spark_cep.pattern.expressions.problems import ExpressionError, ExpressionProblem
from spark_cep.pattern.expressions.reading.dialect import parse_tokens
from spark_cep.pattern.expressions.reading.lexing import end_of, read_tokens
from spark_cep.pattern.expressions.reading.row_scope import RowPatternScope
from spark_cep.pattern.expressions.reading.scope import Scope
from spark_cep.pattern.expressions.reading.syntax import ExpressionTreeReader


def parse(text: str, *, steps: frozenset[str] = frozenset(), measure: bool = False) -> Expression:
    """The expression that ``text`` says; ``ExpressionError`` with all problems otherwise.

    ``steps`` are the names that look-backs may use. In a ``measure`` a bare column is that of the
    match's last event, and FIRST, LAST, SUM … may run over all events of the match.
    """
    return _parse(text, Scope(steps, measure))


def parse_of_rows(text: str, scope: RowPatternScope) -> Expression:
    """A condition or measure of MATCH_RECOGNIZE; ``ExpressionError`` with all problems."""
    return _parse(text, scope)


def _parse(text: str, scope: Scope | RowPatternScope) -> Expression:
    tokens = read_tokens(text, of_rows=isinstance(scope, RowPatternScope))
    ends = _closing_brackets(text, tokens)
    try:
        statements = parse_tokens(tokens, text)
    except ParseError as error:
        raise ExpressionError([_syntax_problem(text, error)]) from error
    except RecursionError as error:
        raise ExpressionError(
            [ExpressionProblem("the expression is nested too deeply", 0, len(text))]
        ) from error
    if len(statements) != 1 or statements[0] is None:
        raise ExpressionError([ExpressionProblem("one expression is expected", 0, len(text))])
    reader = ExpressionTreeReader(text, ends, scope)
    node = reader.read(statements[0])
    if not reader.problems:
        reader.problems += lambda_problems(node) or growth_problems(node)
    if reader.problems:
        raise ExpressionError(list(dict.fromkeys(reader.problems)))
    return expression(node, text)


def _closing_brackets(text: str, tokens: list[Token]) -> dict[int, int]:
    """For each name that is called: the offset of its start → the offset behind its ``)``."""
    ends: dict[int, int] = {}
    stack: list[int] = []
    for index, token in enumerate(tokens):
        symbol = text[token.start : end_of(token)]
        if symbol in ("(", "["):
            stack.append(tokens[index - 1].start if index else token.start)
        elif symbol in (")", "]"):
            ends[stack.pop()] = end_of(token)
    return ends


def _syntax_problem(text: str, error: ParseError) -> ExpressionProblem:
    details = error.errors[0] if error.errors else {}
    line, column = details.get("line"), details.get("col")
    found = str(details.get("highlight") or "")
    if not isinstance(line, int) or not isinstance(column, int):
        return ExpressionProblem("this is not an expression", 0, len(text))
    before = sum(len(part) for part in re.split(r"(?<=\n)", text)[: line - 1])
    end = min(len(text), before + column)
    start = max(0, end - max(1, len(found)))
    if "Unexpected token" in str(details.get("description")):
        return ExpressionProblem(f"{text[start:end]!r} is not expected here", start, end)
    return ExpressionProblem(f"the expression is not complete at {text[start:end]!r}", start, end)
