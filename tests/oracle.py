"""A naive oracle: the matches and timeouts of one rule over the events of one key.

Written from the definitions, not from the machine. A pattern is written out as *lines*: each line
has one slot per event, quantifiers unrolled and optional steps taken or left out. The events of a
line are placed by trying every position in turn; whether a slot may wait over an event is decided
by looking at that event. A sequence of events that some slot can still follow is a partial match;
it times out when the last slot that waits for it has run out of time.

What has no definition beyond Flink's own construction is refused by name: see :func:`uncovered`.
Exponential in everything; for a handful of events. Imports nothing of compiler and matcher.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

from service.pattern.expressions import ALL_STEPS, Expression, aggregate, bind
from service.pattern.tree import Contiguity, Loop, Rule, Skip, Step, walk

NEVER = 1 << 60
_BETWEEN = {
    Loop.RELAXED: Contiguity.FOLLOWED_BY,
    Loop.CONSECUTIVE: Contiguity.NEXT,
    Loop.COMBINATIONS: Contiguity.FOLLOWED_BY_ANY,
}


class Seen(NamedTuple):
    """One event: its time, its columns and its record type."""

    time: int
    values: Mapping[str, Any]
    type: str | None = None


#: The events taken: step names and positions in the list of events.
Path = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """``matches``: path → time. ``timeouts``: (path, deadline) → whether it had matched."""

    matches: Mapping[Path, int]
    timeouts: Mapping[tuple[Path, int], bool]


class UndefinedError(Exception):
    """No definition says what the answer is; the message names the reason."""


def uncovered(rule: Rule) -> str | None:
    """Why the oracle does not speak about ``rule``; ``None`` when it does."""
    if rule.cooldown_ms is not None or rule.effective_from_ms is not None:
        return "cooldown and effective_from are no part of a pattern"
    return _uncovered_scope(rule.pattern, outermost=True)


def _uncovered_scope(scope: tuple[Step, ...], *, outermost: bool) -> str | None:
    for position, step in enumerate(scope):
        following = scope[position + 1] if position + 1 < len(scope) else None
        last = following is None and outermost
        varies = step.times is not None and step.times.minimum != step.times.maximum
        if step.greedy and varies and not last:
            if step.until is not None or step.gap_ms is not None:
                return "greedy with until or gap"
            if following is None:
                return "greedy inside a group"
            if following.optional or following.after is Contiguity.NOT_NEXT:
                return "greedy before what may be left out or not_next"
            if following.group is not None and following.group[0].optional:
                return "greedy before what may be left out or not_next"
        if step.after is Contiguity.NOT_NEXT and following is not None:
            if all(later.optional for later in scope[position + 1 :]):
                return "not_next before nothing but optional steps"
        if following is not None and following.negative:
            if step.negative:
                return "several NOT steps in a row"
            if step.group is not None:
                return "NOT after a group"
            if varies and step.times is not None and step.times.maximum is not None:
                return "NOT after a loop with an upper bound"
        if step.group is not None:
            if varies and not last:
                return "leaving a repeating group"
            if step.group[0].group is not None:
                return "a group at the head of a group"
            if all(member.optional or member.negative for member in step.group):
                return "a group without a step that is always there"
            inner = _uncovered_scope(step.group, outermost=last and step.times is None)
            if inner is not None:
                return inner
    return None


# Writing a pattern out.


@dataclass(frozen=True, slots=True)
class _Guards:
    """What must not come before the next event is taken. ``never``: NOT followed by. ``first``:
    not next. ``greedy``: loops that would have taken more."""

    never: tuple[Step, ...] = ()
    first: tuple[Step, ...] = ()
    greedy: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class _Slot:
    """One event of a line. ``not_taken``: true of no event taken here. ``not_since``: true of no
    event since the one before."""

    step: Step
    contiguity: Contiguity
    guards: _Guards
    gap_ms: int | None = None
    not_taken: tuple[Expression, ...] = ()
    not_since: tuple[Expression, ...] = ()


_Line = tuple[tuple[_Slot, ...], _Guards]


def _lines(
    scope: tuple[Step, ...],
    first: Contiguity,
    before: _Guards,
    group: Step | None,
    most: int,
    position: int = 0,
) -> Iterator[_Line]:
    """Every way to write ``scope`` out, with loops of at most ``most`` rounds where that is
    allowed, and what is still guarded behind it."""
    if position == len(scope):
        yield (), before
        return
    step = scope[position]
    if step.negative:
        if step.after is Contiguity.NOT_NEXT:
            before = replace(before, first=(*before.first, step))
        else:
            before = replace(before, never=(*before.never, step))
        yield from _lines(scope, first, before, group, most, position + 1)
        return
    behind = scope[position + 1] if position + 1 < len(scope) else None
    contiguity = step.after if position and step.after else first
    varies = step.times is not None and step.times.minimum != step.times.maximum
    greedy = (step,) if step.greedy and varies else ()
    choices: list[_Line] = []
    if step.optional:
        # A NOT that only optional steps follow says nothing where they are left out.
        nots = before if any(not s.optional for s in scope[position:]) else _Guards()
        choices.append(((), replace(nots, greedy=before.greedy + greedy)))
    head = group if position == 0 else None
    for count in _counts(step, most):
        for slots, after in _rounds(step, count, 1, contiguity, before, behind, group, head, most):
            choices.append((slots, replace(after, greedy=after.greedy + greedy)))
    for slots, guards in choices:
        for rest, end in _lines(scope, first, guards, group, most - len(slots), position + 1):
            yield slots + rest, end


def _counts(step: Step, most: int) -> range:
    if step.times is None:
        return range(1, 2)
    most = max(step.times.minimum, min(most, step.times.maximum or most))
    return range(step.times.minimum, most + 1)


def _rounds(
    step: Step,
    count: int,
    number: int,
    contiguity: Contiguity,
    before: _Guards,
    behind: Step | None,
    group: Step | None,
    head: Step | None,
    most: int,
) -> Iterator[_Line]:
    """Round ``number`` of ``count`` of one step or group, and those after it."""
    if number > count:
        yield (), before
        return
    if step.group is None:
        ends = () if step.until is None else (step.until,)
        around = () if group is None or group.until is None else (group.until,)
        again = number > 1
        slot = _Slot(
            step,
            contiguity,
            before,
            gap_ms=step.gap_ms if again else None,
            not_taken=() if again else ends,
            not_since=around + ends if again else around,
        )
        rounds: list[_Line] = [((slot,), _Guards())]
    else:
        rounds = list(_lines(step.group, contiguity, before, step, most))
    loop = head.loop if head is not None and step.group is None else step.loop
    minimum = step.times.minimum if step.times else 1
    for slots, guards in rounds:
        here = guards
        if number < count and behind is not None and behind.negative:
            # A NOT behind a loop holds from the round on after which the loop may end; NOT
            # followed by even between the rounds before.
            if behind.after is Contiguity.NOT_FOLLOWED_BY:
                here = replace(here, never=(behind,))
            elif number >= minimum:
                here = replace(here, first=(behind,))
        rest = _rounds(
            step, count, number + 1, _BETWEEN[loop], here, behind, group, head, most - len(slots)
        )
        for more, end in rest:
            yield slots + more, end


# Placing events.


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

    def explore(self) -> None:
        """Find every path of every line."""
        nothing = _Guards()
        most = len(self.events) + 1
        lines = _lines(self.rule.pattern, Contiguity.NEXT, nothing, None, most)
        for line, end in lines:
            if line:
                slot = line[0]
                for position in range(len(self.events)):
                    if self._takes(slot, (), position):
                        self._go(line, end, 1, ((slot.step.name, position),))

    def _go(self, line: tuple[_Slot, ...], end: _Guards, taken: int, path: Path) -> None:
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

    def _end(self, end: _Guards, path: Path) -> None:
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

    def _wait(self, slot: _Slot, path: Path) -> Iterator[tuple[int, bool]]:
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

    def _takes(self, slot: _Slot, path: Path, position: int) -> bool:
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
        matched = set(self.matches)
        timeouts = {}
        for path, waits in self.waits.items():
            for wait in waits:
                if wait.died is None and not wait.absence and wait.deadline < NEVER:
                    others = (other for other in waits if other.deadline > wait.deadline)
                    if not any(self._alive(other, wait.deadline) for other in others):
                        prefixes = (path[:length] for length in range(1, len(path) + 1))
                        timeouts[path, wait.deadline] = any(p in matched for p in prefixes)
        return Answer({path: time for path, (time, _) in self.matches.items()}, timeouts)

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
        for (path, deadline), matched in answer.timeouts.items():
            if number == 0 and deadline == time and path[0][1] >= cut:
                timeouts[path, deadline] = matched
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


def steps_of(rule: Rule) -> list[str]:
    """The names of the steps that take events."""
    return [s.name for s in walk(rule.pattern) if s.group is None and not s.negative]
