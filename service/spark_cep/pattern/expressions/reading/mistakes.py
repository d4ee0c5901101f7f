"""The problem where a text breaks the grammar of expressions, and what to write instead."""

from __future__ import annotations

import re
from typing import Any

from lark import Token
from lark.exceptions import UnexpectedInput, UnexpectedToken

from spark_cep.pattern.expressions.intervals import FORM, UNITS
from spark_cep.pattern.expressions.problems import TextProblem

CAST_TARGETS = "STRING, INT, BIGINT, DOUBLE, DECIMAL(p, s), BOOLEAN, TIMESTAMP or DATE"
UNCLEAR = "it is not clear what belongs together"
PARENTHESES = "put parentheses around it"

_NAME_RULE = "a name is ASCII letters, digits and _, not starting with a digit"
_COMMAS = (
    "commas: HOUR(ts) for EXTRACT(HOUR FROM ts), SUBSTRING(s, 1, 2) for SUBSTRING(s FROM 1 FOR 2)"
)
_NO_OPERATOR = "an operator between two values; an alias is not allowed"
_SIGN = "{shown} is not allowed in an expression"
_BACKTICKS = "a column called {word} needs backticks: `{word}`"
_USE = r"[=<>!.,)\]/%]|(?:IS|IN|BETWEEN|I?LIKE|RLIKE|REGEXP|AND|OR)\b"
_UNIT = "|".join(f"{unit}S?" for unit in UNITS)
_CLOSING = {"LPAR": ")", "LSQB": "]"}
_NEAR = 100
_MOST_SHOWN = 60

