"""The attempt under way of a rule in SQL and a key, by the rows that its ways have taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from spark_cep.matcher.batch.events import Names, SlotType
from spark_cep.matcher.keys import KeysState
from spark_cep.matcher.row_pattern.keys import states_of
from spark_cep.matcher.row_pattern.states import attempts
from spark_cep.model import Event
from spark_cep.why.probes import Chain

#: The numbers of the variables of rows, from the attempt's first on.
Labels = tuple[int, ...]


@dataclass
class UnderWay:
    """The rows of the key that are kept, from number ``base`` on, how many matches there were, and
    the attempt: the number of its first row and that row's microseconds, its ways with the
    instructions at which they stand, the preferred first, and the match so far."""

    base: int = 0
    rows: list[Event] = field(default_factory=list)
    matches: int = 0
    start: int = -1
    micros: int = 0
    ways: dict[Labels, list[int]] = field(default_factory=dict)
    found: Labels | None = None

    @classmethod
    def of(cls, state: KeysState, names: Names, slots: Sequence[SlotType]) -> UnderWay:
        """The attempt of a key that has one rule."""
        known = state.row_patterns
        if not len(known):
            return cls()
        states = states_of(known)
        event = state.events.objects(names, slots)
        (key,) = states.keys
        rows = [event(number) for number in states.rows["event"].tolist()]
        held = cls(int(key["first"]), rows, int(key["matches"]))
        for attempt in attempts(states):
            held.start, held.found = int(key["start"]), attempt.found
            held.micros = int(states.rows["micros"][attempt.row])
            for at, labels in attempt.threads:
                held.ways.setdefault(labels, []).append(at)
        return held

    @property
    def first(self) -> Event:
        """The first row of the attempt."""
        return self.rows[self.start - self.base]

    def chain(self, labels: Labels) -> Chain:
        """The rows that a way has taken."""
        first = self.start - self.base
        events = self.rows[first : first + len(labels)]
        return frozenset((label, event.at) for label, event in zip(labels, events, strict=True))

    @property
    def alive(self) -> dict[Chain, Labels]:
        """The ways that have taken a row, and the match so far."""
        ways = [each for each in self.ways if each]
        ways += [self.found] if self.found else []
        return {self.chain(labels): labels for labels in ways}
