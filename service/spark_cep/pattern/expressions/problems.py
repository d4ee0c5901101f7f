"""Problems of an expression, with their places in its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_cep.errors import SparkCepError


@dataclass(frozen=True, slots=True)
class ExpressionProblem:
    """One reason to refuse an expression.

    ``start`` and ``end`` are character offsets into the text (``end`` is exclusive). ``allowed``
    says what would have been right, as a sentence.
    """

    message: str
    start: int
    end: int
    allowed: str | None = None


class ExpressionError(SparkCepError):
    """An expression is refused; ``problems`` holds every reason found, in the order of the text."""

    def __init__(self, problems: Sequence[ExpressionProblem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.start, problem.end)))
        super().__init__("; ".join(problem.message for problem in self.problems))

    def __reduce__(self) -> tuple[type[ExpressionError], tuple[tuple[ExpressionProblem, ...]]]:
        return type(self), (self.problems,)


def refused(message: str, span: tuple[int, int], allowed: str | None = None) -> ExpressionError:
    """The error of one problem."""
    return ExpressionError([ExpressionProblem(message, *span, allowed)])
