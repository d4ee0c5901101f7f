"""The state of one key: partial matches that share their events.

A partial match is a pointer to the last event taken; each taken event points to the one before.
Branches that part share everything up to the fork, so an event is held once however many partial
matches stand on it, and is freed with the last one. That does the work of Flink's ``SharedBuffer``
(after SASE+, Agrawal et al., SIGMOD 2008) without version numbers: a chain belongs to the
branches that point to it, so no pointer can be followed into another branch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from spark_cep.model import Event

FOREVER = (1 << 63) - 1
#: A watermark beyond all event times: no event will follow.
END_OF_TIME = 1 << 62
#: Values of ``matched``, of the sequence of events that ends there: it is in no match, a match
#: begins with it, it is a match. What stands before it in a match is in that match, too.
NOT_MATCHED, MATCHED_WITH_MORE, MATCHED = 0, 1, 2


class Taken:
    """One event taken for step number ``step``, behind ``previous``. ``matched``: what is known of
    the events up to it: they are in no match, a match begins with them, or they are one.

    Within one rule's state there is one object for each sequence of events taken, so two partial
    matches have taken the same events for the same steps exactly when their ends are one object.
    """

    __slots__ = ("event", "matched", "previous", "step")

    def __init__(
        self, previous: Taken | None, step: int, event: Event, matched: int = NOT_MATCHED
    ) -> None:
        self.previous = previous
        self.step = step
        self.event = event
        self.matched = matched

    def chain(self) -> Iterator[Taken]:
        """This event and those before it, last first."""
        taken: Taken | None = self
        while taken is not None:
            yield taken
            taken = taken.previous

    @property
    def had_matched(self) -> bool:
        """Return whether a match began with these events, or these events with a match."""
        return self.matched != NOT_MATCHED or any(each.matched == MATCHED for each in self.chain())


class Partial(NamedTuple):
    """A partial match standing in ``state``. ``first`` opened it. ``deadline`` is when it runs
    out of time (``FOREVER`` for never)."""

    state: int
    first: Event
    last: Taken
    deadline: int


class Finished(NamedTuple):
    """A complete match: its last taken event and the time that completed it."""

    first: Event
    last: Taken
    time: int


@dataclass(slots=True)
class RuleState:
    """One rule's state for one key.

    ``finished`` waits for the skip strategy; ``quiet_until`` is the end of the cooldown; ``paused``
    is set by the limit policy; ``limited``: the last change met a limit, which has been reported.
    ``events_at_most`` is no less than the number of events held.
    """

    partials: list[Partial] = field(default_factory=list)
    finished: list[Finished] = field(default_factory=list)
    deadline: int = FOREVER
    quiet_until: int | None = None
    paused: bool = False
    limited: bool = False
    events_at_most: int = 0
