"""Results of row patterns, and what a compiled run has found as these objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from spark_cep.columns.vectors import reader
from spark_cep.matcher.row_pattern.failures import SkipFault
from spark_cep.matcher.row_pattern.found import RunFindings
from spark_cep.matcher.row_pattern.loops import tables
from spark_cep.model import Event


@dataclass(frozen=True, slots=True)
class OutputRow:
    """One row of the result: a row of the input, the measures at it, and its place among the rows
    of its match, from 0."""

    row: Event
    measures: tuple[Any, ...]
    place: int = 0


@dataclass(frozen=True, slots=True)
class MatchFound:
    """A match: its MATCH_NUMBER, its first row and that one's number, its rows and their variables
    (none: an empty match, before the first row), and what is put out of it, which may be
    nothing."""

    number: int
    first: int
    at: Event
    events: tuple[Event, ...]
    labels: tuple[str, ...]
    rows: tuple[OutputRow, ...]


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A row that no match covers (WITH UNMATCHED ROWS)."""

    number: int
    rows: tuple[OutputRow, ...]


@dataclass(frozen=True, slots=True)
class TimedOut:
    """WITHIN passed before there was a match from row ``first`` on. ``events`` are those of the
    rows that the most preferred thread had taken, as ``labels``, which are listed, ``omitted`` how
    many are not; ``deadline`` is the time that passed, in milliseconds."""

    first: int
    row: Event
    events: tuple[Event, ...]
    labels: tuple[str, ...]
    deadline: int
    omitted: int = 0


@dataclass(frozen=True, slots=True)
class GivenUp:
    """An attempt from row ``first`` on went beyond a limit. It gives no match, and the search
    goes on behind that row; ``TRIED_AGAIN`` says at which."""

    first: int
    row: Event
    limit: str


@dataclass(frozen=True, slots=True)
class SkipFailed:
    """AFTER MATCH SKIP failed behind a match; the search goes on at the row after its first."""

    number: int
    first: int
    row: Event
    fault: SkipFault


Result = MatchFound | Unmatched | TimedOut | GivenUp | SkipFailed


def objects(found: RunFindings) -> Iterator[tuple[int, Result]]:
    """The number of the key, and what was found, as objects."""
    event, output = found.event, found.output
    variables = found.compiled.plan.query.variables
    ends = np.searchsorted(output.result, np.arange(len(found.results)), "right")
    numbers = (found.labels & (tables.EXCLUDED - 1)).tolist()
    own, at = output.event.tolist(), 0
    current = [0] * len(own) if found.one_row else output.current.tolist()
    measures = [reader(each.values, each.kind) for each in output.measures]
    for number, result in enumerate(found.results):
        first, kind, key = int(result["first"]), int(result["kind"]), int(result["key"])
        begin, length = int(result["labels"]), int(result["length"])
        row, end = event(int(result["row"])), int(ends[number])
        rows = tuple(
            OutputRow(event(own[each]), tuple(read(each) for read in measures), current[each])
            for each in range(at, end)
        )
        at = end
        labels = tuple(variables[each] for each in numbers[begin : begin + length])
        start = (int(found.rows.ends[key - 1]) if key else 0) + first - int(found.bases[key])
        places = list(range(length))
        if kind == tables.TIMED_OUT:
            places = found.labels[begin + length : begin + 2 * length].tolist()
        taken = tuple(event(int(found.rows.at[start + place])) for place in places)
        if kind == tables.MATCH:
            yield key, MatchFound(int(result["number"]), first, row, taken, labels, rows)
        elif kind == tables.UNMATCHED:
            yield key, Unmatched(first, rows)
        elif kind == tables.TIMED_OUT:
            omitted = int(result["number"])
            yield key, TimedOut(first, row, taken, labels, int(result["detail"]), omitted)
        elif kind == tables.GIVEN_UP:
            yield key, GivenUp(first, row, found.limit(number))
        else:
            yield key, SkipFailed(int(result["number"]), first, row, found.fault(number))
