"""The grammar of Aviator expressions, as a tree with places.

Operators bind as in AviatorScript, from ``?:`` to ``**``. What is in the grammar and has no
counterpart here (bits, ``**``, ``a[0]``) is refused by ``aviator`` with its place, so that one
look shows all of it; statements, assignments and lambdas are no part of the grammar.
"""

from __future__ import annotations

from functools import cache

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from spark_cep.pattern.expressions import MAX_TEXT, ExpressionError, TextProblem
from spark_cep.pattern.expressions.problems import refused

_GRAMMAR = r"""
start: ternary
?ternary: disjunction | disjunction "?" ternary ":" ternary -> choice
?disjunction: conjunction ("||" conjunction)*
?conjunction: bits ("&&" bits)*
?bits: equality (BITS equality)*
?equality: relation (EQUALITY relation)*
?relation: shift (RELATION shift)*
?shift: sum (SHIFT sum)*
?sum: product ((PLUS | MINUS) product)*
?product: prefix ((TIMES | SLASH | PERCENT) prefix)*
?prefix: (MINUS | BANG | TILDE) prefix -> sign | power
?power: primary (POWER prefix)*
?primary: primary "[" ternary "]" -> index | NUMBER | STRING | REGEX | path | call
    | "(" ternary ")"
path: NAME
call: NAME "(" [ternary ("," ternary)*] ")"

BITS: /&(?!&)|\|(?!\|)|\^/
EQUALITY: "==" | "!=" | "=~"
RELATION: "<=" | ">=" | "<" | ">"
SHIFT: ">>>" | "<<" | ">>"
PLUS: "+"
MINUS: "-"
TIMES: "*"
SLASH: "/"
PERCENT: "%"
POWER: "**"
BANG: "!"
TILDE: "~"
NUMBER: /0[xX][0-9a-fA-F]+|([0-9]+\.?[0-9]*|\.[0-9]+)([eE]-?[0-9]+)?[NM]?/
STRING: /"(\\[\s\S]|[^"\\])*"|'(\\[\s\S]|[^'\\])*'/
REGEX: /\/(\\[\s\S]|[^\/\\])*\//
NAME: /[^\W\d][\w$]*(\.[^\W\d][\w$]*)*|\$[\w$]*/
COMMENT: /##[^\n]*/
%ignore /[ \t\r\n]+/
%ignore COMMENT
"""

Syntax = Tree[Token] | Token


def parse_aviator(text: str) -> Syntax:
    """The tree of an expression; ``ExpressionError`` at the first thing that is not expected."""
    if len(text) > MAX_TEXT:
        message = f"the expression has {len(text):,} characters; the limit is {MAX_TEXT:,}"
        raise refused(message, (0, len(text)))
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        raise ExpressionError([_problem(error, text)]) from error
    only: Syntax = tree.children[0]
    return only


def place(syntax: Syntax) -> tuple[int, int]:
    """From where to where in the text."""
    at = syntax if isinstance(syntax, Token) else syntax.meta
    return int(at.start_pos or 0), int(at.end_pos or 0)


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", propagate_positions=True)


def _problem(error: UnexpectedInput, text: str) -> TextProblem:
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        start, end = place(error.token)
        return TextProblem(f"`{text[start:end]}` is not expected here", (start, end))
    if isinstance(error, UnexpectedCharacters):
        start = int(error.pos_in_stream or 0)
        sign = text[start]
        message = f"`{sign}` is not expected here"
        if sign in "\"'":
            message = "the quote that opens here is not closed"
        return TextProblem(message, (start, start + 1))
    message = "the expression is not complete" if text.strip() else "the expression is empty"
    return TextProblem(message, (max(0, len(text) - 1), len(text)))
