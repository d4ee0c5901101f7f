"""Text to syntax tree, by ``grammar.lark``.

Lark's LALR parser takes linear time and does not recurse; what it is given is bounded by
``MAX_TEXT``. How deep the tree is, is bounded where it is read, by ``reader``.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from spark_cep.pattern.expressions.nodes import Span
from spark_cep.pattern.expressions.problems import ExpressionError, refused
from spark_cep.pattern.expressions.reading.mistakes import syntax_problem

MAX_TEXT = 10_000

Syntax = Tree[Any]

_NAMES = ("NAME", "FIELD", "QUOTED")


def read_syntax(text: str) -> Syntax:
    """The tree of an expression; ``ExpressionError`` at the first place that breaks the grammar."""
    if len(text) > MAX_TEXT:
        message = f"the expression has {len(text)} characters; the limit is {MAX_TEXT}"
        raise refused(message, (0, len(text)))
    try:
        return _parser().parse(text)
    except UnexpectedInput as error:
        raise ExpressionError([syntax_problem(text, error)]) from error


def place(syntax: Syntax) -> Span:
    """From where to where a tree stands in the text."""
    return syntax.meta.start_pos, syntax.meta.end_pos


def parts(syntax: Syntax) -> list[Syntax]:
    """The trees directly beneath a tree."""
    return [child for child in syntax.children if isinstance(child, Tree)]


def words(syntax: Syntax) -> list[Token]:
    """The tokens directly beneath a tree."""
    return [child for child in syntax.children if isinstance(child, Token)]


def names(syntax: Syntax) -> list[str]:
    """The names in a tree, in the order of the text, without backticks."""
    return [word.strip("`") for word in words(syntax) if word.type in _NAMES]


@cache
def _parser() -> Lark:
    grammar = files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    flags = re.IGNORECASE | re.ASCII
    return Lark(grammar, parser="lalr", propagate_positions=True, g_regex_flags=flags)
