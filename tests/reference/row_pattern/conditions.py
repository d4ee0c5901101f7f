"""Conditions of row patterns as functions of a view, in three values."""

from __future__ import annotations

from collections.abc import Callable

from spark_cep.matcher.row_pattern.python_calls.evaluation import (
    Binder,
    NotYetKnownError,
    Value,
    View,
)
from spark_cep.pattern.expressions import And, Expression, Leaf, Or, boolean_structure

Truth = Callable[[View], bool | None]


def condition(binder: Binder, expression: Expression) -> Truth:
    """Whether a condition holds; ``None`` where that depends on rows that may still come."""
    return truth(binder, boolean_structure(expression))


def truth(binder: Binder, part: Leaf | And | Or) -> Truth:
    """Whether a part of a condition holds."""
    if isinstance(part, Leaf):
        return _known(binder.expression(part.expression))
    parts = [truth(binder, each) for each in part.parts]
    decisive = isinstance(part, Or)

    def run(view: View) -> bool | None:
        open_ = False
        for each in parts:
            holds = each(view)
            if holds is decisive:
                return decisive
            open_ = open_ or holds is None
        return None if open_ else not decisive

    return run


def _known(value: Value) -> Truth:
    def run(view: View) -> bool | None:
        try:
            return value(view) is True
        except NotYetKnownError:
            return None

    return run
