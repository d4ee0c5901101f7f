"""The results of a test: the events that it sent, and the matches, timeouts and failures of its
rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from spark_cep.model import Coordinates
from spark_cep.testkit.times import instant_text


@dataclass(frozen=True, slots=True, repr=False)
class SentEvent:
    """One event of a test: ``number`` counts from 0, ``time`` is its event time, ``values`` are its
    columns as they were sent. ``at`` are the coordinates that it had."""

    number: int
    time: datetime
    values: dict[str, Any]
    input: str
    of_type: str | None
    at: Coordinates

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.values.items())
        kind = f" {self.of_type}" if self.of_type else ""
        return f"<#{self.number}{kind} {instant_text(self.time)} {values}>"


@dataclass(frozen=True, slots=True, repr=False)
class _Taken:
    """The events that a rule took for one key, by step, in the order taken; steps without events
    are left out. ``key`` is text, ``None`` for a rule without key."""

    rule_id: str
    rule_version: int
    key: str | None
    steps: Mapping[str, tuple[SentEvent, ...]]
    step_names: tuple[str, ...] = field(compare=False)

    @property
    def start(self) -> datetime:
        """The time of the first event."""
        return min(event.time for events in self.steps.values() for event in events)

    def events(self, step: str | None = None) -> list[dict[str, Any]]:
        """The columns of the events as they were sent: of ``step``, or of all steps in order.

        ``ValueError`` when the rule has no such step.
        """
        if step is None:
            everything = {event.number: event for taken in self.steps.values() for event in taken}
            ordered = sorted(everything.values(), key=lambda event: (event.time, event.at))
            return [event.values for event in ordered]
        if step not in self.step_names:
            names = ", ".join(self.step_names)
            raise ValueError(f"rule {self.rule_id} takes no events for {step!r}: it has {names}")
        return [event.values for event in self.steps.get(step, ())]

    def _named(self, kind: str, said: str = "") -> str:
        steps = ", ".join(
            f"{name} {' '.join(map(repr, events))}" for name, events in self.steps.items()
        )
        return f"<{kind} of {self.rule_id}, key {self.key!r}{said}: {steps}>"


@dataclass(frozen=True, slots=True, repr=False)
class FoundMatch(_Taken):
    """A match. ``time`` is that of the event that completed it, or the deadline for absence."""

    match_id: str
    time: datetime
    measures: Mapping[str, Any]

    def __repr__(self) -> str:
        return self._named("match", f" at {instant_text(self.time)}")


@dataclass(frozen=True, slots=True, repr=False)
class FoundRow:
    """A row of a result with ALL ROWS PER MATCH: the event, the ``columns`` of the result at it,
    its place among the rows of the match (from 1) and the ``variable`` that it was taken as.
    ``match_id`` is ``None`` where no match covers the row."""

    rule_id: str
    rule_version: int
    key: str | None
    match_id: str | None
    row: int
    variable: str | None
    event: SentEvent
    columns: Mapping[str, Any]

    def __repr__(self) -> str:
        taken = "unmatched" if self.match_id is None else f"row {self.row}"
        variable = "" if self.variable is None else f" {self.variable}"
        columns = ", ".join(f"{name}={value!r}" for name, value in self.columns.items())
        return f"<{taken} of {self.rule_id}, key {self.key!r}:{variable} {self.event!r}, {columns}>"


@dataclass(frozen=True, slots=True, repr=False)
class FoundTimeout(_Taken):
    """A partial match that ran out of time at ``deadline``. ``already_matched``: by then a match
    had taken just its events, the first of them, or these and more. ``events_omitted``: how many of
    its events are not in ``steps``, which have the first and the last fifty of each."""

    match_id: str
    deadline: datetime
    already_matched: bool
    measures: Mapping[str, Any]
    events_omitted: int

    def __repr__(self) -> str:
        return self._named("timeout", f" at {instant_text(self.deadline)}")


@dataclass(frozen=True, slots=True, repr=False)
class OpenMatch(_Taken):
    """A live partial match: the events taken so far, and what may become of them.

    ``deadline``: when it runs out of time, ``None`` for never. ``waits_for``: the steps that could
    take an event next. ``forbids``: NOT steps whose event would end it. ``absence``: it is a match
    when its deadline passes. ``already_matched`` as in :class:`FoundTimeout`. ``held_back``: it is
    complete, and its skip strategy keeps it until earlier partial matches are decided.
    """

    deadline: datetime | None
    waits_for: tuple[str, ...]
    forbids: tuple[str, ...]
    absence: bool
    already_matched: bool
    held_back: bool

    def __repr__(self) -> str:
        if self.held_back:
            return self._named("held match")
        said = f", waits for {' or '.join(self.waits_for)}" if self.waits_for else ""
        said += f", not for {' or '.join(self.forbids)}" if self.forbids else ""
        if self.deadline is not None:
            ends = "matches at" if self.absence else "until"
            said += f", {ends} {instant_text(self.deadline)}"
        return self._named("partial match", said)


@dataclass(frozen=True, slots=True, repr=False)
class LateArrival:
    """An event whose time the ``watermark`` had passed when it came: no rule saw it."""

    event: SentEvent
    watermark: datetime

    def __repr__(self) -> str:
        return f"<late {self.event!r}, the watermark was {instant_text(self.watermark)}>"


@dataclass(frozen=True, slots=True, repr=False)
class FailedEvent:
    """An event that would be a dead letter: ``reason`` is one of those in docs/output.md,
    ``detail`` is for people; ``rule_id`` and ``step`` where one of them failed."""

    event: SentEvent
    reason: str
    detail: str
    rule_id: str | None
    step: str | None

    def __repr__(self) -> str:
        where = "".join(f" {name}" for name in (self.rule_id, self.step) if name)
        return f"<{self.reason}{where} {self.event!r}: {self.detail}>"
