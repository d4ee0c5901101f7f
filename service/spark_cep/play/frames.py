"""Accounts of keys as frames: where each partial match stands behind each event and deadline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from spark_cep.cases.document.values import relative
from spark_cep.compiler.explain.drawing import Drawing
from spark_cep.compiler.plan import StateKind
from spark_cep.errors import printable
from spark_cep.play.view import DrawnPartial, Fate, KeyMoment
from spark_cep.testkit.results import SentEvent
from spark_cep.why.account import Account, EndReason, EventState, Moment, PartialEnding
from spark_cep.why.text import ending_text, moment_lines, values_text

_MILLISECOND = 1_000
_WORDS = {
    EventState.TAKEN: "taken",
    EventState.PASSED: "passed over",
    EventState.LATE: "late",
    EventState.WAITING: "waits for the watermark",
    EventState.TOO_EARLY: "before effective_from",
    EventState.UNSEEN: "another version's",
    EventState.EARLIER: "taken by an earlier version",
}
_OUT_OF_TIME = (EndReason.WINDOW, EndReason.GAP)


@dataclass
class Frames:
    """Makes frames. ``start``: of the trial, in microseconds since 1970; ``drawn``: the automaton;
    ``sent``: the events, by number; ``rows``: the row of each; ``clocks``: the clock when it
    came."""

    start: int
    drawn: Drawing
    sent: Sequence[SentEvent]
    rows: Mapping[int, int]
    clocks: Mapping[int, int]

    def of(self, accounts: Iterable[Account]) -> list[KeyMoment]:
        """The frames of several keys, in the order in which they happened."""
        found = [each for account in accounts for each in self._of(account)]
        return [frame for _, frame in sorted(found, key=lambda each: each[0])]

    def _of(self, account: Account) -> Iterator[tuple[int, KeyMoment]]:
        walk = _MomentWalk(account, self.drawn)
        for moment in account.moments:
            event = moment.event
            if event is not None and moment.state in (EventState.LATE, EventState.WAITING):
                order = max(self.clocks[event.at.offset], moment.time * _MILLISECOND)
                yield order, self._frame(account, moment, ())
            else:
                tokens = tuple(walk.behind(moment))
                yield moment.time * _MILLISECOND, self._frame(account, moment, tokens)

    def _frame(
        self, account: Account, moment: Moment, tokens: tuple[DrawnPartial, ...]
    ) -> KeyMoment:
        time = moment.time * _MILLISECOND
        event = moment.event
        row = None if event is None else self.rows.get(event.at.offset)
        if event is None:
            title = "the time passes"
        else:
            kind = f"{event.type.rpartition('.')[2]}: " if event.type else ""
            title = printable(f"{kind}{values_text(self.sent[event.at.offset].values)}")
        state = "" if moment.state is None else _WORDS[moment.state]
        _, *lines = moment_lines(moment, account.partials)
        said = tuple(printable(line.removeprefix("    ")) for line in lines)
        at = relative(time, self.start)
        return KeyMoment(time, at, account.key, row, state, title, said, tokens, moment.matches)


@dataclass
class _MomentWalk:
    """The partial matches of an account, moment by moment: the events and the places of each."""

    account: Account
    drawn: Drawing
    held: dict[int, dict[str, int]] = field(default_factory=dict)
    places: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def behind(self, moment: Moment) -> Iterator[DrawnPartial]:
        """The tokens behind a moment: those that are alive, and those that it has ended."""
        moved = self._take(moment)
        ended = [number for number in self.held if number not in moment.standing]
        for number, places in moment.standing.items():
            self.places[number] = places
        for number in sorted(self.held):
            yield self._token(moment, number, number in moved)
        for number in ended:
            del self.held[number]
            self.places.pop(number, None)

    def _take(self, moment: Moment) -> set[int]:
        """Note the events that partial matches have taken; returns those that have taken one."""
        moved = set()
        for turn in moment.turns:
            before = dict(turn.held)
            if turn.partial not in self.held:
                self.held[turn.partial] = before
            for step, number in turn.took:
                self.held[number] = _with(before, step)
                moved.add(number)
        for step, number in moment.started:
            known = self.account.partials.get(number)
            steps = {name: len(taken) for name, taken in known.steps.items()} if known else {}
            # A match that was found at once has taken more than the first step.
            complete = number not in moment.standing and bool(steps)
            self.held[number] = steps if complete else {step: 1}
            moved.add(number)
        return moved

    def _token(self, moment: Moment, number: int, moved: bool) -> DrawnPartial:
        known = self.account.partials.get(number)
        parent = None if known is None else known.parent
        held = _counted(self.held[number])
        if number in moment.standing:
            kind = {state.number: state.kind for state in self.drawn.states}
            places = moment.standing[number]
            back = all(kind[place] is StateKind.FINAL for place in places)
            fate = Fate.HELD_BACK if back else Fate.ALIVE
            return DrawnPartial(number, places, fate, moved, parent, held)
        ending = None if known is None else known.ending
        places = self.places.get(number) or self.places.get(parent or 0) or self._start
        fate = _fate(ending)
        if fate is Fate.MATCHED and known is not None:
            # In SQL the row that completes a match is told with the match.
            moved = moved or moment.event is not None
            held = _counted({step: len(taken) for step, taken in known.steps.items()})
            places = self._of(StateKind.FINAL) or places
        elif ending is not None and ending.reason is EndReason.NOT:
            places = self._of(StateKind.STOP)[:1] or places
        said = "" if ending is None else ending_text(ending)
        return DrawnPartial(number, places, fate, moved, parent, held, said)

    @property
    def _start(self) -> tuple[int, ...]:
        return self._of(StateKind.START)

    def _of(self, kind: StateKind) -> tuple[int, ...]:
        return tuple(state.number for state in self.drawn.states if state.kind is kind)


def _counted(held: Mapping[str, int]) -> str:
    return ", ".join(step if count == 1 else f"{step} ×{count}" for step, count in held.items())


def _fate(ending: PartialEnding | None) -> Fate:
    if ending is None:
        return Fate.ENDED
    if ending.reason is EndReason.MATCH and ending.result is not None:
        return Fate.MATCHED
    return Fate.TIMED_OUT if ending.reason in _OUT_OF_TIME else Fate.ENDED


def _with(held: Mapping[str, int], step: str) -> dict[str, int]:
    return {**held, step: held.get(step, 0) + 1}
