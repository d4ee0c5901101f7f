"""Parts of conditions that Python computes, called out of the compiled loop.

They see the match as the reference matcher shows it. A part whose computation fails is not true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from spark_cep.columns.compilation import Table
from spark_cep.matcher.row_pattern.evaluation import NotYetKnownError, Value, View
from spark_cep.matcher.row_pattern.loops import tables
from spark_cep.model import Event
from spark_cep.programs.python_calls import PythonCalls


class CallFailure(NamedTuple):
    """A part that could not be computed: its number, the place of the row."""

    call: int
    row: int
    error: str


class KeyRows:
    """The rows of a key by their numbers, as a view on a match reads them."""

    __slots__ = ("_at", "_base", "_event")

    def __init__(self, at: Sequence[int], base: int, event: Callable[[int], Event]) -> None:
        self._at, self._base, self._event = at, base, event

    def row(self, number: int) -> Event:
        """A row that is there."""
        return self._event(self._at[number - self._base])

    @property
    def end(self) -> int:
        """The number of the row that would come next."""
        return self._base + len(self._at)

    def place(self, number: int) -> int:
        """Where it is among all rows."""
        return self._at[number - self._base]


class Calls(PythonCalls[CallFailure]):
    """The calls of one run; the compiled loop is handed this. ``rows`` gives those of a key,
    ``nodes`` the table of nodes as it is now."""

    def __init__(
        self,
        values: Sequence[Value],
        controls: Table,
        rows: Callable[[int], KeyRows],
        nodes: Callable[[], Table],
    ) -> None:
        self._values, self._control, self._rows, self._nodes = values, controls[0], rows, nodes
        super().__init__()

    def _call(self, number: int, row: int, node: int, known: int) -> int:
        try:
            control = self._control
            rows = self._rows(int(control["key"]))
            view = View(
                rows, int(control["start"]), self._labels(node), row, int(control["number"]),
                known, bool(control["ended"]),
            )  # fmt: skip
            try:
                return tables.YES if self._values[number](view) is True else tables.NO
            except NotYetKnownError:
                return tables.OPEN
            except Exception as error:  # noqa: BLE001  a rule's fault must not stop the job
                place = rows.place(row)
                self._failures[number, place] = CallFailure(number, place, repr(error))
        except BaseException as error:  # noqa: BLE001  it must not be lost in the compiled loop
            self._fatal = error
        return tables.NO

    def _labels(self, node: int) -> list[int]:
        nodes = self._nodes()
        previous, label = nodes["previous"], nodes["label"]
        found: list[int] = []
        while node >= 0:
            if label[node] != tables.EDGE:
                found.append(int(label[node]))
            node = int(previous[node])
        return found[::-1]


def places(rows: tables.Rows, key: int) -> list[int]:
    """The places of a key's rows."""
    first = int(rows.ends[key - 1]) if key else 0
    found: list[int] = rows.at[first : int(rows.ends[key])].tolist()
    return found
