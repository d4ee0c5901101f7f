"""Views on what a thread or a match has taken, for the conditions and measures that Python
computes.

A thread's rows are a chain of nodes. What aggregates and positions make of the rows up to a node is
kept there, so that a row more costs one more step, not a walk over all rows before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_cep.columns.compilation import NONE, Table
from spark_cep.columns.vectors import Flags
from spark_cep.matcher.row_pattern.loops import tables
from spark_cep.matcher.row_pattern.loops.thread_loop import path_back
from spark_cep.matcher.row_pattern.python_calls.evaluation import (
    MeasureResults,
    RowFold,
    View,
)
from spark_cep.matcher.row_pattern.python_calls.key_rows import KeyRows

#: Kept of so many nodes at least, before those that no thread stands at are let go.
_ROOM = 1_024
#: More rows than this are taken at once: those of what a batch goes on with, and of a match.
_ONE_BY_ONE = 16


class KeptFolds:
    """Folds by node. The loops hand a node's number on with it and clear that of a new one, so that
    it holds whatever becomes of the table."""

    def __init__(self, work: Callable[[], tables.RowPatternWork], control: Table) -> None:
        self._work, self._control = work, control
        self._folds: dict[int, dict[int, Any]] = {}
        self._last = self._serial = 0
        self._most = _ROOM

    def folded(self, fold: RowFold, view: ThreadView) -> Any:
        """The fold over the rows up to the view's node."""
        work = self._work()
        previous, label = work.nodes["previous"], work.nodes["label"]
        kept, path = work.kept, list[tuple[int, int]]()
        at, row, known = view.node, view.current, None
        while at != NONE and len(path) < _ONE_BY_ONE:
            known = self._folds.get(int(kept[at]), {}).get(fold.number)
            if known is not None:
                break
            path.append((at, row))
            row -= int(label[at]) != tables.EDGE
            at = int(previous[at])
        mine = known is None
        if known is not None:
            found = known
        else:
            found = fold.start() if at == NONE else self._far(fold, view, at, row)
        for left in range(len(path) - 1, -1, -1):
            at, row = path[left]
            if int(label[at]) in fold.of:
                if not mine:
                    found, mine = fold.copied(found), True
                found = fold.add(found, view.at(at, row))
            # The thread goes on from the last node, or from the one before it.
            if left <= 1 and not fold.ahead:
                self._keep(at, fold.number, found)
                mine = False
        return found

    def _far(self, fold: RowFold, view: ThreadView, node: int, row: int) -> Any:
        """The fold over the rows up to a node, whose last one is ``row``, of many rows."""
        work = self._work()
        nodes, kept, known = work.nodes, work.kept, None
        parts = []
        while node != NONE:
            known = self._folds.get(int(kept[node]), {}).get(fold.number)
            if known is not None:
                break
            passed = np.empty(node + 1, np.int64)
            parts.append(passed[: path_back(nodes, kept, node, passed)])
            node = int(nodes["previous"][parts[-1][-1]])
        found = fold.start() if known is None else fold.copied(known)
        if not parts:
            return found
        path = np.concatenate(parts)[::-1]
        path = path[nodes["label"][path] != tables.EDGE]
        numbers = np.arange(row + 1 - len(path), row + 1)
        wanted = _inside(nodes["label"][path], fold)
        path, numbers = path[wanted], numbers[wanted]
        if fold.add_all is not None:
            return view.state.folded(fold, found, view.start, numbers)
        for at, number in zip(path.tolist(), numbers.tolist(), strict=True):
            found = fold.add(found, view.at(at, number))
        return found

    def label(self, node: int, back: int) -> int:
        """The variable of the row so many before the last one of a node."""
        nodes = self._work().nodes
        previous, label = nodes["previous"], nodes["label"]
        while label[node] == tables.EDGE or back:
            back -= label[node] != tables.EDGE
            node = int(previous[node])
        return int(label[node])

    def _keep(self, node: int, number: int, found: Any) -> None:
        kept = self._work().kept
        if not kept[node]:
            self._last += 1
            kept[node] = self._last
            self._folds[self._last] = {}
        self._folds[int(kept[node])][number] = found

    def tidy(self) -> None:
        """Let go, between two steps, of what stands at nodes from which no thread goes on."""
        serial = int(self._control["serial"])
        if serial == self._serial:
            return
        self._serial = serial
        if len(self._folds) < self._most:
            return
        work = self._work()
        previous, kept = work.nodes["previous"], work.kept
        used, passed = set[int](), set[int]()
        for tip in work.threads["node"][: int(self._control["threads"])].tolist():
            node = tip
            while node != NONE and node not in passed and not kept[node]:
                passed.add(node)
                node = int(previous[node])
            if node != NONE and kept[node]:
                used.add(int(kept[node]))
        kept[~np.isin(kept, list(used))] = 0
        self._folds = {number: self._folds[number] for number in used if number in self._folds}
        self._most = 2 * len(used) + _ROOM


def _inside(labels: NDArray[Any], fold: RowFold) -> Flags:
    """Return whether rows of these variables are among those of a fold."""
    inside = np.zeros(1 + max(int(labels.max(initial=0)), *fold.of, 0), bool)
    inside[list(fold.of)] = True
    return np.asarray(inside[labels], np.bool_)


@dataclass(slots=True)
class ThreadView(View):
    """The rows up to a node, of which ``current`` is the last."""

    state: KeyRows
    node: int = NONE
    kept: KeptFolds | None = None

    def at(self, node: int, row: int) -> ThreadView:
        """The rows up to a node before it."""
        return ThreadView(
            self.state, self.start, (), row, self.number, self.end, self.ended, None, node,
            self.kept,
        )  # fmt: skip

    @property
    def length(self) -> int:
        """The number of rows taken."""
        return self.current - self.start + 1

    def label(self, place: int) -> int:
        """The variable of a row taken, by its place."""
        assert self.kept is not None
        return self.kept.label(self.node, self.length - 1 - place)

    def folded(self, fold: RowFold, end: int) -> Any:
        """The fold over all rows."""
        assert self.kept is not None
        assert end == self.length
        return self.kept.folded(fold, self)

    def place_of(self, rows: RowFold, offset: int, end: int, *, forward: bool) -> int | None:
        """The place of a row of some variables."""
        found = self.folded(rows, end + 1)
        if offset >= len(found):
            return None
        place: int = found[offset if forward else -1 - offset]
        return place


@dataclass(slots=True)
class MatchView(View):
    """A match."""

    state: KeyRows
    remembered: MeasureResults

    def folded(self, fold: RowFold, end: int) -> Any:
        """The fold over the rows before place ``end``."""
        running = self.running(fold, end)
        if fold.add_all is None or end - running.end <= _ONE_BY_ONE:
            return View.folded(self, fold, end)
        labels = np.array(self.labels[running.end : end], np.int64)
        places = running.end + np.flatnonzero(_inside(labels, fold))
        running.folded = self.state.folded(fold, running.folded, self.start, self.start + places)
        running.end = end
        return running.folded
