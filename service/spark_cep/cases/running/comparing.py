"""Holds what a case has found against what it expects.

Of each kind of results that a case writes there must be exactly so many. An expected result is
compared in the keys that it has, with whichever found one it fits; the order does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spark_cep.cases.document.references import references_of
from spark_cep.cases.document.shape import NOTHING, ExpectShape, When, written
from spark_cep.cases.document.values import relative, same
from spark_cep.cases.running.case_run import CaseRun
from spark_cep.cases.running.found import KINDS, FoundResult, found_results

#: Kinds that are compared where a case does not write them: an event that fails is no event that
#: the rule passes over.
_ALWAYS: Final = ("dead_letters",)


@dataclass(frozen=True)
class Line:
    """One key of an expected result beside what was found; ``None`` for nothing."""

    name: str
    expected: str | None
    found: str | None
    same: bool


@dataclass(frozen=True)
class Pair:
    """An expected result, by its number from 1, beside the found one that comes nearest. Without a
    number it was not expected; with ``found`` false there is none left."""

    number: int | None
    lines: tuple[Line, ...]
    found: bool = True


@dataclass(frozen=True)
class Difference:
    """The difference in one kind of results: how many were expected and found, and those that do
    not fit each other."""

    kind: str
    expected: int
    found: int
    pairs: tuple[Pair, ...]


def differences(run: CaseRun) -> list[Difference]:
    """The differences of a run, none where it is as expected."""
    return [each for each in _differences(run) if each.pairs]


def compared(expect: ExpectShape | str) -> Mapping[str, Sequence[Any]]:
    """The expected results of each kind that is compared."""
    if not isinstance(expect, ExpectShape):
        return dict.fromkeys(KINDS, ())
    given: dict[str, Sequence[Any]] = {
        kind: () if results in (NOTHING, None) else results
        for kind, results in written(expect).items()
    }
    return {kind: given.get(kind, ()) for kind in KINDS if kind in (*given, *_ALWAYS)}


def _differences(run: CaseRun) -> Iterator[Difference]:
    everything = found_results(run)
    nothing = not isinstance(run.case.shape.expect, ExpectShape)
    for kind, expected in compared(run.case.shape.expect).items():
        if nothing and kind == "partial_matches":
            # `none` is about what a job would write.
            continue
        found = everything[kind]
        wanted = [_Wanted(run, kind, each) for each in expected]
        yield Difference(kind, len(wanted), len(found), tuple(_pairs(wanted, found)))


class _Wanted:
    """An expected result of a run."""

    def __init__(self, run: CaseRun, kind: str, shape: Any) -> None:
        self._run = run
        values = {"event": shape} if kind == "late" else written(shape)
        self.keys = dict(_flat(values))

    def fits(self, found: FoundResult) -> bool:
        """Return whether all keys are as found."""
        return all(self._same(name, found) for name in self.keys)

    def likeness(self, found: FoundResult) -> int:
        """Count the keys that are as found."""
        return sum(self._same(name, found) for name in self.keys)

    def lines(self, found: FoundResult | None) -> Iterator[Line]:
        """The keys, and what else tells which result was found."""
        for name, value in self.keys.items():
            seen = None if found is None else found.shown(name)
            same_ = found is not None and self._same(name, found)
            yield Line(name, self._shown(name, value), seen, same_)
        if found is not None:
            for name in found.telling:
                if name not in self.keys:
                    yield Line(name, None, found.shown(name), same=True)

    def _same(self, name: str, found: FoundResult) -> bool:
        expected, start = self.keys[name], self._run.start
        if isinstance(expected, When):
            return bool(expected.micros_since_1970(start, start) == found.value(name))
        if name == "key":
            key = found.value(name)
            return key is None if expected is None else str(expected) == key
        if name == "event" or name.startswith("steps."):
            names = self._run.case.names
            numbers = [names.number(each) for each in references_of(expected)]
            return bool(numbers == found.value(name))
        if name == "waits_for":
            return _names(references_of(expected)) == _names(found.value(name) or ())
        if name == "variable":
            return _names([expected]) == _names([found.value(name)])
        return found.has(name) and same(expected, found.value(name), start)

    def _shown(self, name: str, value: Any) -> str:
        if isinstance(value, When):
            return relative(
                value.micros_since_1970(self._run.start, self._run.start), self._run.start
            )
        if name == "event" or name.startswith("steps."):
            names = self._run.case.names
            numbers = [names.number(each) for each in references_of(value)]
            return FoundResult.events_shown(
                [names.written(each) for each in numbers if each is not None]
            )
        return FoundResult.text(value)


def _names(several: Sequence[Any]) -> list[str]:
    """Names of steps, or variables, which SQL writes in capitals."""
    return sorted(str(each).casefold() for each in several)


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Keys of one level: those of measures, columns and steps behind a dot."""
    for name, value in values.items():
        if name in ("measures", "columns", "steps"):
            for inner, each in (value or {}).items():
                yield f"{name}.{inner}", each
        elif name == "key" or value is not None:
            yield name, value


def _pairs(wanted: Sequence[_Wanted], found: Sequence[FoundResult]) -> Iterator[Pair]:
    """The expected results that nothing fits, each beside what is left and nearest to it, then what
    was not expected."""
    fitting = _assigned([[each.fits(one) for one in found] for each in wanted])
    left = [place for place in range(len(found)) if place not in fitting.values()]
    for number, each in enumerate(wanted):
        if number in fitting:
            continue
        nearest = max(left, key=lambda place: (each.likeness(found[place]), -place), default=None)
        if nearest is not None:
            left.remove(nearest)
        one = None if nearest is None else found[nearest]
        yield Pair(number + 1, tuple(each.lines(one)), one is not None)
    for place in left:
        one = found[place]
        lines = (Line(name, None, one.shown(name), same=False) for name in one.all_names)
        yield Pair(None, tuple(lines))


def _assigned(fits: Sequence[Sequence[bool]]) -> dict[int, int]:
    """Pair rows with columns that fit them, as many as possible (augmenting paths)."""
    row_of: dict[int, int] = {}

    def assign(row: int, tried: set[int]) -> bool:
        for column, fit in enumerate(fits[row]):
            if fit and column not in tried:
                tried.add(column)
                if column not in row_of or assign(row_of[column], tried):
                    row_of[column] = row
                    return True
        return False

    for row in range(len(fits)):
        assign(row, set())
    return {row: column for column, row in row_of.items()}
