"""``INTERVAL 5 MINUTES`` among the tokens becomes the call ``INTERVAL('5 MINUTES')``.

So the grammar of the parser, which has many forms of intervals, stays out of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import Token, TokenType

from spark_cep.pattern.expressions.intervals import FORM
from spark_cep.pattern.expressions.problems import ExpressionProblem

_COUNT = re.compile(r"\s*[+-]?[0-9.]+\s*\Z")
_SIGNS = {TokenType.DASH: "-", TokenType.PLUS: "+"}


def read_intervals(
    tokens: Sequence[Token], text: str, problems: list[ExpressionProblem]
) -> list[Token]:
    """The tokens with every interval as a call of its text; what is none is a problem."""
    read: list[Token] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        place += 1
        plain = token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)
        is_field = bool(read) and read[-1].token_type is TokenType.DOT
        if not plain or token.text.upper() != "INTERVAL" or is_field:
            read.append(token)
            continue
        said, end = _interval(tokens, place, text)
        if end < len(tokens) and end == place and tokens[end].token_type is TokenType.L_PAREN:
            read.append(token)
            continue
        if end == place:
            message = "INTERVAL needs a number and a unit"
            problems.append(ExpressionProblem(message, token.start, token.end + 1, FORM))
            continue
        read.append(token)
        start, last = tokens[place].start, tokens[end - 1].end
        for kind, written in (
            (TokenType.L_PAREN, "("),
            (TokenType.STRING, said),
            (TokenType.R_PAREN, ")"),
        ):
            read.append(Token(kind, written, line=token.line, col=token.col, start=start, end=last))
        place = end
    return read


def _interval(tokens: Sequence[Token], place: int, text: str) -> tuple[str, int]:
    """The text of the interval that begins at a place, and the place behind it."""
    said: list[str] = []
    if place < len(tokens) and tokens[place].token_type is TokenType.STRING:
        said.append(tokens[place].text)
        place += 1
        if _COUNT.match(said[0]) and _is_word(tokens, place, text):
            said.append(tokens[place].text)
            place += 1
        return " ".join(said), place
    while True:
        end = place
        sign = ""
        if not said and end < len(tokens) and tokens[end].token_type in _SIGNS:
            sign = _SIGNS[tokens[end].token_type]
            end += 1
        if end >= len(tokens) or tokens[end].token_type is not TokenType.NUMBER:
            return " ".join(said), place
        if not _is_word(tokens, end + 1, text):
            return " ".join(said), place
        said += [sign + tokens[end].text, tokens[end + 1].text]
        place = end + 2


def _is_word(tokens: Sequence[Token], place: int, text: str) -> bool:
    if place >= len(tokens):
        return False
    token = tokens[place]
    return re.match(r"[A-Za-z]+\Z", text[token.start : token.end + 1]) is not None
