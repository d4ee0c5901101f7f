"""Problems of an expression or a statement, with their places in its text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from spark_cep.errors import SparkCepError
from spark_cep.pattern.check_codes import Code


class TextProblem(NamedTuple):
    """One reason to refuse an expression or a statement: offsets of its characters (the end is
    exclusive), what would have been right, and ``fix``: what is meant in its place without
    doubt."""

    message: str
    span: tuple[int, int]
    allowed: str | None = None
    fix: str | None = None

    def overlaps(self, other: TextProblem) -> bool:
        """Return whether both are about the same place."""
        return self.span[0] < other.span[1] and other.span[0] < self.span[1]

    def moved(self, start: int) -> TextProblem:
        """The problem in a text in which its own begins at ``start``."""
        return self._replace(span=(start + self.span[0], start + self.span[1]))


class TextWarning(NamedTuple):
    """A warning about an expression or a statement, as a problem. ``fix``: what is meant in its
    place without doubt."""

    message: str
    span: tuple[int, int]
    allowed: str
    code: Code
    fix: str | None = None

    def moved(self, start: int) -> TextWarning:
        """The warning in a text in which its own begins at ``start``."""
        return self._replace(span=(start + self.span[0], start + self.span[1]))


class ExpressionError(SparkCepError):
    """An expression is refused; ``problems`` holds every reason found, in the order of the text."""

    def __init__(self, problems: Sequence[TextProblem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.span))
        super().__init__("; ".join(problem.message for problem in self.problems))

    def __reduce__(self) -> tuple[type[ExpressionError], tuple[tuple[TextProblem, ...]]]:
        return type(self), (self.problems,)


def refused(message: str, span: tuple[int, int], allowed: str | None = None) -> ExpressionError:
    """The error of one problem."""
    return ExpressionError([TextProblem(message, span, allowed)])
