"""The state of a key as bytes, and back.

A list: the format's version, the plan's fingerprint, and the state. What is not of this version and
plan, or damaged, is a ``StateError``.
"""

from __future__ import annotations

from typing import Any

from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.errors import RESTORE, StateError
from spark_cep.matcher.row_pattern.state import Attempt, KeyState, Thread
from spark_cep.model import Coordinates, Event
from spark_cep.packing import DAMAGE, pack, unpack

VERSION = 1


def encode(state: KeyState, plan: RowPatternPlan) -> bytes:
    """The state as bytes; a closed key has none."""
    if state.closed:
        raise ValueError("a closed key has no state to keep")
    counts = [state.first, state.matches, state.covered, state.next_start, state.time]
    rows = [[*row._replace(columns=list(row.columns))] for row in state.rows]
    attempt = None if state.attempt is None else _attempt(state.attempt)
    return pack([VERSION, plan.fingerprint, counts, rows, attempt])


def decode(data: bytes, plan: RowPatternPlan) -> KeyState:
    """The state of the bytes; ``StateError`` where they cannot be used with the plan."""
    try:
        version, fingerprint, *rest = unpack(data)
        if version != VERSION:
            raise StateError(f"the state has the format {version}; this program reads {VERSION}")
        if fingerprint != plan.fingerprint:
            raise StateError("the state is of another row pattern")
        (first, matches, covered, next_start, time), rows, attempt = rest
        return KeyState(
            rows=[_read_row(*row) for row in rows],
            first=first,
            matches=matches,
            covered=covered,
            next_start=next_start,
            attempt=None if attempt is None else _read_attempt(attempt),
            time=time,
        )
    except DAMAGE as error:
        raise StateError(f"the stored state is damaged: {error!r}; {RESTORE}") from error


def _read_row(time: int, at: list[Any], bits: int, columns: list[Any], *rest: Any) -> Event:
    return Event(time, Coordinates(*at), bits, tuple(columns), *rest)


def _attempt(attempt: Attempt) -> list[Any]:
    threads = [list(thread) for thread in attempt.threads]
    return [
        attempt.start,
        attempt.next_row,
        threads,
        attempt.found and list(attempt.found),
        attempt.dropped and list(attempt.dropped),
        attempt.limit,
    ]


def _read_attempt(plain: list[Any]) -> Attempt:
    start, next_row, threads, found, dropped, limit = plain
    return Attempt(
        start,
        next_row,
        [_read_thread(thread) for thread in threads],
        found and _read_thread(found),
        dropped and _read_thread(dropped),
        limit,
    )


def _read_thread(plain: list[Any]) -> Thread:
    at, labels, edges = plain
    return Thread(at, tuple(labels), tuple(edges))
