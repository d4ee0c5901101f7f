"""Results of row patterns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

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
    """WITHIN passed before there was a match from row ``first`` on. ``events`` are the rows that
    the most preferred thread had taken, as ``labels``; ``deadline`` is the time that passed, in
    milliseconds."""

    first: int
    row: Event
    events: tuple[Event, ...]
    labels: tuple[str, ...]
    deadline: int


@dataclass(frozen=True, slots=True)
class GivenUp:
    """An attempt from row ``first`` on went beyond a limit. It gives no match, and the search
    goes on behind that row; ``TRIED_AGAIN`` says at which."""

    first: int
    row: Event
    limit: str


class SkipFault(StrEnum):
    """Why AFTER MATCH SKIP TO a variable failed, as the standard's conditions and Trino name it."""

    TARGET_ABSENT = "SKIP_TARGET_ABSENT"
    TO_MATCH_START = "SKIP_TO_MATCH_START"

    @property
    def meaning(self) -> str:
        """The reason in words."""
        if self is SkipFault.TARGET_ABSENT:
            return "the match has no row of the variable to skip to"
        return "the row to skip to is the match's first, where it would be found again"


@dataclass(frozen=True, slots=True)
class SkipFailed:
    """AFTER MATCH SKIP failed behind a match; the search goes on at the row after its first."""

    number: int
    first: int
    row: Event
    fault: SkipFault


Result = MatchFound | Unmatched | TimedOut | GivenUp | SkipFailed
