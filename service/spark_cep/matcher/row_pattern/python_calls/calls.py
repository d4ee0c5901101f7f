"""Parts of conditions that Python computes, called out of the compiled loop.

A part whose computation fails is not true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from spark_cep.columns.compilation import Table
from spark_cep.matcher.row_pattern.loops import tables
from spark_cep.matcher.row_pattern.python_calls.evaluation import NotYetKnownError, Value
from spark_cep.matcher.row_pattern.python_calls.key_rows import KeyRows
from spark_cep.matcher.row_pattern.python_calls.thread_views import KeptFolds, ThreadView
from spark_cep.model import Event
from spark_cep.programs.python_calls import PythonCalls


class ConditionFailure(NamedTuple):
    """A condition of ``variable`` that could not be computed of a row; it was not true."""

    variable: str
    row: Event
    error: str


class RowPatternCalls(PythonCalls):
    """The calls of one run; the compiled loop is handed this. ``rows`` gives those of a key,
    ``work`` the tables as they are now."""

    _failed = tables.NO

    def __init__(
        self,
        values: Sequence[Value],
        controls: Table,
        rows: Callable[[int], KeyRows],
        work: Callable[[], tables.RowPatternWork],
    ) -> None:
        self._values, self._control, self._rows = values, controls[0], rows
        self._kept = KeptFolds(work, controls[0])
        super().__init__()

    def _compute(self, number: int, row: int, node: int, more: int) -> int:
        control = self._control
        self._kept.tidy()
        view = ThreadView(
            self._rows(int(control["key"])), int(control["start"]), (), row,
            int(control["number"]), more, bool(control["ended"]), None, node, self._kept,
        )  # fmt: skip
        try:
            return tables.YES if self._values[number](view) is True else tables.NO
        except NotYetKnownError:
            return tables.OPEN

    def _failed_at(self, row: int, _node: int) -> tuple[int, ...]:
        return (self._rows(int(self._control["key"])).place(row),)
