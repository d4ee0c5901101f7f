"""Columns whose values are not read, where something uses them."""

from __future__ import annotations

from spark_cep.pattern.expressions.canonical import name
from spark_cep.pattern.expressions.nodes import ColumnPath
from spark_cep.pattern.expressions.problems import TextProblem
from spark_cep.pattern.types import SqlType, unreadable_part


def unreadable_column(path: ColumnPath, kind: SqlType, span: tuple[int, int]) -> TextProblem | None:
    """The problem of a column of that type, used at that place; ``None`` where all of it is
    read."""
    part = unreadable_part(kind)
    if part is None:
        return None
    if part == kind:
        message = f"column {name(path)} cannot be read: {part.reason}"
        return TextProblem(message, span, part.remedy)
    message = f"column {name(path)} cannot be read as a whole: {part.reason}"
    return TextProblem(message, span, f"the parts of it that are needed; or {part.remedy}")
