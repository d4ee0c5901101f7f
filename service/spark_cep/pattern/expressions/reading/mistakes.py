"""What is wrong where a text breaks the grammar of expressions, and what to write instead."""

from __future__ import annotations

import re
from typing import Any

from lark import Token
from lark.exceptions import UnexpectedInput, UnexpectedToken

from spark_cep.pattern.expressions.intervals import FORM, UNITS
from spark_cep.pattern.expressions.problems import ExpressionProblem

CAST_TARGETS = "STRING, INT, BIGINT, DOUBLE, DECIMAL(p, s), BOOLEAN, TIMESTAMP or DATE"
UNCLEAR = "it is not clear what belongs together"
PARENTHESES = "put parentheses around it"

_NAME_RULE = "a name is ASCII letters, digits and _, not starting with a digit"
_COMMAS = (
    "commas: HOUR(ts) for EXTRACT(HOUR FROM ts), SUBSTRING(s, 1, 2) for SUBSTRING(s FROM 1 FOR 2)"
)
_NO_OPERATOR = "an operator between two values; an alias is not allowed"
_SIGN = "{shown} is not allowed in an expression"
_UNIT = "|".join(f"{unit}S?" for unit in UNITS)
_CLOSING = {"LPAR": ")", "LSQB": "]"}
_NEAR = 100

# What stands before, what stands there, what is wrong, and what is allowed. The first that fits is
# told; nothing there: whatever it is.
_KNOWN = (
    ("", r"--|/\*", "comments and hints are not allowed in an expression", None),
    ("", r"`(?![A-Z_]\w*`(?!`))(?:[^`]|``)*`", "the quoted name {found} is not allowed",
     _NAME_RULE),
    ("", r"(?:SELECT|WITH|VALUES)\b", "a sub-query is not allowed here", None),
    ("", r"OVER\b", "a window is not allowed here", None),
    ("", r"ESCAPE\b", "LIKE … ESCAPE is not allowed here", None),
    ("", r"IGNORE\b", "IGNORE NULLS is not allowed here", None),
    ("", r"DIV\b", "the operator DIV is not allowed here", "FLOOR(a / b)"),
    ("", r"FROM\b", "FROM stands behind IS DISTINCT alone", _COMMAS),
    ("", r"&&?", _SIGN, "write AND"),
    ("", r"!(?!=)", _SIGN, "write NOT"),
    ("", r"\|(?!\|)", _SIGN, "write OR, or || to join texts"),
    (r"\bAS\s+", r"\w+", "{found} is not a type that CAST may name", CAST_TARGETS),
    (r"\bIS\s+(?:NOT\s+)?", "", "IS takes NULL, TRUE, FALSE or DISTINCT FROM", None),
    (r"\bIN\s*", "", "IN needs a list", "x IN ('a', 'b')"),
    (r"\bINTERVAL\s*(?:[+-]?\s*[\d.]+\s*)?", "", "INTERVAL needs a number and a unit", FORM),
    (r"\w\s*\.\s*", "", "this is not a name", None),
    (r"\b\d+(?:\.\d+)?\s*%\s*", r"\Z|\w+|[^\w\s]", "% is the remainder of a division",
     "a share as a number, such as 0.1 for 10%"),
    (r"(?<![\w.])(?P<number>\d+)", r",\s*(?P<more>\d+)", "{shown} is not expected here",
     "a decimal point: {number}.{more}"),
    (r"(?<![\w.])(?P<number>\d+(?:\.\d+)?)\s*", rf"(?:{_UNIT})\b", "{shown} is not expected here",
     "INTERVAL {number} {upper}"),
    (r"\b(?P<mode>RUNNING|FINAL)\s+", r"\w+", "{mode} stands before a call",
     "{mode} LAST(A.price)"),
    ("", r"(?:CONTAINS|STARTSWITH|ENDSWITH)\b", "{upper} is a function", "{upper}(name, 'text')"),
    (r"\b(?P<function>CONTAINS|STARTSWITH|ENDSWITH)\s*", "", "{function} is a function",
     "{function}(name, 'text')"),
    (r"\.\s*\w+\s*", r"\(", "a function has no qualified name, and is not called on a value", None),
    (r"`\s*", r"\(", "a function is called by its plain name", None),
    (r"['\"]\s*", r"['\"].*", "two strings stand side by side", "join strings with ||"),
    (r"\b(?P<prefix>[A-Z]\w*)", r"['\"]", "the string prefix {prefix} is not allowed", None),
    (r"[-=<>+*/%|]\s*", r"NOT\b", UNCLEAR, PARENTHESES),
)  # fmt: skip
_ROWS = tuple(
    (
        re.compile(rf"(?:{before})\Z", re.IGNORECASE),
        re.compile(there, re.IGNORECASE | re.DOTALL),
        message,
        allowed,
    )
    for before, there, message, allowed in _KNOWN
)
_UNKNOWN = re.compile(r"[\w.]*\w|::|=>|.", re.DOTALL)
_LAST = re.compile(r"(?:\w+|[^\w\s]+)\s*\Z")


