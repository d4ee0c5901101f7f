"""A pattern written out, for the oracle: one slot per event, quantifiers unrolled.

A *line* is one way through the pattern: each loop with a number of rounds, each optional step taken
or left out, and each slot with what must not come before it is taken. Patterns that have no such
reading, because only Flink's own construction says what they do, are refused by name: see
:func:`uncovered`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from spark_cep.pattern.expressions import Expression
from spark_cep.pattern.tree import Contiguity, Loop, Rule, Step

_BETWEEN = {
    Loop.RELAXED: Contiguity.FOLLOWED_BY,
    Loop.CONSECUTIVE: Contiguity.NEXT,
    Loop.COMBINATIONS: Contiguity.FOLLOWED_BY_ANY,
}


def uncovered(rule: Rule) -> str | None:
    """Why the oracle does not speak about ``rule``; ``None`` when it does."""
    if rule.cooldown_ms is not None or rule.effective_from_ms is not None:
        return "cooldown and effective_from are no part of a pattern"
    return _uncovered_scope(rule.pattern, outermost=True)


def _uncovered_scope(scope: tuple[Step, ...], *, outermost: bool) -> str | None:
    for position, step in enumerate(scope):
        behind = scope[position + 1 :]
        last = outermost and not behind
        reason = _greedy(step, behind, last=last) or _not(step, behind)
        if reason is None and step.group is not None:
            reason = _group(step, step.group, last=last)
        if reason is not None:
            return reason
    return None


def varies(step: Step) -> bool:
    """Whether the step or group may repeat more or less often."""
    return step.times is not None and step.times.minimum != step.times.maximum


def _greedy(step: Step, behind: tuple[Step, ...], *, last: bool) -> str | None:
    if not step.greedy or not varies(step) or last:
        return None
    if step.until is not None or step.gap_ms is not None:
        return "greedy with until or gap"
    if not behind:
        return "greedy inside a group"
    following = behind[0]
    optional = following.optional or (following.group is not None and following.group[0].optional)
    if optional or following.after is Contiguity.NOT_NEXT:
        return "greedy before what may be left out or not_next"
    return None


def _not(step: Step, behind: tuple[Step, ...]) -> str | None:
    if step.after is Contiguity.NOT_NEXT and behind and all(later.optional for later in behind):
        return "not_next before nothing but optional steps"
    if not behind or not behind[0].negative:
        return None
    if step.negative:
        return "several NOT steps in a row"
    if step.group is not None:
        return "NOT after a group"
    if varies(step) and step.times is not None and step.times.maximum is not None:
        return "NOT after a loop with an upper bound"
    return None


def _group(step: Step, members: tuple[Step, ...], *, last: bool) -> str | None:
    if varies(step) and not last:
        return "leaving a repeating group"
    if members[0].group is not None:
        return "a group at the head of a group"
    if all(member.optional or member.negative for member in members):
        return "a group without a step that is always there"
    return _uncovered_scope(members, outermost=last and step.times is None)


@dataclass(frozen=True, slots=True)
class Guards:
    """What must not come before the next event is taken. ``never``: NOT followed by. ``first``:
    not next. ``greedy``: loops that would have taken more."""

    never: tuple[Step, ...] = ()
    first: tuple[Step, ...] = ()
    greedy: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Slot:
    """One event of a line. ``not_taken``: true of no event taken here. ``not_since``: true of no
    event since the one before."""

    step: Step
    contiguity: Contiguity
    guards: Guards
    gap_ms: int | None = None
    not_taken: tuple[Expression, ...] = ()
    not_since: tuple[Expression, ...] = ()


Line = tuple[tuple[Slot, ...], Guards]


@lru_cache(maxsize=16)
def written_out(pattern: tuple[Step, ...], most: int) -> tuple[Line, ...]:
    """Every line of ``pattern``, with loops of at most ``most`` rounds where that is allowed, and
    what is still guarded behind it."""
    return tuple(_lines(pattern, Contiguity.NEXT, Guards(), None, most))


def _lines(
    scope: tuple[Step, ...],
    first: Contiguity,
    before: Guards,
    group: Step | None,
    most: int,
    position: int = 0,
) -> Iterator[Line]:
    """Every way to write out what of ``scope`` begins at ``position``, behind ``before``."""
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
    greedy = (step,) if step.greedy and varies(step) else ()
    choices: list[Line] = []
    if step.optional:
        # A NOT that only optional steps follow says nothing where they are left out.
        nots = before if any(not s.optional for s in scope[position:]) else Guards()
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
    before: Guards,
    behind: Step | None,
    group: Step | None,
    head: Step | None,
    most: int,
) -> Iterator[Line]:
    """Round ``number`` of ``count`` of one step or group, and those after it."""
    if number > count:
        yield (), before
        return
    if step.group is None:
        ends = () if step.until is None else (step.until,)
        around = () if group is None or group.until is None else (group.until,)
        again = number > 1
        slot = Slot(
            step,
            contiguity,
            before,
            gap_ms=step.gap_ms if again else None,
            not_taken=() if again else ends,
            not_since=around + ends if again else around,
        )
        rounds: list[Line] = [((slot,), Guards())]
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
