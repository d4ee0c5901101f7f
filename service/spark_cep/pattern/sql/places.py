"""Problems of a statement with their places in its text."""

from __future__ import annotations

from spark_cep.errors import Problem, Span
from spark_cep.pattern.expressions.problems import TextProblem


def located(text: str, source: str, problem: TextProblem) -> Problem:
    """The problem with line, column and the line's text; of several lines, the first is
    underlined."""
    start, end = problem.span
    start = min(start, len(text))
    begins = text.rfind("\n", 0, start) + 1
    ends = text.find("\n", start)
    line = text[begins : len(text) if ends < 0 else ends]
    column = start - begins
    length = max(1, min(end - start, len(line) - column))
    return Problem(
        message=problem.message,
        source=source,
        span=Span(text.count("\n", 0, start) + 1, column + 1, length),
        excerpt=line,
        allowed=problem.allowed,
    )
