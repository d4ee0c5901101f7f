"""The tree of a rule: the one model behind every front end.

YAML, fluent Python and MATCH_RECOGNIZE all end in these immutable nodes; the compiler starts from
them. A tree does not know how a rule is run. Terms are those of Flink CEP
(``org.apache.flink.cep.pattern.Pattern`` and ``Quantifier``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Literal

from spark_cep.pattern.expressions import Expression
from spark_cep.pattern.sql.query import Query


class Contiguity(Enum):
    """The contiguity of a step: which events may lie between its event and the one taken before."""

    NEXT = "next"
    FOLLOWED_BY = "followed_by"
    FOLLOWED_BY_ANY = "followed_by_any"
    NOT_NEXT = "not_next"
    NOT_FOLLOWED_BY = "not_followed_by"

    @property
    def negative(self) -> bool:
        """Return whether an event of the step must *not* come."""
        return self in (Contiguity.NOT_NEXT, Contiguity.NOT_FOLLOWED_BY)


class Loop(Enum):
    """Contiguity between the repetitions of one step or group."""

    RELAXED = "relaxed"
    CONSECUTIVE = "consecutive"
    COMBINATIONS = "combinations"


@dataclass(frozen=True, slots=True)
class Times:
    """The quantifier of a step or group: ``minimum`` is at least 1, ``maximum`` is ``None`` for no
    end."""

    minimum: int
    maximum: int | None

    @property
    def looping(self) -> bool:
        """Return whether there is no upper bound (Flink's ``oneOrMore``, ``timesOrMore``)."""
        return self.maximum is None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a pattern, or a group of steps.

    ``after`` is ``None`` on the first step of a pattern or group. ``where`` ``None`` accepts every
    event. ``times`` ``None`` is exactly once. ``gap_ms`` is the longest time between two
    repetitions. A group has ``group`` set, and neither ``where``, ``of_type``, ``gap_ms`` nor
    ``greedy``.
    """

    name: str
    after: Contiguity | None = None
    where: Expression | None = None
    of_type: str | None = None
    times: Times | None = None
    gap_ms: int | None = None
    loop: Loop = Loop.RELAXED
    greedy: bool = False
    optional: bool = False
    until: Expression | None = None
    group: tuple[Step, ...] | None = None

    @property
    def negative(self) -> bool:
        """Return whether this is a NOT step."""
        return self.after is not None and self.after.negative


@dataclass(frozen=True, slots=True)
class Within:
    """The window: ``max_ms`` from first to last event, ``gap_ms`` from previous to current."""

    max_ms: int | None = None
    gap_ms: int | None = None


class Skip(Enum):
    """The place where matching continues after a match (Flink's ``AfterMatchSkipStrategy``)."""

    NO_SKIP = "no_skip"
    TO_NEXT = "skip_to_next"
    PAST_LAST_EVENT = "skip_past_last_event"
    TO_FIRST = "skip_to_first"
    TO_LAST = "skip_to_last"


@dataclass(frozen=True, slots=True)
class AfterMatch:
    """Skip strategy; ``step`` for TO_FIRST and TO_LAST; ``error_on_miss`` when it has no event."""

    strategy: Skip = Skip.NO_SKIP
    step: str | None = None
    error_on_miss: bool = False


@dataclass(frozen=True, slots=True)
class Emit:
    """The content of an output record: measures by name, and the events' bytes (``all``), ``none``,
    or the named columns."""

    measures: Mapping[str, Expression] = field(default_factory=lambda: MappingProxyType({}))
    events: Literal["all", "none"] | tuple[str, ...] = "none"


class OnLimit(Enum):
    """The action when a limit is reached."""

    DROP_OLDEST = "drop_oldest"
    REJECT_NEW = "reject_new"
    PAUSE_RULE = "pause_rule"


@dataclass(frozen=True, slots=True)
class Limits:
    """Most partial matches and events that one key may hold for one rule, most matches that one
    event of it may complete, most steps of work that it may cost, and what to do beyond.

    A step of work is some 10 ns of compiled code (:mod:`spark_cep.pattern.work`)."""

    partial_matches: int = 10_000
    events: int = 100_000
    on_limit: OnLimit = OnLimit.DROP_OLDEST
    matches: int = 1_000
    work: int = 5_000_000


#: An int of Avro: it is written with each match.
MOST_VERSION = 2**31 - 1
#: Far beyond what can be held, and what compiled loops count in.
MOST_COUNTED = 10**9


class PreviousVersion(Enum):
    """The fate of the partial matches of a version that a new one replaces."""

    RESTART = "restart"
    DRAIN = "drain"
    CARRY = "carry"


@dataclass(frozen=True, slots=True)
class Rule:
    """One whole rule. ``events`` names inputs (empty: the only one); ``key`` empty: one global
    partition; ``effective_from_ms`` is event time in milliseconds since 1970 (UTC). Results of a
    ``shadow`` rule go to a topic of their own. ``drain_limit_ms``: how long the previous version
    may drain, ``None`` for the default. ``annotations``: texts with placeholders by name
    (:mod:`spark_cep.pattern.annotations`).

    A rule in SQL has its ``query`` in place of ``pattern``, ``after_match`` and ``emit``, which
    have their defaults; ``events``, ``key`` and ``within`` are those of the query."""

    id: str
    version: int
    pattern: tuple[Step, ...] = ()
    key: tuple[Expression, ...] = ()
    events: tuple[str, ...] = ()
    within: Within = Within()
    after_match: AfterMatch = AfterMatch()
    emit: Emit = field(default_factory=Emit)
    limits: Limits = Limits()
    cooldown_ms: int | None = None
    description: str = ""
    annotations: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    enabled: bool = True
    shadow: bool = False
    effective_from_ms: int | None = None
    previous_version: PreviousVersion = PreviousVersion.RESTART
    drain_limit_ms: int | None = None
    query: Query | None = None
    source: str | None = field(default=None, compare=False)


def walk(steps: tuple[Step, ...]) -> Iterator[Step]:
    """Every step and group, depth first, in the author's order."""
    for step in steps:
        yield step
        if step.group is not None:
            yield from walk(step.group)
