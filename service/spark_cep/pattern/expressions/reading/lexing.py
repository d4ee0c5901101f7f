"""Text to vetted tokens, before any parsing.

sqlglot's Spark tokenizer cuts the text; this module then refuses what must not be there (comments
and hints, parameters, semicolons, odd names, unbalanced or too deep brackets), reads string
literals exactly as Spark does and joins ``'it''s'`` into one literal, as Spark 4 does. Words
outside ``_GRAMMAR`` lose what sqlglot knows about them and become plain names: the grammar that
can be reached is small, and takes linear time. What leaves here is bounded: ``MAX_TEXT``
characters, ``MAX_DEPTH`` open brackets, CASEs or chained signs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from sqlglot import Token, TokenType
from sqlglot.errors import TokenError

from spark_cep.pattern.expressions.problems import ExpressionError, ExpressionProblem
from spark_cep.pattern.expressions.reading.dialect import tokenize
from spark_cep.pattern.expressions.reading.interval_tokens import read_intervals

MAX_TEXT = 10_000
MAX_DEPTH = 32

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_NUMBER = re.compile(
    r"(?:[0-9]+[lL]|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[bB][dD]|(?:[eE][+-]?[0-9]+)?[dD]?))\Z"
)
_WORD = re.compile(r"[^\W\d]\w*\Z")
_SURROGATES = range(0xD800, 0xE000)
_SIMPLE_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)

_OPENING = {TokenType.L_PAREN: "(", TokenType.L_BRACKET: "["}
_CLOSING = {TokenType.R_PAREN: "(", TokenType.R_BRACKET: "["}
_PUNCTUATION = frozenset(
    {
        TokenType.L_PAREN,
        TokenType.R_PAREN,
        TokenType.L_BRACKET,
        TokenType.R_BRACKET,
        TokenType.COMMA,
        TokenType.ARROW,
        TokenType.DOT,
        TokenType.STAR,
        TokenType.PLUS,
        TokenType.DASH,
        TokenType.SLASH,
        TokenType.MOD,
        TokenType.DPIPE,
        TokenType.EQ,
        TokenType.NEQ,
        TokenType.LT,
        TokenType.LTE,
        TokenType.GT,
        TokenType.GTE,
        TokenType.NULLSAFE_EQ,
    }
)
_GRAMMAR_WORDS = (
    "AND OR NOT IN BETWEEN LIKE ILIKE RLIKE REGEXP IS NULL TRUE FALSE CASE WHEN THEN ELSE END AS "
    "DISTINCT FROM"
)
_GRAMMAR = frozenset(_GRAMMAR_WORDS.split())
CAST_TARGETS = "STRING, INT, BIGINT, DOUBLE, DECIMAL(p, s), BOOLEAN, TIMESTAMP or DATE"
_CAST_WORDS = frozenset(
    "STRING VARCHAR INT INTEGER BIGINT LONG DOUBLE DECIMAL NUMERIC BOOLEAN TIMESTAMP DATE".split()  # noqa: SIM905  # as a sentence
)
_BEFORE_OPERAND = frozenset("AND OR NOT CASE WHEN THEN ELSE BETWEEN LIKE IN DISTINCT".split())  # noqa: SIM905
_NAME_RULE = "a name is ASCII letters, digits and _, not starting with a digit"
_FORBIDDEN_WORDS = {
    "SELECT": "a sub-query",
    "WITH": "a sub-query",
    "VALUES": "a sub-query",
    "OVER": "a window",
    "ESCAPE": "LIKE … ESCAPE",
    "DIV": "the operator DIV",
}
_COMMAS = (
    "commas: HOUR(ts) for EXTRACT(HOUR FROM ts), SUBSTRING(s, 1, 2) for SUBSTRING(s FROM 1 FOR 2)"
)
_OTHER_SIGNS = {"&&": "AND", "&": "AND", "!": "NOT", "|": "OR, or || to join texts"}
_CALLABLE = frozenset({"RLIKE", "REGEXP"})


RUNNING_OR_FINAL = ("RUNNING", "FINAL")


def read_tokens(text: str, *, of_rows: bool = False) -> list[Token]:
    """The vetted tokens of ``text``; ``ExpressionError`` with every problem otherwise.

    In an expression of a row pattern (``of_rows``), RUNNING and FINAL before a call become a part
    of the function's name.
    """
    if len(text) > MAX_TEXT:
        _refuse(f"the expression has {len(text)} characters; the limit is {MAX_TEXT}", 0, len(text))
    try:
        tokens = tokenize(text)
    except TokenError as error:
        raise ExpressionError([_lexical(text)]) from error
    if not tokens:
        _refuse("the expression is empty", 0, len(text))
    query = any(token.token_type is TokenType.SELECT for token in tokens)
    problems = [
        problem
        for before, token in zip([None, *tokens], tokens, strict=False)
        if not (query and token.token_type is TokenType.FROM)
        for problem in _vet(token, before, text)
    ]
    problems += _vet_nesting(tokens)
    joined = read_intervals(_join_strings(tokens, text, problems), text, problems)
    if of_rows:
        problems += [
            ExpressionProblem(
                f"{token.text.upper()} stands before a call",
                token.start,
                end_of(token),
                f"{token.text.upper()} LAST(A.price)",
            )
            for token, after, behind in zip(joined, joined[1:], [*joined[2:], None], strict=False)
            if _is_mode(token) and _is_word(after, text) and not _opens(behind)
        ]
    if problems:
        raise ExpressionError(problems)
    plain = [_plain(place, joined, text) for place in range(len(joined))]
    return _with_modes(plain, text) if of_rows else plain


def _is_mode(token: Token) -> bool:
    return token.token_type is not TokenType.STRING and token.text.upper() in RUNNING_OR_FINAL


def _is_word(token: Token, text: str) -> bool:
    raw = text[token.start : end_of(token)]
    return _NAME.match(raw) is not None and raw.upper() not in _GRAMMAR


def _opens(token: Token | None) -> bool:
    return token is not None and token.token_type is TokenType.L_PAREN


def _with_modes(tokens: list[Token], text: str) -> list[Token]:
    """The tokens with ``FINAL LAST (`` as a call of one name."""
    read: list[Token] = []
    for place, token in enumerate(tokens):
        before = read[-1] if read else None
        called = place + 1 < len(tokens) and _opens(tokens[place + 1])
        if before is not None and _is_mode(before) and called and _is_word(token, text):
            mode = read.pop()
            token = Token(  # noqa: PLW2901  # the one token of both
                TokenType.VAR,
                f"{mode.text} {token.text}",
                line=mode.line,
                col=mode.col,
                start=mode.start,
                end=token.end,
            )
        read.append(token)
    return read


def end_of(token: Token) -> int:
    """The offset just behind a token."""
    return token.end + 1


def _refuse(message: str, start: int, end: int) -> NoReturn:
    raise ExpressionError([ExpressionProblem(message, start, end)])


def _lexical(text: str) -> ExpressionProblem:
    """The tokenizer fails on what is opened and not closed, and on nothing else."""
    for quote, what in (("'", "a string"), ('"', "a string"), ("`", "a quoted name")):
        if text.count(quote) % 2:
            start = text.rfind(quote)
            return ExpressionProblem(f"{what} opened with {quote} is not closed", start, len(text))
    return ExpressionProblem("a string, a quoted name or a comment is not closed", 0, len(text))


def _vet(token: Token, before: Token | None, text: str) -> list[ExpressionProblem]:
    def refused(message: str, allowed: str | None = None) -> list[ExpressionProblem]:
        return [ExpressionProblem(message, token.start, end_of(token), allowed)]

    raw = text[token.start : end_of(token)]
    problems = []
    if token.comments or token.token_type is TokenType.HINT:
        problems += refused("comments and hints are not allowed in an expression")
    if token.token_type in (TokenType.STRING, TokenType.NUMBER) or token.token_type in _PUNCTUATION:
        return problems
    if token.token_type is TokenType.IDENTIFIER:
        if raw.startswith("`") and _NAME.match(token.text):
            return problems
        return problems + refused(
            f"the quoted name {raw} is not allowed",
            _NAME_RULE,
        )
    if _NUMBER.match(raw):
        return problems
    reason = _word_problem(raw, before)
    return problems if reason is None else problems + refused(*reason)


def _word_problem(raw: str, before: Token | None) -> tuple[str, str | None] | None:
    """What is wrong with a word (or a sign that is none of ours) at its place."""
    word = raw.upper()
    after_distinct = before is not None and before.text.upper() == "DISTINCT"
    if word == "FROM" and not after_distinct:
        return "FROM stands behind IS DISTINCT alone", _COMMAS
    if word in _FORBIDDEN_WORDS:
        return f"{_FORBIDDEN_WORDS[word]} is not allowed here", None
    if before is not None and before.token_type is TokenType.ALIAS and word not in _CAST_WORDS:
        return f"{raw} is not a type that CAST may name", CAST_TARGETS
    if _NAME.match(raw):
        return None
    if _WORD.match(raw):
        return f"the name {raw!r} is not allowed", _NAME_RULE
    instead = _OTHER_SIGNS.get(raw)
    return f"{raw!r} is not allowed in an expression", instead and f"write {instead}"


def _vet_nesting(tokens: Sequence[Token]) -> list[ExpressionProblem]:
    stack: list[Token] = []
    depth = run = 0
    for token in tokens:
        kind = token.token_type
        run = run + 1 if kind in (TokenType.DASH, TokenType.NOT, TokenType.PLUS) else 0
        if kind in _OPENING:
            stack.append(token)
        elif kind in _CLOSING:
            if not stack or _OPENING[stack[-1].token_type] != _CLOSING[kind]:
                message = f"{token.text!r} closes nothing"
                return [ExpressionProblem(message, token.start, end_of(token))]
            stack.pop()
        elif kind is TokenType.CASE:
            depth += 1
        elif kind is TokenType.END:
            depth -= 1
        if len(stack) + depth > MAX_DEPTH or run > MAX_DEPTH:
            return [
                ExpressionProblem(
                    f"the expression is nested too deeply; the limit is {MAX_DEPTH}",
                    token.start,
                    end_of(token),
                )
            ]
    return [
        ExpressionProblem(f"{token.text!r} is not closed", token.start, end_of(token))
        for token in stack
    ]


def _join_strings(
    tokens: Sequence[Token], text: str, problems: list[ExpressionProblem]
) -> list[Token]:
    joined: list[Token] = []
    for token in tokens:
        if token.token_type is not TokenType.STRING:
            joined.append(token)
            continue
        quote = text[token.start]
        value = _unescape(text[token.start + 1 : token.end])
        start = token.start
        if quote not in "'\"":
            problems.append(
                ExpressionProblem(
                    f"the string prefix {quote!r} is not allowed",
                    token.start,
                    end_of(token),
                    "a string is written '…' or \"…\"",
                )
            )
        if joined and joined[-1].token_type is TokenType.STRING:
            before = joined.pop()
            if end_of(before) != token.start or text[before.start] != quote:
                problems.append(
                    ExpressionProblem(
                        "two strings stand side by side",
                        token.start,
                        end_of(token),
                        "join strings with ||",
                    )
                )
            value, start = before.text + quote + value, before.start
        joined.append(
            Token(
                TokenType.STRING, value, line=token.line, col=token.col, start=start, end=token.end
            )
        )
    return joined


def _plain(place: int, tokens: Sequence[Token], text: str) -> Token:
    """The token with a meaning only where the grammar of expressions gives it one."""
    token = tokens[place]
    before = tokens[place - 1] if place else None
    after = tokens[place + 1] if place + 1 < len(tokens) else None
    kind = token.token_type
    if kind in (TokenType.STRING, TokenType.IDENTIFIER) or kind in _PUNCTUATION:
        return token
    raw = text[token.start : end_of(token)]
    word = raw.upper()
    starts_literal = (
        word in ("DATE", "TIMESTAMP")
        and after is not None
        and after.token_type is TokenType.STRING
        and not (before is not None and before.token_type is TokenType.DOT)
    )
    names_type = before is not None and before.token_type is TokenType.ALIAS
    called = word in _CALLABLE and not _follows_operand(place, tokens)
    if (word in _GRAMMAR and not called) or starts_literal or names_type:
        return token
    plain = TokenType.NUMBER if _NUMBER.match(raw) else TokenType.VAR
    return Token(plain, raw, line=token.line, col=token.col, start=token.start, end=token.end)


def _follows_operand(place: int, tokens: Sequence[Token]) -> bool:
    """Return whether a word stands behind a value, where an operator must."""
    if place and tokens[place - 1].token_type is TokenType.NOT:
        place -= 1
    if not place:
        return False
    before = tokens[place - 1]
    ends = before.token_type in (TokenType.STRING, TokenType.IDENTIFIER, *_CLOSING)
    return ends or (
        before.token_type not in _PUNCTUATION and before.text.upper() not in _BEFORE_OPERAND
    )


def _unescape(raw: str) -> str:
    r"""A string literal's value as Spark reads it; ``\%`` and ``\_`` keep their backslash."""

    def replace(match: re.Match[str]) -> str:
        short, long, octal, other = match.groups()
        if short or long:
            code = int(short or long, 16)
            return chr(code) if code <= sys.maxunicode and code not in _SURROGATES else "\ufffd"
        if octal:
            return chr(int(octal, 8))
        if other in "%_":
            return f"\\{other}"
        return _SIMPLE_ESCAPES.get(other, other)

    return _ESCAPE.sub(replace, raw)
