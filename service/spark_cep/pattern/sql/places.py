"""Problems of a statement with their places in its text."""

from __future__ import annotations

from typing import NamedTuple

from spark_cep.errors import Problem, Span


class StatementProblem(NamedTuple):
    """A problem, the offsets of its text, and the remedy."""

    message: str
    span: tuple[int, int]
    allowed: str | None = None

    def overlaps(self, other: StatementProblem) -> bool:
        """Return whether both are about the same place."""
        return self.span[0] < other.span[1] and other.span[0] < self.span[1]


def problem(text: str, source: str, found: StatementProblem) -> Problem:
    """The problem with line, column and the line's text; of several lines, the first is
    underlined."""
    start, end = found.span
    start = min(start, len(text))
    begins = text.rfind("\n", 0, start) + 1
    ends = text.find("\n", start)
    line = text[begins : len(text) if ends < 0 else ends]
    column = start - begins
    length = max(1, min(end - start, len(line) - column))
    return Problem(
        message=found.message,
        source=source,
        span=Span(text.count("\n", 0, start) + 1, column + 1, length),
        excerpt=line,
        allowed=found.allowed,
    )
