"""A statement in SQL that need not be complete: its clauses, its variables, and its input."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_TOKEN: Final = re.compile(
    r"(?P<text>'(?:[^'\\]|\\.|'')*(?P<closed>')?)"
    r"|(?P<comment>--[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?)"
    r"|(?P<quoted>\"[^\"]*\"?|`[^`]*`?)"
    r"|(?P<word>[A-Za-z_]\w*)|(?P<number>\d[\w.]*)|(?P<blank>\s+)|(?P<sign>.)",
    re.DOTALL,
)
_PATTERN: Final = re.compile(
    r"\bPATTERN\s*\((.*?)(?:\bWITHIN\b|\bSUBSET\b|\bDEFINE\b|\Z)", re.DOTALL | re.IGNORECASE
)
_SUBSET: Final = re.compile(r"(?:\bSUBSET|,)\s*(\w+)\s*=\s*\(", re.IGNORECASE)
_DEFINED: Final = re.compile(r"(?:\bDEFINE|,)\s*([A-Za-z_]\w*)\s+AS\b", re.IGNORECASE)
_INPUT: Final = re.compile(
    r"\bFROM\s+(?:\(\s*SELECT\s+\*\s+FROM\s+)?([A-Za-z_][\w.]*)", re.IGNORECASE
)
_WORD: Final = re.compile(r"[A-Za-z_]\w*")

#: The clauses in their order, with the words of which the second must follow the first.
CLAUSES: Final = (
    ("SELECT", ""),
    ("FROM", ""),
    ("WHERE", ""),
    ("MATCH_RECOGNIZE", ""),
    ("PARTITION", "BY"),
    ("ORDER", "BY"),
    ("MEASURES", ""),
    ("ONE", "ROW PER MATCH"),
    ("ALL", "ROWS PER MATCH"),
    ("AFTER", "MATCH SKIP"),
    ("PATTERN", ""),
    ("WITHIN", ""),
    ("SUBSET", ""),
    ("DEFINE", ""),
)
_BEGINNINGS: Final = {word: rest.split(" ")[0] for word, rest in CLAUSES}


@dataclass(frozen=True, slots=True)
class SqlToken:
    """A piece of a text in SQL: its kind (``text``, ``comment``, ``quoted``, ``word``, ``number``,
    ``sign``), its characters and where they begin. ``is_open``: a text that no quote ends."""

    kind: str
    text: str
    start: int
    is_open: bool = False

    @property
    def end(self) -> int:
        """The place behind its last character."""
        return self.start + len(self.text)


def tokens(text: str) -> list[SqlToken]:
    """The pieces of a text, without blanks."""
    return [
        SqlToken(found.lastgroup or "sign", found[0], found.start(), _is_open(found))
        for found in _TOKEN.finditer(text)
        if found.lastgroup != "blank"
    ]


def _is_open(found: re.Match[str]) -> bool:
    if found["text"] is not None:
        return found["closed"] is None
    quoted = found["quoted"]
    return quoted is not None and (len(quoted) == 1 or quoted[-1] != quoted[0])


@dataclass(frozen=True, slots=True)
class StatementText:
    """A statement, as far as it is written. ``clause``: the one that a place in it is in, empty
    before the first; ``in_pattern``: the place is within the brackets of PATTERN."""

    clause: str
    in_pattern: bool
    variables: tuple[str, ...]
    defined: tuple[str, ...]
    input: str | None


def statement_at(text: str, offset: int) -> StatementText:
    """The statement, and the clause that a place in it is in."""
    code = _without_texts(text)
    pattern = _PATTERN.search(code)
    words = _WORD.findall(pattern[1]) if pattern else []
    subsets = _SUBSET.findall(code)
    named = (word for word in words if word.upper() != "PERMUTE")
    variables = dict.fromkeys([*named, *subsets, *_DEFINED.findall(code)])
    source = _INPUT.search(code)
    clause, begins = _clause(tokens(text[:offset]))
    opened = code.count("(", begins, offset) > code.count(")", begins, offset)
    return StatementText(
        clause,
        clause == "PATTERN" and opened,
        tuple(variables),
        tuple(dict.fromkeys(_DEFINED.findall(code))),
        None if source is None else source[1],
    )


def definitions(text: str) -> list[SqlToken]:
    """The names of the variables that DEFINE gives conditions, where they stand."""
    code = _without_texts(text)
    return [SqlToken("word", found[1], found.start(1)) for found in _DEFINED.finditer(code)]


def _clause(before: list[SqlToken]) -> tuple[str, int]:
    """The last clause that begins, and where."""
    clause, begins = "", 0
    words = [token for token in before if token.kind not in ("text", "comment")]
    for number, token in enumerate(words, 1):
        following = words[number] if number < len(words) else None
        word = token.text.upper()
        if token.kind != "word" or word not in _BEGINNINGS:
            continue
        needed = _BEGINNINGS[word]
        if not needed or (following is not None and following.text.upper() == needed):
            clause, begins = word, token.end
    return clause, begins


def _without_texts(text: str) -> str:
    """The text with blanks for texts and comments."""
    return _TOKEN.sub(
        lambda found: " " * len(found[0]) if found.lastgroup in ("text", "comment") else found[0],
        text,
    )
