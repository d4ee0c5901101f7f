"""Accumulators and work of the conditions of rules of steps."""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import NONE, Table
from spark_cep.matcher.steps.loops.kernel_tables import ACCUMULATOR
from spark_cep.pattern.work import CALL
from spark_cep.programs.loops import expression_loop
from spark_cep.programs.programs import Program

#: LAST further back is looked up in the events taken.
_MOST_KEPT = 8

_Row = tuple[int, int, int, int, bool]


def cost(program: Program) -> int:
    """The steps of work of a condition for one event and partial match: one for each operation, and
    for each event that a LAST goes back."""
    calls = sum(CALL * (1 + len(call.walked)) for call in program.calls)
    return len(program.operations) + calls + sum(look.offset for look in program.looks)


class Accumulators:
    """The accumulators of rules (:mod:`spark_cep.matcher.steps.loops.accumulators`)."""

    def __init__(self, rules: int) -> None:
        self._of_rules: list[list[_Row]] = [[] for _ in range(rules)]

    def number(
        self, rule: int, function: int, step: int, column: int, offset: int, double: bool
    ) -> int:
        """The number of a look-back's accumulator among those of its rule; ``NONE``: it has
        none."""
        rows = self._of_rules[rule]
        if function == expression_loop.LAST and offset > _MOST_KEPT:
            return NONE
        if function in (expression_loop.FIRST, expression_loop.LAST):
            # They keep events, whose columns are read when they are asked for.
            column, double = NONE, False
        row = function, step, column, offset, double
        if row not in rows:
            # Each LAST takes over what the one behind it had.
            nearer = range(offset, -1, -1) if function == expression_loop.LAST else (offset,)
            rows += [(function, step, column, each, double) for each in nearer]
        return rows.index(row)

    def table(self, rules: Table) -> Table:
        """All accumulators; writes into the table of rules where those of each are."""
        first = 0
        for row, of_rule in zip(rules, self._of_rules, strict=True):
            row["first_accumulator"] = first
            row["accumulators"] = len(of_rule)
            row["distinct"] = sum(each[0] == expression_loop.COUNT_DISTINCT for each in of_rule)
            first += len(of_rule)
        return np.array([each for of_rule in self._of_rules for each in of_rule], ACCUMULATOR)