def syntax_problems(text: str, error: UnexpectedInput) -> list[ExpressionProblem]:
    """The reason why nothing can stand where the parser stopped; all that is open at the end."""
    if not text.strip():
        return [ExpressionProblem("the expression is empty", 0, len(text))]
    parser: Any = error.interactive_parser
    stack = parser.parser_state.value_stack
    opened = [each for each in stack if isinstance(each, Token) and each.type in _CLOSING]
    if not isinstance(error, UnexpectedToken):
        start = error.pos_in_stream or 0
        return _known(text, start, 1) or [_unknown(text, start)]
    if error.token.type == "$END":
        return _known(text, len(text), 0) or _incomplete(text, opened)
    start, found = error.token.start_pos or 0, str(error.token)
    known = _known(text, start, len(found))
    if known:
        return known
    if found in ")]" and (not opened or _CLOSING[opened[-1].type] != found):
        return [ExpressionProblem(f"{found!r} closes nothing", start, start + 1)]
    is_word = found[0].isalpha() or found[0] == "_"
    allowed = _NO_OPERATOR if is_word or found[0] in "0123456789'\"`" else None
    if "NAME" in parser.choices():
        allowed = f"a value; a column of that name is written `{found}`" if is_word else "a value"
    message = f"{found!r} is not expected here"
    return [ExpressionProblem(message, start, start + len(found), allowed)]


def _known(text: str, start: int, length: int) -> list[ExpressionProblem]:
    """What the table has of the place."""
    before = text[max(0, start - _NEAR) : start]
    for behind, there, message, instead in _ROWS:
        at, around = there.match(text, start), behind.search(before)
        if at is None or around is None:
            continue
        found = at[0] or text[start : start + length]
        words = {"found": found, "shown": repr(found), "upper": found.upper()}
        words |= {
            name: said.upper() for name, said in (around.groupdict() | at.groupdict()).items()
        }
        first, last = start - len(before) + around.start(), max(at.end(), start + length)
        allowed = None if instead is None else instead.format(**words)
        return [ExpressionProblem(message.format(**words), first, last, allowed)]
    return []


def _unknown(text: str, start: int) -> ExpressionProblem:
    """What is no part of the language."""
    if text[start] in "'\"`":
        what = "a quoted name" if text[start] == "`" else "a string"
        message = f"{what} opened with {text[start]} is not closed"
        return ExpressionProblem(message, start, len(text))
    while start and text[start].isalnum() and text[start - 1].isalnum():
        start -= 1
    match = _UNKNOWN.match(text, start)
    found = match[0] if match else text[start:]
    if found[0].isalpha() and not found.isascii():
        message, allowed = f"the name {found!r} is not allowed", _NAME_RULE
        return ExpressionProblem(message, start, start + len(found), allowed)
    message = f"{found!r} is not allowed in an expression"
    return ExpressionProblem(message, start, start + len(found))


def _incomplete(text: str, opened: list[Token]) -> list[ExpressionProblem]:
    """What is missing at the end: brackets, or whatever the last word needs."""
    if opened:
        return [
            ExpressionProblem(
                f"{str(each)!r} is not closed", each.start_pos or 0, each.end_pos or 0
            )
            for each in opened
        ]
    match = _LAST.search(text)
    found = match[0].strip() if match else ""
    start = match.start() if match else 0
    message = f"the expression is not complete at {found!r}"
    return [ExpressionProblem(message, start, start + len(found))]
