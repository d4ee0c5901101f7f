"""Slips, and words of other dialects, where the grammar of a statement breaks: the cause, and what
to write. Those in expressions are in ``spark_cep.pattern.expressions.reading.mistakes``."""

from __future__ import annotations

import re

from spark_cep.pattern.expressions.problems import TextProblem

_OF_PATTERN = r"\bPATTERN\s*\((?:(?!\b(?:SUBSET|DEFINE)\b).)*"
_PARTS = r"(?:ONE|ALL|AFTER|PATTERN|WITHIN|SUBSET|DEFINE)\b"

# What reaches to the place where the grammar breaks (`at` is underlined, or else what is there),
# what is there (nothing: whatever it is), what is wrong, and what is allowed.
_KNOWN = (
    (r"\b(?P<at>MEASURE)\b(?:(?!\bPATTERN\b).)*", "", "{at} is written MEASURES",
     "MEASURES expression AS name"),
    (r"\b(?P<at>DEFINES)\b[^=]*", "", "{at} is written DEFINE", "DEFINE variable AS condition"),
    (r"\b(?P<at>(?:SHOW|WITH)\s+TIMEOUT(?:\s+(?:MATCHES|ROWS))?)\b", "",
     "{at} is not needed: with WITHIN each timeout is a record of its own",
     "ONE ROW PER MATCH, or ALL ROWS PER MATCH; timeouts go to the topic of timeouts"),
    (_OF_PATTERN, r",|->?|&", "variables that follow each other stand side by side in PATTERN",
     "A B; PERMUTE(A, B) for any order"),
    (rf"(?P<at>,)\s*{_PARTS}(?:(?!\b(?:DEFINE|AS)\b).)*", "", "nothing follows the comma",
     "no comma before the next part of the clause"),
    (r"\bPATTERN\s*(?P<at>\()(?:[^()]|\([^()]*\))*\b(?:WITHIN|SUBSET|DEFINE)\b[^()]*", "",
     "the parenthesis of PATTERN is not closed", ") behind the last variable"),
    (r"\bMEASURES\b(?:(?!\bPATTERN\b).)*", rf"(?i:{_PARTS}|,)",
     "the measure before {at} has no name", "MEASURES expression AS name"),
)  # fmt: skip
_ROWS = tuple(
    (
        re.compile(reaching, re.IGNORECASE | re.DOTALL),
        re.compile(there),
        message,
        allowed,
    )
    for reaching, there, message, allowed in _KNOWN
)


def slip(code: str, place: int) -> TextProblem | None:
    """The slip that breaks the grammar at a place of the statement, if it is one of the table.
    ``code`` is the statement with blanks for comments and strings."""
    for reaching, there, message, allowed in _ROWS:
        at = there.match(code, place)
        if at is None:
            continue
        for around in reaching.finditer(code):
            if not around.start() <= place <= around.end():
                continue
            span = around.span("at") if "at" in reaching.groupindex else at.span()
            found = " ".join(code[slice(*span)].upper().split())
            return TextProblem(message.format(at=found), span, allowed)
    return None
