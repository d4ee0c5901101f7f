"""MATCH_RECOGNIZE by definition: every way to read the rows, the most preferred one first.

Nothing here is taken from the machine: patterns are walked as trees, without a program, threads or
state; everything is begun again for each question. A way is *open* where it needs a row that may
still come. The first way that is complete or open decides what a start row gives: complete, it is
the match, and that is final; open, nothing can be said yet, neither of this row nor of those behind
it. So what :func:`answer` gives for the first rows of a partition is what is final by then: exactly
that must have been put out.

A loop without an upper bound does not go on behind an iteration that took no row; and behind those
that it must have, the first at least, there is no such iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, NamedTuple

from spark_cep.pattern.sql.row_pattern import (
    Alternation,
    Anchor,
    Concatenation,
    Empty,
    Exclusion,
    PatternVariable,
    Permutation,
    Quantified,
    RowPattern,
)

MOST_STEPS = 30_000


class TooLongError(Exception):
    """There are too many ways to try them all."""


class OpenError(Exception):
    """A row is needed that may still come."""


class Taken(NamedTuple):
    """What one row was taken as, and whether an exclusion has it."""

    variable: str
    excluded: bool


@dataclass(frozen=True)
class Open:
    """A way that needs another row."""

    taken: tuple[Taken, ...]


@dataclass
class Seen:
    """What a condition sees: the last of the labels is that of the row under test."""

    partition: Partition
    start: int
    labels: Sequence[str]
    number: int

    @property
    def here(self) -> int:
        return self.start + len(self.labels) - 1

    @property
    def v(self) -> Any:
        return self.at(self.here)

    def at(self, row: int | None) -> Any:
        """The value of a row, ``None`` outside the partition."""
        if row is None or row < 0:
            return None
        if row >= len(self.partition.values):
            if not self.partition.closed:
                raise OpenError
            return None
        return self.partition.values[row]

    def rows(self, *variables: str) -> list[int]:
        """The numbers of the rows taken as one of the variables, of all without any."""
        return [
            self.start + place
            for place, label in enumerate(self.labels)
            if not variables or label in variables
        ]

    def last(self, *variables: str, offset: int = 0) -> int | None:
        rows = self.rows(*variables)
        return rows[-1 - offset] if offset < len(rows) else None

    def first(self, *variables: str, offset: int = 0) -> int | None:
        rows = self.rows(*variables)
        return rows[offset] if offset < len(rows) else None

    def classifier(self, row: int | None) -> str | None:
        place = -1 if row is None else row - self.start
        return self.labels[place] if 0 <= place < len(self.labels) else None


Condition = Callable[[Seen], bool | None]


@dataclass
class Partition:
    """The rows so far: a value and a time each, and whether there will be others."""

    values: Sequence[int]
    times: Sequence[int]
    closed: bool = False
    time: int = -1


@dataclass
class Clause:
    """What is looked for. ``skip`` is ``PAST``, ``NEXT``, or ``FIRST`` or ``LAST`` with a variable;
    ``ahead``: how many rows behind a row of the result its measure is the value of."""

    pattern: RowPattern
    conditions: dict[str, Condition]
    skip: tuple[str, str | None] = ("PAST", None)
    rows: str = "ONE"
    within: int | None = None
    ahead: int = 0
    steps: int = field(default=0, init=False)


def answer(clause: Clause, partition: Partition) -> list[tuple[Any, ...]]:
    """What is final: matches, with the measure of each row put out, unmatched rows, timeouts, and
    skips that fail, in order."""
    results: list[tuple[Any, ...]] = []
    start = number = covered = 0
    clause.steps = 0
    while start < len(partition.values):
        way, expired = _decided(clause, partition, start, number + 1)
        if isinstance(way, Open) and not expired:
            break
        if way is None or isinstance(way, Open):
            if way is not None:
                results.append(("timeout", start, tuple(each.variable for each in way.taken)))
            if clause.rows == "UNMATCHED" and start >= covered:
                results.append(("unmatched", start))
            start += 1
            continue
        shown = _shown(clause, start, way)
        behind = shown[-1] + clause.ahead if shown and way else -1
        if behind >= len(partition.values) and not partition.closed:
            break
        number += 1
        labels = [each.variable for each in way]
        measures = [_value(partition, row + clause.ahead) if way else None for row in shown]
        results.append(("match", number, start, tuple(labels), tuple(measures)))
        after = start + 1
        if way:
            covered = max(covered, start + len(way))
            kind, target = clause.skip
            if kind == "PAST":
                after = start + len(way)
            elif kind != "NEXT":
                places = [place for place, label in enumerate(labels) if label == target]
                if not places:
                    results.append(("fault", "SKIP_TARGET_ABSENT"))
                elif (place := places[0 if kind == "FIRST" else -1]) == 0:
                    results.append(("fault", "SKIP_TO_MATCH_START"))
                else:
                    after = start + place
        start = after
    return results


def _decided(
    clause: Clause, partition: Partition, start: int, number: int
) -> tuple[tuple[Taken, ...] | Open | None, bool]:
    """The way that decides what a start row gives, and whether its time has passed."""
    if clause.within is None:
        return next(_ways(clause, partition, start, number), None), False
    deadline = partition.times[start] + clause.within
    before = sum(time < deadline for time in partition.times)
    if before == len(partition.times) and partition.time < deadline:
        return next(_ways(clause, partition, start, number), None), False
    seen = Partition(partition.values[:before], partition.times[:before], partition.closed)
    if before < len(partition.times):
        seen.closed = False
    ways = list(_ways(clause, seen, start, number))
    complete = next((way for way in ways if not isinstance(way, Open)), None)
    return complete if complete is not None else next(iter(ways), None), True


def _value(partition: Partition, row: int) -> int | None:
    return partition.values[row] if row < len(partition.values) else None


def _shown(clause: Clause, start: int, way: Sequence[Taken]) -> list[int]:
    if not way:
        return [] if clause.rows == "OMIT" else [start]
    if clause.rows == "ONE":
        return [start + len(way) - 1]
    return [start + place for place, each in enumerate(way) if not each.excluded]


def _ways(
    clause: Clause, partition: Partition, start: int, number: int
) -> Iterator[tuple[Taken, ...] | Open]:
    yield from _Walk(clause, partition, start, number).ways(clause.pattern, (), False)


Way = Iterator[tuple[Taken, ...] | Open]


@dataclass
class _Walk:
    clause: Clause
    partition: Partition
    start: int
    number: int

    def ways(  # noqa: C901  # a case a kind of pattern
        self, node: RowPattern, taken: tuple[Taken, ...], excluded: bool
    ) -> Way:
        """How a part can go on from what was taken before it."""
        self.clause.steps += 1
        if self.clause.steps > MOST_STEPS:
            raise TooLongError
        row = self.start + len(taken)
        match node:
            case PatternVariable(name=name):
                yield from self._row(name, taken, excluded)
            case Empty():
                yield taken
            case Anchor(sign=sign):
                if sign == "$" and row >= len(self.partition.values):
                    yield taken if self.partition.closed else Open(taken)
                elif sign == "^" and row == 0:
                    yield taken
            case Concatenation(parts=parts):
                yield from self._one_by_one(parts, taken, excluded)
            case Alternation(parts=parts):
                for part in parts:
                    yield from self.ways(part, taken, excluded)
            case Permutation(parts=parts):
                for order in permutations(parts):
                    yield from self._one_by_one(order, taken, excluded)
            case Exclusion(part=part):
                yield from self.ways(part, taken, True)
            case Quantified():
                yield from self._repeated(node, taken, excluded, 0, True)

    def _row(self, name: str, taken: tuple[Taken, ...], excluded: bool) -> Way:
        if self.start + len(taken) >= len(self.partition.values):
            if not self.partition.closed:
                yield Open(taken)
            return
        labels = [*(each.variable for each in taken), name]
        condition = self.clause.conditions.get(name)
        try:
            seen = Seen(self.partition, self.start, labels, self.number)
            if condition is None or condition(seen) is True:
                yield (*taken, Taken(name, excluded))
        except OpenError:
            yield Open(taken)

    def _one_by_one(
        self, parts: Sequence[RowPattern], taken: tuple[Taken, ...], excluded: bool
    ) -> Way:
        if not parts:
            yield taken
            return
        for way in self.ways(parts[0], taken, excluded):
            if isinstance(way, Open):
                yield way
            else:
                yield from self._one_by_one(parts[1:], way, excluded)

    def _repeated(
        self, node: Quantified, taken: tuple[Taken, ...], excluded: bool, count: int, moved: bool
    ) -> Way:
        if count >= node.least and node.reluctant:
            yield taken
        if (count < node.most) if node.most is not None else (count < node.least or moved):
            for way in self.ways(node.part, taken, excluded):
                if isinstance(way, Open):
                    yield way
                else:
                    on = len(way) > len(taken)
                    if on or node.most is not None or count < max(1, node.least):
                        yield from self._repeated(node, way, excluded, count + 1, on)
        if count >= node.least and not node.reluctant:
            yield taken
