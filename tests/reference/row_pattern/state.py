"""What is kept of a key: rows, the attempt under way, and counts. Plain data throughout.

A row is an event whose columns are the plan's. Rows are numbered from 0, the first that the key
ever had.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from spark_cep.model import Event

_NO_TIME = -(2**63)


class Thread(NamedTuple):
    """One way through the program: the instruction that comes next, the variables that the rows so
    far were taken as, and how many rows had been taken at each edge of an exclusion."""

    at: int
    labels: tuple[int, ...] = ()
    edges: tuple[int, ...] = ()


@dataclass(slots=True)
class Attempt:
    """The search for a match from one row on.

    ``next_row`` is the one that the threads look at next; ``found`` the match so far. ``dropped``
    is the most preferred thread when threads were dropped because of the time, or of a limit.
    """

    start: int
    next_row: int
    threads: list[Thread]
    found: Thread | None = None
    dropped: Thread | None = None
    limit: str | None = None


@dataclass(slots=True)
class KeyState:
    """A key between two calls.

    ``rows`` are those from number ``first`` on. ``matches`` have been found; rows below ``covered``
    lie in a match or before one; the next attempt starts at ``next_start``. All further rows
    come later than ``time``; ``closed``: no row will follow. ``frontier`` is the newest row that an
    attempt has seen, ``work`` what attempts have cost since; ``failed``: the last attempt has;
    ``searched``: whether later attempts were counted since (1), and one might match (2).
    """

    rows: list[Event] = field(default_factory=list)
    first: int = 0
    matches: int = 0
    covered: int = 0
    next_start: int = 0
    attempt: Attempt | None = None
    time: int = _NO_TIME
    closed: bool = False
    frontier: int = -1
    work: int = 0
    searched: int = 0
    failed: bool = field(default=False, repr=False, compare=False)

    @property
    def end(self) -> int:
        """The number of the row that would come next."""
        return self.first + len(self.rows)

    def see(self, number: int, restored: int = 0) -> None:
        """Let a row be seen; the first time, its work begins, with what it costs to restore what
        threads keep of their rows."""
        if number > self.frontier:
            self.frontier, self.work, self.searched = number, restored, 0

    def row(self, number: int) -> Event:
        """A row that is kept."""
        return self.rows[number - self.first]

    def rows_from(self, number: int, count: int) -> tuple[Event, ...]:
        """So many rows that are kept."""
        first = number - self.first
        return tuple(self.rows[first : first + count])

    def drop_before(self, number: int) -> None:
        """Forget the rows before one."""
        count = min(number - self.first, len(self.rows))
        if count > 0:
            del self.rows[:count]
            self.first += count
