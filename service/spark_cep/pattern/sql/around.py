"""The text around the clause: parts that a query may have and a rule may not.

The grammar alone would report a word in the middle of it, or take WHERE for the result's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType

from spark_cep.pattern.expressions.problems import TextProblem

_INSTEAD = MappingProxyType(
    {
        **dict.fromkeys(("WHERE", "HAVING", "QUALIFY"), "conditions in DEFINE"),
        "GROUP": "aggregates in MEASURES",
        "ORDER": "no ORDER BY: a match goes out when it is final",
        **dict.fromkeys(("LIMIT", "OFFSET", "FETCH"), "no limit: every match goes out"),
        **dict.fromkeys(("UNION", "EXCEPT", "INTERSECT", "MINUS"), "a rule for each query"),
        **dict.fromkeys(
            ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", ","),
            "one input: a rule reads no other",
        ),
        "(": "the name of an input: SELECT … FROM input MATCH_RECOGNIZE ( … )",
    }
)
_NAME = rf"(?!(?:AS|{'|'.join(filter(str.isalpha, _INSTEAD))})\b)[^\W\d]\w*"
_INPUT = re.compile(
    rf"\s*(?:{_NAME}(?:\s*\.\s*{_NAME})*(?:\s+(?:AS\s+)?{_NAME})?)?\s*", re.IGNORECASE
)
_RESULT = re.compile(rf"\s*(?:(?:AS\s+)?{_NAME})?\s*(?P<end>;\s*)?", re.IGNORECASE)
_PARTS = (
    r"PARTITION\s+BY",
    r"ORDER\s+BY",
    r"(?:ONE|ALL)\s+ROWS?\s+PER\s+MATCH",
    r"AFTER\s+MATCH\s+SKIP",
    r"PATTERN(?=\s*\()",
    r"WITHIN(?=\s+INTERVAL\b)",
    r"SUBSET(?=\s+\w+\s*=\s*\()",
    r"DEFINE(?=\s+\w+\s+AS\b)",
)
_PART = re.compile("|".join(rf"\b({part})" for part in _PARTS) + r"|[()]", re.IGNORECASE)
_ORDER = (
    "PARTITION BY, ORDER BY, MEASURES, … PER MATCH, AFTER MATCH SKIP, PATTERN, WITHIN, SUBSET, "
    "DEFINE, in this order"
)
_NEXT = re.compile(r"\w+|[(,]")


def around_clause(text: str, code: str) -> tuple[str, list[TextProblem]]:
    """The text with blanks for what a rule cannot have around its clause, and what that is.
    ``code`` is the text with blanks for comments and strings, and ``_`` for quoted names."""
    words = list(_outer(code))
    names = [name for name, _ in words]
    if "MATCH_RECOGNIZE" not in names:
        return text, []
    clause = names.index("MATCH_RECOGNIZE")
    problems: list[TextProblem] = []
    begins = next((end for name, end in reversed(words[:clause]) if name == "FROM"), None)
    if begins is not None:
        ends = words[clause][1] - len("MATCH_RECOGNIZE")
        at = _INPUT.match(code, begins, ends)
        place = ends if at is None else at.end()
        word = _NEXT.match(code, place, ends)
        if word is not None and word[0].upper() in _INSTEAD:
            shown = "a sub-query" if word[0] == "(" else f"`{word[0]}`"
            allowed = _INSTEAD[word[0].upper()]
            problems.append(TextProblem(f"{shown} cannot stand in FROM", word.span(), allowed))
            name = "_" if word[0] == "(" else " "
            text = text[:place] + name + _blank(text[place + 1 : ends]) + text[ends:]
    closes = next((end for name, end in words[clause:] if name == ")"), len(text))
    behind = _RESULT.match(code, closes)
    word = None if behind is None else _NEXT.match(code, behind.end())
    if behind is not None and word is not None:
        if behind["end"]:
            message, allowed = "a rule is one statement", "a file, or a document, for each"
            problems.append(TextProblem(message, word.span(), allowed))
            text = text[: word.start()]
        elif word[0].upper() in _INSTEAD:
            message = f"`{word[0]}` cannot follow the clause, which ends the statement"
            problems.append(TextProblem(message, word.span(), _INSTEAD[word[0].upper()]))
            text = text[: word.start()]
    return text, problems


def parts_out_of_order(code: str) -> TextProblem | None:
    """The first part of the clause that stands behind one that it must precede. An expression
    cannot contain the words of one, so the grammar would report it in the expression before it."""
    begins = re.search(r"\bMATCH_RECOGNIZE\s*\(", code, re.IGNORECASE)
    depth, last = 1, None
    for part in _PART.finditer(code, len(code) if begins is None else begins.end()):
        depth += (part[0] == "(") - (part[0] == ")")
        if not depth:
            break
        if depth > 1 or part.lastindex is None:
            continue
        if last is not None and part.lastindex < (last.lastindex or 0):
            message = f"{_plain(part)} must stand before {_plain(last)}"
            return TextProblem(message, part.span(), _ORDER)
        last = part
    return None


def _plain(part: re.Match[str]) -> str:
    return " ".join(part[0].upper().split())


def _outer(code: str) -> Iterator[tuple[str, int]]:
    """Words outside brackets, and brackets that close outermost, with the offsets behind them."""
    depth = 0
    for part in re.finditer(r"[()]|[^\W\d]\w*", code):
        depth += (part[0] == "(") - (part[0] == ")")
        if not depth and part[0] != "(":
            yield part[0].upper(), part.end()


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
