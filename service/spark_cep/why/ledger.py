"""The account as it is written: events and partial matches get their numbers here."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_cep.matcher.findings.live import PartialMatch
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.model import Coordinates, Event, TakenEvent
from spark_cep.why.account import (
    Account,
    ConditionSeen,
    EventState,
    Moment,
    PartialAccount,
    PartialEnding,
    SeenEvent,
    failure_text,
)
from spark_cep.why.parts import WatchedPlan
from spark_cep.why.probes import Chain

#: So many moments, the last ones, are kept, and partial matches that have ended.
MOST_KEPT = 10_000
#: The note at an event with which a version that drains would have begun a match.
DRAINS = "begins nothing: it is the next version's, and this one drains"
#: Values that are remembered of a condition that was not true.
_EXAMPLES = 3


@dataclass
class Ledger:
    """Writes an account."""

    watched: WatchedPlan
    key: str | None
    moments: deque[Moment] = field(default_factory=lambda: deque(maxlen=MOST_KEPT))
    events: dict[Coordinates, SeenEvent] = field(default_factory=dict)
    #: The numbers of partial matches that are alive, and of complete ones that are held back.
    alive: dict[Chain, int] = field(default_factory=dict)
    #: The conditions that are true of events that may still be asked about.
    masks: dict[Coordinates, int] = field(default_factory=dict)
    _dropped: int = 0
    _last_event: int = 0
    _earlier_events: int = 0
    _last_partial: int = 0
    _ended: deque[int] = field(default_factory=deque)
    _starts: dict[tuple[str, str], ConditionSeen] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plan = self.watched.plan
        self.account = Account(plan.rule.id, plan.rule.version, self.key, plan.steps)
        self._partials: dict[int, PartialAccount] = {}
        self.account.partials = self._partials

    def see(self, event: Event) -> SeenEvent:
        """Number an event that is applied."""
        self._last_event += 1
        seen = seen_event(self._last_event, event, self.watched)
        self.events[event.at] = seen
        return seen

    def see_earlier(self, event: TakenEvent) -> SeenEvent:
        """Number an event that an earlier version has taken. Its columns are not known."""
        self._last_event += 1
        self._earlier_events += 1
        seen = SeenEvent(self._last_event, event.at, event.time, event.type, {})
        self.events[event.at] = seen
        self.add(Moment(event.time, seen, EventState.EARLIER))
        return seen

    def not_seen(self, events: Iterable[Event]) -> None:
        """Enter events that waited for the watermark, and are another version's now."""
        for event in sorted(events, key=lambda each: each.time):
            self.add(Moment(event.time, seen_event(0, event, self.watched), EventState.UNSEEN))

    def add(self, moment: Moment) -> None:
        """Write down what has happened."""
        if len(self.moments) == self.moments.maxlen:
            self._dropped += 1
        self.moments.append(moment)
        self.account.matches += moment.matches

    def begin(self, parent: int | None, steps: Mapping[str, Sequence[SeenEvent]]) -> int:
        """A new partial match; returns its number."""
        self._last_partial += 1
        number = self._last_partial
        self._partials[number] = PartialAccount(number, parent, steps)
        return number

    def advance(self, number: int, step: str, event: SeenEvent) -> None:
        """A partial match has taken an event."""
        steps = self._partials[number].steps
        self._partials[number].steps = {**steps, step: (*steps.get(step, ()), event)}

    def set_steps(self, number: int, steps: Mapping[str, Sequence[SeenEvent]]) -> None:
        """The events that a partial match has taken."""
        self._partials[number].steps = steps

    def steps_of(self, number: int) -> Mapping[str, Sequence[SeenEvent]]:
        """The events of a partial match."""
        return self._partials[number].steps

    def end(self, number: int, ending: PartialEnding) -> None:
        """A partial match has ended."""
        self._partials[number].ending = ending
        self._ended.append(number)
        if len(self._ended) > MOST_KEPT:
            del self._partials[self._ended.popleft()]

    def found(self, outputs: Outputs) -> None:
        """Enter the timeouts and dead letters that were found."""
        self.account.timeouts += [each.match_id for each in outputs.timeouts]
        room = MOST_KEPT - len(self.account.failures)
        self.account.failures += map(failure_text, outputs.dead_letters[:room])

    def tried(self, parts: Iterable[tuple[str, str, bool, Mapping[str, Any]]]) -> None:
        """First steps were tried with an event: by step the parts of its condition, whether each is
        true, and the values seen."""
        for step, text, true, values in parts:
            seen = self._starts.setdefault((step, text), ConditionSeen(step, text))
            if true:
                seen.true_of += 1
            elif values not in seen.values and len(seen.values) < _EXAMPLES:
                seen.values.append(values)

    def close(
        self, alive: Mapping[int, PartialMatch], arrived: Iterable[Event], late: set[Coordinates]
    ) -> Account:
        """The account, with the partial matches that are ``alive`` by number, and the events that
        were not applied: those that came late, and those that still wait."""
        for number, live in alive.items():
            partial = self._partials[number]
            partial.deadline, partial.waits_for = live.deadline, live.waits_for
            partial.forbids, partial.absence = live.forbids, live.absence
            partial.held_back = live.held_back
        account = self.account
        account.moments, account.dropped_moments = list(self.moments), self._dropped
        for event in sorted(arrived, key=lambda each: each.time):
            state = EventState.LATE if event.at in late else EventState.WAITING
            seen = seen_event(0, event, self.watched)
            account.moments.append(Moment(event.time, seen, state))
        account.starts.events = self._last_event - self._earlier_events
        account.starts.conditions = list(self._starts.values())
        return account


def seen_event(number: int, event: Event, watched: WatchedPlan) -> SeenEvent:
    """An event with the columns that the rule reads."""
    return SeenEvent(number, event.at, event.time, event.type, watched.values(event))