# What stands before, what stands there, what is wrong, and what is allowed. The first that fits is
# reported; nothing there: whatever it is.
_KNOWN = (
    ("", r"--|/\*", "comments and hints are not allowed in an expression", None),
    ("", r"`(?![A-Z_]\w*`(?!`))(?:[^`]|``)*`", "the quoted name {found} is not allowed",
     _NAME_RULE),
    ("", r"(?:SELECT|WITH|VALUES)\b", "a sub-query is not allowed here", None),
    ("", r"OVER\b", "a window is not allowed here", None),
    ("", r"ESCAPE\b", "LIKE … ESCAPE is not allowed here", None),
    ("", r"IGNORE\b", "IGNORE NULLS is not allowed here", None),
    ("", r"DIV\b", "the operator DIV is not allowed here", "FLOOR(a / b)"),
    ("", r"FILTER\b", "{shown} is not expected here",
     "COUNT_IF(condition), or SUM(CASE WHEN condition THEN x END)"),
    (r"\b(?P<function>LISTAGG|STRING_AGG)\s*\([^()]*\)\s*", r"WITHIN\s+GROUP\b",
     "the function {function} is not allowed",
     "COLLECT(step.column), or in SQL ARRAY_AGG(A.column), in the order of the rows"),
    ("", r"GROUP\b", "{shown} is not expected here",
     "PARTITION BY of the clause, or `key` of the rule: each key is matched by itself"),
    ("", r"ORDER\b", "{shown} is not expected here",
     "no order of its own: values are in the order of their rows"),
    (r"\bINTERVAL\s*'[^']*'\s*\w+\s*", r"TO\s+\w+", "{shown} is not expected here",
     "a number for each unit: INTERVAL 1 HOUR 30 MINUTES"),
    ("", r"FROM\b", "FROM stands behind IS DISTINCT alone", _COMMAS),
    ("", r"[‘’“”](?P<text>[^‘’“”'\"]*)[‘’“”'\"]?", "typographic quotes are not allowed: {shown}",
     "straight quotes: '{text}'"),
    ("", r"&&?", _SIGN, "write AND"),
    ("", r"!(?!=)", _SIGN, "write NOT"),
    ("", r"\|(?!\|)", _SIGN, "write OR, or || to join texts"),
    (r"\bAS\s+", r"\w+", "{found} is not a type that CAST may name", CAST_TARGETS),
    (r"\bIS\s+(?:NOT\s+)?", "", "IS takes NULL, TRUE, FALSE or DISTINCT FROM", None),
    (r"\bIN\s*", r"[A-Z_]\w*", "IN needs a list", "x IN ('a', 'b'); ARRAY_CONTAINS(array, x)"),
    (r"\bIN\s*", "", "IN needs a list", "x IN ('a', 'b')"),
    (r"\b(?P<word>INTERVAL)\s*", rf"(?={_USE})", "INTERVAL needs a number and a unit",
     f"{FORM}; {_BACKTICKS}"),
    (r"\bINTERVAL\s*(?:[+-]?\s*[\d.]+\s*)?", "", "INTERVAL needs a number and a unit", FORM),
    (r"\b(?P<word>CASE)\s*", rf"(?={_USE}|\Z)", "CASE needs WHEN",
     f"CASE WHEN condition THEN value END; {_BACKTICKS}"),
    (r"\b(?P<word>NOT)\s*", rf"(?={_USE})", "NOT needs a condition", _BACKTICKS),
    (r"\bBETWEEN\s+\S+\s+", r"[\w'\".]+", "BETWEEN needs AND", "x BETWEEN 10 AND 100"),
    (r"\w\s*\.\s*", "", "this is not a name", None),
    (r"\b\d+(?:\.\d+)?\s*%\s*", r"\Z|\w+|[^\w\s]", "% is the remainder of a division",
     "a share as a number, such as 0.1 for 10%"),
    (r"(?<![\w.,])\d{1,3}", r"(?:,\s*\d{3})+(?!\d)", "{shown} is not expected here",
     "a number without separators, such as 1000000, and a point before its decimals, as in 1.5"),
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
#: What is allowed there says what is meant without doubt.
_MEANT = {
    "write AND": "AND",
    "INTERVAL {number} {upper}": "INTERVAL {number} {upper}",
    "a decimal point: {number}.{more}": "{number}.{more}",
    "straight quotes: '{text}'": "'{text}'",
}
_ROWS = tuple(
    (
        re.compile(rf"(?:{before})\Z", re.IGNORECASE),
        re.compile(there, re.IGNORECASE | re.DOTALL),
        message,
        allowed,
    )
    for before, there, message, allowed in _KNOWN
)
_USED_WORD = re.compile(rf"(?P<word>[A-Z_]\w*)\s*(?:(?:{_USE}).*)?", re.IGNORECASE | re.DOTALL)
_NO_TOKEN = re.compile(r"[\w.]*\w|::|=>|.", re.DOTALL)
_LAST = re.compile(r"(?:\w+|[^\w\s]+)\s*\Z")


def syntax_problem(text: str, error: UnexpectedInput) -> TextProblem:
    """The reason why what stands where the parser stopped cannot stand there."""
    if not text.strip():
        return TextProblem("the expression is empty", (0, len(text)))
    parser: Any = error.interactive_parser
    stack = parser.parser_state.value_stack
    opened = [token for token in stack if isinstance(token, Token) and token.type in _CLOSING]
    if not isinstance(error, UnexpectedToken):
        start = error.pos_in_stream or 0
        problem = _known(text, start, 1) or _no_token(text, start)
        return _with_backticks(problem, text) if "NAME" in parser.choices() else problem
    if error.token.type == "$END":
        return _known(text, len(text), 0) or _incomplete(text, opened)
    start, found = error.token.start_pos or 0, str(error.token)
    known = _known(text, start, len(found))
    if known is not None:
        return _with_backticks(known, text) if "NAME" in parser.choices() else known
    if found in ")]" and (not opened or _CLOSING[opened[-1].type] != found):
        return TextProblem(f"{found!r} closes nothing", (start, start + 1))
    is_word = found[0].isalpha() or found[0] == "_"
    allowed = _NO_OPERATOR if is_word or found[0] in "0123456789'\"`" else None
    if "NAME" in parser.choices():
        allowed = f"a value; {_BACKTICKS.format(word=found)}" if is_word else "a value"
    message = f"{_shown(found)} is not expected here"
    return TextProblem(message, (start, start + len(found)), allowed)


def _known(text: str, start: int, length: int) -> TextProblem | None:
    """The row of the table that fits the place."""
    before = text[max(0, start - _NEAR) : start]
    for behind, there, message, allowed in _ROWS:
        at, around = there.match(text, start), behind.search(before)
        if at is None or around is None:
            continue
        found = at[0] or text[start : start + length]
        words = {"found": found[:_NEAR], "shown": _shown(found), "upper": found.upper()}
        words |= around.groupdict() | at.groupdict()
        first, last = start - len(before) + around.start(), max(at.end(), start + length)
        instead = None if allowed is None else allowed.format(**words)
        meant = _MEANT.get(allowed or "")
        fix = None if meant is None or found == "&" else meant.format(**words)
        return TextProblem(message.format(**words), (first, last), instead, fix)
    return None


def _with_backticks(problem: TextProblem, text: str) -> TextProblem:
    """The problem, with what to write where a reserved word is used as a column is used."""
    used = _USED_WORD.fullmatch(text, problem.span[0])
    if used is None or used.span("word") != problem.span:
        return problem
    backticks = _BACKTICKS.format(word=used["word"])
    allowed = backticks if problem.allowed is None else f"{problem.allowed}; {backticks}"
    return problem._replace(allowed=allowed)


def _no_token(text: str, start: int) -> TextProblem:
    """The problem of what is no word, number, string or sign of the language."""
    if text[start] in "'\"`":
        what = "a quoted name" if text[start] == "`" else "a string"
        message = f"{what} opened with {text[start]} is not closed"
        return TextProblem(message, (start, len(text)))
    while start and text[start].isalnum() and text[start - 1].isalnum():
        start -= 1
    match = _NO_TOKEN.match(text, start)
    found = match[0] if match else ""
    message, allowed = f"{_shown(found)} is not allowed in an expression", None
    if found[0].isalpha() and not found.isascii():
        message, allowed = f"the name {_shown(found)} is not allowed", _NAME_RULE
    return TextProblem(message, (start, start + len(found)), allowed)


def _incomplete(text: str, opened: list[Token]) -> TextProblem:
    """The problem of a text that ends too early: a bracket is open, or a word needs more."""
    if opened:
        start, found = opened[-1].start_pos or 0, str(opened[-1])
        return TextProblem(f"{found!r} is not closed", (start, start + 1))
    near = _LAST.search(text[-_NEAR:])
    found = near[0].strip() if near else ""
    start = len(text) - (len(near[0]) if near else 0)
    message = f"the expression is not complete at {found!r}"
    return TextProblem(message, (start, start + len(found)))


def _shown(found: str) -> str:
    return repr(found if len(found) <= _MOST_SHOWN else f"{found[:_MOST_SHOWN]}…")
