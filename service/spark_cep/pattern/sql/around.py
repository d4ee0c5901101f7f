"""The text around the clause: parts that a query may have and a rule may not.

The grammar alone would report a word in the middle of it, or take WHERE for the result's name. Of
sub-queries in FROM, one that picks rows of an input is left to the grammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType

from spark_cep.pattern.expressions.problems import TextProblem

_INSTEAD = MappingProxyType(
    {
        **dict.fromkeys(
            ("WHERE", "HAVING", "QUALIFY"),
            "conditions in DEFINE; those of the input's rows in FROM (SELECT * FROM input WHERE …)",
        ),
        "GROUP": "aggregates in MEASURES",
        "ORDER": "no ORDER BY: a match goes out when it is final",
        **dict.fromkeys(("LIMIT", "OFFSET", "FETCH"), "no limit: every match goes out"),
        **dict.fromkeys(("UNION", "EXCEPT", "INTERSECT", "MINUS"), "a rule for each query"),
        **dict.fromkeys(
            ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", ","),
            "one input: a rule reads no other",
        ),
        "(": "the name of an input, or (SELECT * FROM input WHERE condition)",
    }
)
_NAME = rf"(?!(?:AS|{'|'.join(filter(str.isalpha, _INSTEAD))})\b)[^\W\d]\w*"
_INPUT = re.compile(
    rf"\s*(?:{_NAME}(?:\s*\.\s*{_NAME})*(?:\s+(?:AS\s+)?{_NAME})?)?\s*", re.IGNORECASE
)
_OPENED = re.compile(r"\s*\(")
_SELECT = re.compile(r"\(\s*SELECT\b", re.IGNORECASE)
_ALL_OF = re.compile(r"\(\s*SELECT\s*\*\s*FROM\b", re.IGNORECASE)
_ORDER_BY = re.compile(r"ORDER\s+BY\b", re.IGNORECASE)
#: Words that can be no column where they stand so.
_END = re.compile(
    r"\b(?:(?:GROUP|ORDER)(?=\s+BY\b)|HAVING\b|QUALIFY\b|(?:LIMIT|OFFSET|FETCH)(?=\s+\w)"
    r"|(?:UNION|EXCEPT|INTERSECT|MINUS)(?=\s+(?:ALL\s+)?SELECT\b))|[()]",
    re.IGNORECASE,
)
_MOST_SHOWN = 80
_SUB_QUERY = "(SELECT * FROM {})"
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
        problem, place = _in_from(text, code, begins, ends)
        if problem is not None:
            problems.append(problem)
            name = "_" if code[place] == "(" else " "
            text = text[:place] + name + _blank(text[place + 1 : ends]) + text[ends:]
    closes = next((end for name, end in words[clause:] if name == ")"), len(text))
    behind = _RESULT.match(code, closes)
    word = None if behind is None else _NEXT.match(code, behind.end())
    if behind is not None and word is not None and behind["end"]:
        message, allowed = "a rule is one statement", "a file, or a document, for each"
        problems.append(TextProblem(message, word.span(), allowed))
        text = text[: word.start()]
        word = None
    if word is not None and _ORDER_BY.match(code, word.start()):
        # The grammar reads it; what may not follow it would be taken for part of its columns.
        word = _ends(code, word.end(), len(code))
    if word is not None and word[0].upper() in _INSTEAD:
        message = f"`{word[0]}` cannot follow the clause, which ends the statement"
        problems.append(TextProblem(message, word.span(), _INSTEAD[word[0].upper()]))
        text = text[: word.start()]
    return text, problems


def _in_from(text: str, code: str, begins: int, ends: int) -> tuple[TextProblem | None, int]:
    """Return what cannot stand in FROM, from ``begins`` to ``ends``, and its place."""
    opened = _OPENED.match(code, begins, ends)
    if opened is not None:
        start = opened.end() - 1
        closes = next((end for name, end in _outer(code[start:ends]) if name == ")"), ends - start)
        problem = _sub_query(code, start, start + closes)
        if problem is not None:
            return problem, start
        code = f"{code[:start]}{'_' * closes}{code[start + closes :]}"
    at = _INPUT.match(code, begins, ends)
    place = ends if at is None else at.end()
    word = _NEXT.match(code, place, ends)
    if word is None or word[0].upper() not in _INSTEAD:
        return None, place
    allowed = _INSTEAD[word[0].upper()]
    if word[0].upper() == "WHERE":
        rows = " ".join(text[begins:ends].split())
        rows = rows if len(rows) <= _MOST_SHOWN else "input WHERE condition"
        allowed = f"FROM {_SUB_QUERY.format(rows)} MATCH_RECOGNIZE ( … )"
    return TextProblem(f"`{word[0]}` cannot stand in FROM", word.span(), allowed), place


def _sub_query(code: str, start: int, end: int) -> TextProblem | None:
    """Return the part of a sub-query that is neither an input nor a condition on its rows."""
    bracket = (start, start + 1)
    if not _SELECT.match(code, start, end):
        return TextProblem("a sub-query cannot stand in FROM", bracket, _INSTEAD["("])
    from_input = _ALL_OF.match(code, start, end)
    if from_input is None:
        message = "a sub-query in FROM picks rows, and takes all their columns"
        return TextProblem(message, bracket, _INSTEAD["("])
    at = _INPUT.match(code, from_input.end(), end)
    word = None if at is None else _NEXT.match(code, at.end(), end)
    if word is not None and word[0].upper() == "WHERE":
        word = _ends(code, word.end(), end - 1)
    if word is None or word[0].upper() not in _INSTEAD:
        return None
    message = f"`{word[0]}` cannot stand in FROM"
    return TextProblem(message, word.span(), _INSTEAD[word[0].upper()])


def _ends(code: str, start: int, end: int) -> re.Match[str] | None:
    """The first word outside brackets that ends a condition, or columns, between these places."""
    depth = 0
    for part in _END.finditer(code, start, end):
        depth += (part[0] == "(") - (part[0] == ")")
        if not depth and part[0] not in "()":
            return part
    return None


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
