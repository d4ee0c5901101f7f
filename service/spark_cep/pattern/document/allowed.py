"""Comments that allow a warning: ``# spark-cep: allow CODE because REASON`` in a rule's document,
``-- spark-cep: allow CODE because REASON`` in a statement. They count for the rule that they stand
in; several codes have commas between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from spark_cep.documents.nearest import instead, nearest
from spark_cep.documents.places import Places
from spark_cep.errors import Problem, Span, shortened
from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.checks.sql_rule import PATH

#: Cheap to look for, and in each such comment.
_MARK = "spark-cep:"
#: A slip leaves so much of a code.
_SURELY = 0.8
COMMENT = re.compile(
    r"(?:^|(?<=\s))(?P<sign>#|--)\s*spark-cep:\s*allow\s+(?P<codes>[\w-]+(?:\s*,\s*[\w-]+)*)"
    r"(?:\s+because\s+(?P<reason>\S.*?))?\s*$"
)
WITHOUT_REASON = "REASON"
"""Stands for a reason in the form of a comment, and is none."""
_FORM = f"`# spark-cep: allow CODE because {WITHOUT_REASON}`"


@dataclass(frozen=True, slots=True)
class Allowed:
    """A comment: its codes, as they are written, and where it stands."""

    codes: tuple[str, ...]
    reason: str | None
    span: Span


def read_comments(places: Places) -> tuple[Allowed, ...]:
    """The comments of a document, in the order of its lines."""
    if not any(_MARK in line for line in places.lines):
        return ()
    found = []
    for number in _lines_of(places):
        line = places.lines[number]
        match = COMMENT.search(line) if _MARK in line else None
        if match is None or not _is_comment(places, number, match.start("sign"), match["sign"]):
            continue
        codes = tuple(re.split(r"\s*,\s*", match["codes"]))
        span = Span(number + 1, match.start("sign") + 1, match.end() - match.start("sign"))
        reason = None if match["reason"] == WITHOUT_REASON else match["reason"]
        found.append(Allowed(codes, reason, span))
    return tuple(found)


def _lines_of(places: Places) -> range:
    """The lines of the document, with comments in front of it and behind."""
    lines, root = places.lines, places.values.get(())
    if root is None:
        return range(0)
    first = root.line
    while first and _is_aside(lines[first - 1]):
        first -= 1
    end = root.line + 1
    while end < len(lines) and not lines[end].startswith(("---", "...")):
        end += 1
    return range(first, end)


def _is_aside(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _is_comment(places: Places, line: int, column: int, sign: str) -> bool:
    """Return whether what stands there is no part of a text."""
    statement = places.values.get(PATH)
    if sign == "--":
        before = places.lines[line][:column]
        in_statement = statement is not None and statement.line <= line <= statement.end_line
        return (in_statement and before.count("'") % 2 == 0) or not before.strip()
    at = line, column
    return not any(
        mark.value is not None and (mark.line, mark.column) <= at < (mark.end_line, mark.end_column)
        for mark in (*places.keys.values(), *places.values.values())
    )


def codes_of(comments: Iterable[Allowed]) -> frozenset[str]:
    """The codes that are allowed: those of comments with a reason."""
    return frozenset(code for each in comments if each.reason for code in each.codes)


def reason_for(comments: Iterable[Allowed], code: str) -> str:
    """The reason that the first comment gives that allows a code."""
    return next((each.reason for each in comments if each.reason and code in each.codes), "")


def wrong_comments(comments: Iterable[Allowed], places: Places) -> Iterator[Problem]:
    """Warnings about comments that do not say what they should."""
    known = [code.value for code in Code]
    for comment in comments:
        for code in comment.codes:
            if code not in known:
                message = f"there is no code `{shortened(code)}`"
                allowed = instead(code, known, "codes")
                meant = nearest(code, known, _SURELY)
                fix = None if meant is None else _with_code(comment, places, code, meant)
                yield at_comment(comment, places, message, allowed, Code.UNKNOWN_CODE, fix)
        if not comment.reason:
            yield at_comment(
                comment,
                places,
                "the comment allows a code and says no reason: it does not count",
                _FORM,
                Code.ALLOW_WITHOUT_REASON,
            )


def _with_code(comment: Allowed, places: Places, code: str, meant: str) -> str:
    """The comment with another code."""
    start = comment.span.column - 1
    written = places.lines[comment.span.line - 1][start : start + comment.span.length]
    return re.sub(rf"(?<![\w-]){re.escape(code)}(?![\w-])", meant, written, count=1)


def unused_comments(
    comments: Iterable[Allowed], silenced: frozenset[str], places: Places, *, typed: bool
) -> Iterator[Problem]:
    """Warnings about comments that allow nothing that is there. ``typed``: the rule was held
    against the types of its events."""
    known = {code.value: code for code in Code}
    for comment in comments:
        unused = [
            code
            for code in comment.codes
            if code in known and code not in silenced and (typed or not known[code].needs_types)
        ]
        if comment.reason and unused:
            names = ", ".join(f"`{code}`" for code in unused)
            message = f"the comment allows {names}, which the rule does not have"
            whole = len(unused) == len(comment.codes)
            yield at_comment(
                comment,
                places,
                message,
                "no such comment",
                Code.UNUSED_ALLOW,
                fix="" if whole else None,
            )


def at_comment(
    comment: Allowed,
    places: Places,
    message: str,
    allowed: str,
    code: Code,
    fix: str | None = None,
) -> Problem:
    """A warning about a comment."""
    line = places.lines[comment.span.line - 1]
    return Problem(
        message, places.source, comment.span, line, places.rule, allowed=allowed, code=code, fix=fix
    )
