"""A naive oracle: the matches and timeouts of one rule over the events of one key.

Written from the definitions, not from the machine. A pattern is written out as *lines*: each line
has one slot per event, quantifiers unrolled and optional steps taken or left out. The events of a
line are placed by trying every position in turn; whether a slot may wait over an event is decided
by looking at that event. A sequence of events that some slot can still follow is a partial match;
it times out when the last slot that waits for it has run out of time.

What has no definition beyond Flink's own construction is refused by name: see
:func:`tests.oracle_lines.uncovered`. Exponential in everything; for a handful of events. Nothing
of compiler and matcher is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from spark_cep.pattern.expressions import ALL_STEPS, Expression, aggregate, bind
from spark_cep.pattern.tree import Contiguity, Rule, Skip, Step
from tests.oracle_lines import Guards, Slot, uncovered, written_out

NEVER = 1 << 60


class Seen(NamedTuple):
    """One event: its time, its columns and its record type."""

    time: int
    values: Mapping[str, Any]
    type: str | None = None


#: The events taken: step names and positions in the list of events.
Path = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """``matches``: path → time. ``timeouts``: (path, deadline) → whether a match found by then
    begins with the path, or the path with that match."""

    matches: Mapping[Path, int]
    timeouts: Mapping[tuple[Path, int], bool]


class UndefinedError(Exception):
    """No definition says what the answer is; the message names the reason."""


class _Wait(NamedTuple):
    """A slot that waits behind a path: which event ended the wait, and when it runs out.

    ``absence``: nothing more is needed than that nothing comes.
    """

    died: int | None
    deadline: int
    absence: bool


@dataclass
class _Search:
    rule: Rule
    events: Sequence[Seen]
    matches: dict[Path, tuple[int, int | None]] = field(default_factory=dict)
    waits: dict[Path, set[_Wait]] = field(default_factory=dict)
    known: dict[tuple[int, int], bool] = field(default_factory=dict)

    def explore(self) -> None:
        """Find every path of every line."""
        for line, end in written_out(self.rule.pattern, len(self.events) + 1):
            if line:
                slot = line[0]
                for position in range(len(self.events)):
                    if self._takes(slot, (), position):
                        self._go(line, end, 1, ((slot.step.name, position),))

    def _go(self, line: tuple[Slot, ...], end: Guards, taken: int, path: Path) -> None:
        if taken == len(line):
            self._end(end, path)
            return
        slot = line[taken]
        for position, stopped in self._wait(slot, path):
            longer = (*path, (slot.step.name, position))
            if not stopped:
                self._go(line, end, taken + 1, longer)
            elif taken + 1 == len(line) and end.never == end.first == ():
                self._matched(longer, position)

    def _end(self, end: Guards, path: Path) -> None:
        last = path[-1][1]
        if end.first:
            deadline = self._deadline(path)
            decides = last + 1
            if decides < len(self.events) and self.events[decides].time < deadline:
                self._waits(path, _Wait(decides, deadline, absence=False))
                if not any(self._is(step, path, decides) for step in end.first):
                    self._matched(path, decides)
            else:
                self._waits(path, _Wait(None, deadline, absence=False))
        elif end.never:
            deadline = self._deadline(path)
            died = next(
                (
                    position
                    for position in self._within(last, deadline)
                    if any(self._is(step, path, position) for step in end.never + end.greedy)
                ),
                None,
            )
            self._waits(path, _Wait(died, deadline, absence=True))
            if died is None:
                self.matches.setdefault(path, (deadline, None))
        else:
            self._matched(path, last)

    def _wait(self, slot: Slot, path: Path) -> Iterator[tuple[int, bool]]:
        """The positions at which ``slot`` can be taken behind ``path``, and whether a NOT followed
        by was violated there: such an event can still complete a match, but no more."""
        last = path[-1][1]
        deadline = self._deadline(path)
        if slot.gap_ms is not None:
            deadline = min(deadline, self.events[last].time + slot.gap_ms)
        guards = slot.guards
        found = []
        died = None
        for position in self._within(last, deadline):
            stopped = any(self._is(step, path, position) for step in guards.never)
            ruled_out = guards.greedy + (guards.first if position == last + 1 else ())
            ended = any(self._is(step, path, position) for step in ruled_out)
            ended = ended or any(self._holds(until, path, position) for until in slot.not_since)
            if not ended and self._takes(slot, path, position):
                found.append((position, stopped))
            relaxed = slot.contiguity is Contiguity.FOLLOWED_BY
            passes = slot.contiguity is not Contiguity.NEXT and not ended and not stopped
            if not passes or (relaxed and self._is(slot.step, path, position)):
                died = position
                break
        self._waits(path, _Wait(died, deadline, absence=False))
        yield from found

    def _within(self, last: int, deadline: int) -> Iterator[int]:
        for position in range(last + 1, len(self.events)):
            if self.events[position].time >= deadline:
                return
            yield position

    def _deadline(self, path: Path) -> int:
        within = self.rule.within
        deadline = NEVER
        if within.max_ms is not None:
            deadline = self.events[path[0][1]].time + within.max_ms
        if within.gap_ms is not None:
            deadline = min(deadline, self.events[path[-1][1]].time + within.gap_ms)
        return deadline

    def _matched(self, path: Path, position: int) -> None:
        self.matches.setdefault(path, (self.events[position].time, position))

    def _waits(self, path: Path, wait: _Wait) -> None:
        self.waits.setdefault(path, set()).add(wait)

    def _takes(self, slot: Slot, path: Path, position: int) -> bool:
        not_here = slot.not_taken if path else slot.not_taken + slot.not_since
        greedy = () if path else slot.guards.greedy
        return (
            self._is(slot.step, path, position)
            and not any(self._holds(until, path, position) for until in not_here)
            and not any(self._is(step, path, position) for step in greedy)
        )

    def _is(self, step: Step, path: Path, position: int) -> bool:
        if step.of_type is not None and step.of_type != self.events[position].type:
            return False
        return step.where is None or self._holds(step.where, path, position)

    def _holds(self, condition: Expression, path: Path, position: int) -> bool:
        if not condition.is_event_only:
            return self._evaluate(condition, path, position)
        known = self.known.get((id(condition), position))
        if known is None:
            known = self._evaluate(condition, (), position)
            self.known[id(condition), position] = known
        return known

    def _evaluate(self, condition: Expression, path: Path, position: int) -> bool:
        looked = []
        for look_back in condition.look_backs:
            events = [
                self.events[taken].values
                for step, taken in path
                if look_back.step in (step, ALL_STEPS)
            ]
            argument = look_back.argument
            if argument is not None:
                events = [_value(argument, event, []) for event in events]
            looked.append(aggregate(look_back, events))
        return _value(condition, self.events[position].values, looked) is True

    def answer(self) -> Answer:
        """What was found, with nothing skipped."""
        timeouts = {}
        for path, waits in self.waits.items():
            for wait in waits:
                if wait.died is None and not wait.absence and wait.deadline < NEVER:
                    others = (other for other in waits if other.deadline > wait.deadline)
                    if not any(self._alive(other, wait.deadline) for other in others):
                        timeouts[path, wait.deadline] = self._had_matched(path, wait.deadline)
        return Answer({path: time for path, (time, _) in self.matches.items()}, timeouts)

    def _had_matched(self, path: Path, deadline: int) -> bool:
        # Of one time, deadlines come before events.
        found = (
            match
            for match, (time, position) in self.matches.items()
            if time < deadline or (time == deadline and position is None)
        )
        return any(all(a == b for a, b in zip(path, match, strict=False)) for match in found)

    def _alive(self, wait: _Wait, time: int) -> bool:
        return wait.died is None or self.events[wait.died].time >= time


@cache
def _evaluator(expression: Expression) -> tuple[Any, tuple[str, ...]]:
    columns = sorted(expression.columns)
    numbers = {look_back: number for number, look_back in enumerate(expression.look_backs)}
    value = bind(expression, {path: number for number, path in enumerate(columns)}, numbers)
    return value, tuple(path[0] for path in columns)


def _value(expression: Expression, event: Mapping[str, Any], looked: Sequence[Any]) -> Any:
    value, columns = _evaluator(expression)
    return value([event.get(column) for column in columns], looked)


# Skipping.


def _instants(search: _Search, answer: Answer) -> list[tuple[int, int]]:
    """Everything that happens, in order: events at 1 + position, deadlines, which come first, at
    0."""
    times = {(event.time, 1 + n) for n, event in enumerate(search.events)}
    times |= {(deadline, 0) for _, deadline in answer.timeouts}
    times |= {(time, 0) for time, position in search.matches.values() if position is None}
    return sorted(times)


def _skipped(search: _Search, answer: Answer) -> Answer:
    """What the skip strategy leaves: a match is released when no partial match has an earlier
    start, and drops what starts before its cut, partial or complete."""
    released: dict[Path, int] = {}
    timeouts: dict[tuple[Path, int], bool] = {}
    held: list[tuple[int, int, Path]] = []
    cut = -1
    for order, (time, number) in enumerate(_instants(search, answer)):
        due = answer.timeouts.items() if number == 0 else ()
        timeouts.update(one for one in due if one[0][1] == time and one[0][0][0][1] >= cut)
        for path, (when, position) in search.matches.items():
            if (when, 0 if position is None else 1 + position) == (time, number):
                held.append((path[0][1], order, path))
        held = sorted(entry for entry in held if entry[0] >= cut)
        while held:
            start, found, path = held[0]
            if any(cut <= earlier < start for earlier in _live(search, time, number)):
                break
            for rival in (other for other in held[1:] if other[:2] == (start, found)):
                if max(_cut(search.rule, path), _cut(search.rule, rival[2])) > start:
                    raise UndefinedError("which of two matches with one start and end is first")
            released[path] = answer.matches[path]
            cut = max(cut, _cut(search.rule, path))
            held = [entry for entry in held[1:] if entry[0] >= cut]
    return Answer(released, timeouts)


def _live(search: _Search, time: int, number: int) -> set[int]:
    """Starts of the partial matches that live once this instant is over."""
    last = number - 1 if number else sum(event.time < time for event in search.events) - 1
    return {
        path[0][1]
        for path, waits in search.waits.items()
        if path[-1][1] <= last
        and any(w.deadline > time and (w.died is None or w.died > last) for w in waits)
    }


def _cut(rule: Rule, path: Path) -> int:
    """The first position at which a start survives the release of ``path``."""
    after = rule.after_match
    if after.strategy is Skip.TO_NEXT:
        return path[0][1] + 1
    if after.strategy is Skip.PAST_LAST_EVENT:
        return path[-1][1] + 1
    positions = [position for step, position in path if step == after.step]
    if not positions:
        return -1
    return positions[0 if after.strategy is Skip.TO_FIRST else -1]


def answer_to(rule: Rule, events: Sequence[Seen]) -> Answer:
    """Matches and timeouts of ``rule`` once all ``events``, given in the order of application,
    and every deadline have passed."""
    reason = uncovered(rule)
    if reason is not None:
        raise UndefinedError(reason)
    search = _Search(rule, events)
    search.explore()
    answer = search.answer()
    if rule.after_match.strategy is Skip.NO_SKIP:
        return answer
    return _skipped(search, answer)
