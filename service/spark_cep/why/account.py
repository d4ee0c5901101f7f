"""The account of one key's events under one rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from spark_cep.model import Coordinates, DeadLetter


class EndReason(StrEnum):
    """The reason for which a partial match ended."""

    MATCH = "match"
    PREFERRED = "preferred_way"
    WINDOW = "window"
    GAP = "gap"
    NOT = "not"
    CONTIGUITY = "contiguity"
    UNTIL = "until"
    SKIP = "skip"
    LIMIT = "limit"
    COOLDOWN = "cooldown"
    REPLACED = "replaced_version"


class EventState(StrEnum):
    """The fate of an event. ``PASSED`` events have changed nothing; ``UNSEEN`` ones came before
    the version of the rule began, or after it had ended; ``EARLIER`` ones were taken by the version
    that this one carries over."""

    TAKEN = "taken"
    PASSED = "passed"
    LATE = "late"
    WAITING = "waiting"
    TOO_EARLY = "before_effective_from"
    UNSEEN = "of_another_version"
    EARLIER = "taken_by_an_earlier_version"


class SeenEvent(NamedTuple):
    """An event of the key. ``number`` counts from 1 in the order of application; 0: it was not
    applied. ``values``: the columns that the rule reads."""

    number: int
    at: Coordinates
    time: int
    type: str | None
    values: Mapping[str, Any]


class Unmet(NamedTuple):
    """A part of a condition that stood in the way, with the values seen. It was not true; or, with
    ``holds``, it was true and must not be."""

    text: str
    values: Mapping[str, Any]
    holds: bool = False


class Passed(NamedTuple):
    """A step that could have taken an event and did not. ``unknown``: it depends on rows to come,
    or on an earlier way of the pattern."""

    step: str
    unmet: tuple[Unmet, ...]
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class PartialEnding:
    """The end of a partial match: ``event`` brought it, or the passing of ``time`` alone.

    ``step``: the NOT step that was violated, or the step whose ``until`` was true. ``conditions``:
    what was true of the event. ``result``: the id of the match, or of the timeout, that was found.
    """

    reason: EndReason
    time: int
    detail: str
    event: Coordinates | None = None
    step: str | None = None
    conditions: tuple[Unmet, ...] = ()
    result: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """The effect of an event, or a deadline, on one partial match. ``held``: how many events its
    steps had taken before; ``took``: the steps that have taken the event, each with the number of
    the partial match that goes on with it; ``stays``: it goes on without it, too."""

    partial: int
    held: Mapping[str, int]
    took: tuple[tuple[str, int], ...] = ()
    passed: tuple[Passed, ...] = ()
    stays: bool = True
    ending: PartialEnding | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """An event, or a deadline (``event`` is ``None``), and what it did. ``started``: steps with the
    numbers of partial matches that began; ``not_started``: the first steps that did not take it;
    ``matches``: ids; ``standing``: by the number of each partial match that is alive behind it, the
    states of the plan, or the instructions of its program, at which it stands."""

    time: int
    event: SeenEvent | None
    state: EventState | None = None
    turns: tuple[Turn, ...] = ()
    started: tuple[tuple[str, int], ...] = ()
    not_started: tuple[Passed, ...] = ()
    matches: tuple[str, ...] = ()
    note: str = ""
    standing: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class PartialAccount:
    """A partial match: its ``number``, the one that it has parted from (``None`` for one that
    began), its events by step, and its end. Without one it is open: ``deadline``, ``waits_for``,
    ``forbids`` and ``absence`` are as in
    :class:`~spark_cep.matcher.findings.live.PartialMatch`; ``held_back``: it is complete, and its
    skip strategy keeps it."""

    number: int
    parent: int | None
    steps: Mapping[str, Sequence[SeenEvent]]
    deadline: int | None = None
    waits_for: tuple[str, ...] = ()
    forbids: tuple[str, ...] = ()
    absence: bool = False
    held_back: bool = False
    ending: PartialEnding | None = None


@dataclass(slots=True)
class ConditionSeen:
    """A part of a first step's condition, and of how many events of the key it was true.
    ``values``: some that it was not true of."""

    step: str
    text: str
    true_of: int = 0
    values: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Starts:
    """Counts and conditions of the events with which the rule could have begun.

    ``events``: the key's events, ``all_events`` those of all keys, ``without_key`` those whose key
    is NULL, ``types`` the record types of all, ``keys_like``: keys seen, the nearest first."""

    events: int = 0
    all_events: int = 0
    without_key: int = 0
    types: dict[str, int] = field(default_factory=dict)
    missing_types: tuple[str, ...] = ()
    conditions: list[ConditionSeen] = field(default_factory=list)
    keys_like: tuple[str, ...] = ()


@dataclass(slots=True)
class Account:
    """The account of one key. ``moments`` are in order; ``dropped_moments``: the oldest that were
    not kept; ``nearest``: the number of the partial match that took the most steps, where nothing
    matched."""

    rule_id: str
    rule_version: int
    key: str | None
    steps: tuple[str, ...]
    moments: Sequence[Moment] = ()
    dropped_moments: int = 0
    partials: Mapping[int, PartialAccount] = field(default_factory=dict)
    matches: list[str] = field(default_factory=list)
    timeouts: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    starts: Starts = field(default_factory=Starts)
    watermark: int = 0

    @property
    def open(self) -> list[PartialAccount]:
        """The partial matches that are alive, and complete ones that are held back."""
        return [each for each in self.partials.values() if each.ending is None]

    @property
    def nearest(self) -> PartialAccount | None:
        """The partial match that took the most steps, then the most events."""
        return max(self.partials.values(), key=_progress, default=None)


def _progress(partial: PartialAccount) -> tuple[int, int, int]:
    return (
        len(partial.steps),
        sum(map(len, partial.steps.values())),
        -partial.number,
    )


def failure_text(letter: DeadLetter) -> str:
    """The place of a record, and why it is a dead letter."""
    return f"{letter.at.text}: {letter.reason}: {letter.detail}"
