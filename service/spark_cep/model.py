"""The values that travel through the service: coordinates, events, matches, timeouts.

Times are event times in milliseconds since 1970-01-01 UTC unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Coordinates(NamedTuple):
    """The place of a record in Kafka; it orders events of equal time."""

    topic: str
    partition: int
    offset: int

    @property
    def text(self) -> str:
        """``topic/partition/offset``."""
        return "/".join(map(str, self))


class Event(NamedTuple):
    """One event as the matcher sees it.

    ``bits``: truth of the event-only conditions of every rule of its partitioning (bit *i* is
    condition *i*). ``columns``: values that look-back conditions and measures read, in the
    partitioning's order. ``payload``: the record's original value, where a rule emits it.
    ``micros``: microseconds behind the millisecond ``time``. The order of application is that of
    time, with its microseconds, then coordinates.
    """

    time: int
    at: Coordinates
    bits: int
    columns: Sequence[Any] = ()
    payload: bytes | None = None
    type: str | None = None
    micros: int = 0


class TakenEvent(NamedTuple):
    """An event inside a match: coordinates, event time, and what the rule emits of it."""

    at: Coordinates
    time: int
    columns: Mapping[str, Any] | None = None
    payload: bytes | None = None
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """A complete match. ``time`` is that of the event that completed it, or the deadline for
    absence. ``steps``: events per step name, in the order taken; steps without events are left
    out. ``annotations``: those of its rule, filled in; ``None`` where the rule has none."""

    match_id: str
    rule_id: str
    rule_version: int
    key: str | None
    start: int
    time: int
    steps: Mapping[str, Sequence[TakenEvent]]
    measures: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Timeout:
    """A partial match whose ``deadline`` passed. ``already_matched``: a match had taken just its
    events by then, the first of them, or these and more. ``events_omitted``: how many of the events
    that it has taken are not in ``steps``; of each step the first and the last are."""

    match_id: str
    rule_id: str
    rule_version: int
    key: str | None
    start: int
    deadline: int
    already_matched: bool
    steps: Mapping[str, Sequence[TakenEvent]]
    measures: Mapping[str, Any] = field(default_factory=dict)
    events_omitted: int = 0
    annotations: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class MatchRow:
    """A row of a result with ALL ROWS PER MATCH: an event of the input and the ``columns`` of the
    result at it. ``match_id`` is ``None`` for a row that no match covers; ``row`` is its place
    among the rows of the match, from 1; ``variable`` what it was taken as, ``None`` for the row of
    an empty match."""

    rule_id: str
    rule_version: int
    key: str | None
    match_id: str | None
    row: int
    variable: str | None
    event: TakenEvent
    columns: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LateEvent:
    """An event whose time had already passed: original key, value and headers, unchanged."""

    at: Coordinates
    time: int
    watermark: int
    record_key: bytes | None
    record_value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record (or one event of one rule) that could not be processed.

    ``reason`` is one of ``spark_cep.codecs.output.dead_letters.REASONS``; ``detail`` is for people.
    """

    at: Coordinates
    reason: str
    detail: str
    record_key: bytes | None = None
    record_value: bytes | None = None
    rule_id: str | None = None
    step: str | None = None
    rule_version: int | None = None
