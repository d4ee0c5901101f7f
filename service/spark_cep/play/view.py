"""The result of a trial, as the page shows it: plain data that goes from process to process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from spark_cep.compiler.explain.drawing import Drawing


class Fate(StrEnum):
    """The state of a partial match behind an event or deadline."""

    ALIVE = "alive"
    HELD_BACK = "held back"
    MATCHED = "matched"
    TIMED_OUT = "timed out"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class DrawnPartial:
    """A partial match in the drawing. ``places``: the numbers of the drawn states at which it
    stands; ``parent``: the number of the one that it has parted from; ``moved``: it has taken the
    event; ``held``: the events that it has taken, by step; ``ending``: why it has ended."""

    number: int
    places: tuple[int, ...]
    fate: Fate
    moved: bool
    parent: int | None
    held: str
    ending: str = ""


@dataclass(frozen=True, slots=True)
class KeyMoment:
    """An event or a deadline of a key, and the state of the rule behind it.

    ``time``: in microseconds since 1970, and ``at`` as text from the beginning of the trial;
    ``row``: the event's row, ``None`` for a deadline; ``state``: the event's fate in a word or two;
    ``title``: its values; ``lines``: the why-text.
    """

    time: int
    at: str
    key: str | None
    row: int | None
    state: str
    title: str
    lines: tuple[str, ...]
    tokens: tuple[DrawnPartial, ...] = ()
    matches: tuple[str, ...] = ()


class SpanKind(StrEnum):
    """The kind of a span of the timeline."""

    MATCH = "match"
    TIMEOUT = "timeout"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A match, a timeout, or an open partial match: from its first event to its end, both in
    microseconds since 1970 (``end`` is ``None``: without end). ``frame``: where it ends, or what
    has moved it last. ``lines``: its steps and measures."""

    kind: SpanKind
    key: str | None
    start: int
    end: int | None
    frame: int | None
    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowResult:
    """The fate of an event of the table. ``state``: in a word or two; ``frame``: its place among
    the frames, where it has one, and its ``key`` then; ``at``: its time, from the beginning;
    ``time``: in microseconds since 1970."""

    state: str
    frame: int | None
    key: str | None
    at: str
    time: int


@dataclass(frozen=True, slots=True)
class TrialProblem:
    """Something that keeps a trial from being run. ``row``: its place in the table; ``field``:
    what of it, or the schema, is wrong."""

    message: str
    row: int | None = None
    field: str | None = None
    help: str | None = None


@dataclass(frozen=True, slots=True)
class Played:
    """The result of a trial. ``rules``: the ids that the text has; ``drawn``: the automaton;
    ``columns``: those that the rule reads; ``verdicts``: by key, why nothing matched."""

    rules: tuple[str, ...] = ()
    rule: str | None = None
    drawn: Drawing | None = None
    columns: tuple[str, ...] = ()
    frames: tuple[KeyMoment, ...] = ()
    spans: tuple[TimeSpan, ...] = ()
    rows: Mapping[int, RowResult] | None = None
    verdicts: Mapping[str | None, tuple[str, ...]] | None = None
    problems: tuple[TrialProblem, ...] = ()
    notes: tuple[str, ...] = ()
    #: The clock and the watermark at the end, in microseconds since 1970.
    now: int = 0
