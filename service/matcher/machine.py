"""Runs one plan over one key's events: the reference machine.

``Machine`` is immutable; the caller owns the :class:`RuleState`. Time is an argument. The contract
is Flink's NFA (``org.apache.flink.cep.nfa.NFA``): events come in order, time is moved to an
event's time before the event is applied, and a match may start at every event. It differs on
purpose: identical partial matches are kept once, and deadlines are applied in their own order
however far time jumps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from service.compiler.plan import Kind, Plan
from service.compiler.rule_set import Slot
from service.matcher.look_back import LookBacks
from service.matcher.partial import FOREVER, Finished, Partial, RuleState, Taken, order
from service.matcher.skip import release
from service.matcher.transitions import Outcome, Transitions
from service.model import Event
from service.pattern.tree import Limits, OnLimit


class Expired(NamedTuple):
    """A partial match that ran out of time."""

    first: Event
    last: Taken
    deadline: int
    matched: bool


class Failure(NamedTuple):
    """A condition, measure or skip strategy that could not be evaluated at ``event``."""

    reason: str
    step: str | None
    event: Event
    detail: str


@dataclass(slots=True)
class Found:
    """What one call found; the caller empties it."""

    matches: list[Finished] = field(default_factory=list)
    timeouts: list[Expired] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    started: int = 0
    dropped: int = 0


class Machine:
    """One compiled rule, ready to be applied to the states of many keys."""

    def __init__(self, plan: Plan, slots: tuple[Slot, ...]) -> None:
        self.plan = plan
        self.look_backs = LookBacks(plan, slots)
        self._transitions = Transitions(plan)
        self._gaps = tuple(state.gap_ms for state in plan.states)
        self._pending = tuple(state.kind is Kind.PENDING for state in plan.states)
        self._window = plan.window_ms
        self._cooldown = plan.rule.cooldown_ms
        self._limits: Limits = plan.rule.limits
        self._effective_from = plan.rule.effective_from_ms

    def apply(self, state: RuleState, event: Event, bits: int, found: Found) -> None:
        """Apply one event whose event atoms are true as ``bits`` says."""
        if event.time >= state.deadline:
            self.advance(state, event.time, found)
        if state.paused or (self._effective_from is not None and event.time < self._effective_from):
            return
        outcome_of = self._transitions.outcome
        looks_back = self._transitions.looks_back
        kept: list[Partial] = []
        changed = False
        for partial in state.partials:
            true = self._ask(partial, event, bits, found) if looks_back else bits
            outcome = outcome_of(partial.state, true)
            if outcome.unchanged:
                kept.append(partial)
            else:
                changed = True
                self._follow(partial, outcome, event, state, kept)
        opened = self._open(state, event, bits, kept, found)
        if changed or opened:
            state.partials = _distinct(kept)
            if self._limits_exceeded(state):
                self._enforce_limits(state, event, found)
            state.deadline = min((p.deadline for p in state.partials), default=FOREVER)
            self._release(state, found)

    def advance(self, state: RuleState, time: int, found: Found) -> None:
        """Move time to ``time``: what has its deadline at or before it is decided."""
        while state.deadline <= time:
            deadline = state.deadline
            due = [p for p in state.partials if p.deadline <= deadline]
            state.partials = [p for p in state.partials if p.deadline > deadline]
            state.deadline = min((p.deadline for p in state.partials), default=FOREVER)
            expired: dict[tuple[tuple[int, int], ...], Expired] = {}
            for partial in due:
                if self._pending[partial.state]:
                    state.finished.append(Finished(partial.first, partial.last, deadline))
                    continue
                path = tuple((t.step, id(t.event)) for t in partial.last.chain())
                before = expired.get(path)
                matched = partial.matched or (before is not None and before.matched)
                expired[path] = Expired(partial.first, partial.last, deadline, matched)
            found.timeouts.extend(expired.values())
            self._release(state, found)
        if state.quiet_until is not None and state.quiet_until <= time and not state.partials:
            state.quiet_until = None

    # One partial match, one event.

    def _follow(
        self,
        partial: Partial,
        outcome: Outcome,
        event: Event,
        state: RuleState,
        kept: list[Partial],
    ) -> None:
        first = partial.first
        if outcome.passes_to_match:
            state.finished.append(Finished(first, partial.last, event.time))
        for step, target, completes in outcome.takes:
            last = Taken(partial.last, step, event)
            if completes:
                state.finished.append(Finished(first, last, event.time))
            if not outcome.stops:
                self._stand(target, first, last, partial.matched or completes, kept)
        if not outcome.stops:
            for target in outcome.passes:
                deadline = self._deadline(target, first, partial.last)
                kept.append(Partial(target, first, partial.last, deadline, partial.matched))

    def _open(
        self, state: RuleState, event: Event, bits: int, kept: list[Partial], found: Found
    ) -> bool:
        """Let a match start at ``event``; says whether anything came of it."""
        true = bits
        if self._transitions.looks_back:
            true = self._ask(None, event, bits, found)
        outcome = self._transitions.outcome(self.plan.start, true)
        if not outcome.takes:
            return False
        for step, target, completes in outcome.takes:
            last = Taken(None, step, event)
            if completes:
                state.finished.append(Finished(event, last, event.time))
            if not outcome.stops:
                self._stand(target, event, last, completes, kept)
        found.started += 1
        state.taken_since_count += 1
        return True

    def _stand(
        self, target: int, first: Event, last: Taken, matched: bool, kept: list[Partial]
    ) -> None:
        if self.plan.states[target].kind is not Kind.FINAL:
            deadline = self._deadline(target, first, last)
            kept.append(Partial(target, first, last, deadline, matched))

    def _deadline(self, target: int, first: Event, last: Taken) -> int:
        deadline = FOREVER if self._window is None else first.time + self._window
        gap = self._gaps[target]
        return deadline if gap is None else min(deadline, last.event.time + gap)

    def _ask(self, partial: Partial | None, event: Event, bits: int, found: Found) -> int:
        """``bits`` with those look-back atoms added that matter here and are true."""
        state = self.plan.start if partial is None else partial.state
        asked = self._transitions.questions(state, bits)
        if not asked:
            return bits
        last = None if partial is None else partial.last
        for bit, atom, test in self.look_backs.tests:
            if asked & bit:
                try:
                    if test(last, event):
                        bits |= bit
                except Exception as error:  # noqa: BLE001  a rule's fault must not stop the job
                    found.failures.append(
                        Failure("condition_failed", atom.step, event, f"{atom}: {error!r}")
                    )
        return bits

    # Skip strategy, cooldown, limits.

    def _release(self, state: RuleState, found: Found) -> None:
        if not state.finished:
            return

        def missed(match: Finished) -> None:
            skip = self.plan.after_match
            detail = f"{skip.strategy.value} {skip.step}: the match has no such event to skip to"
            found.failures.append(Failure("skip_failed", skip.step, match.last.event, detail))

        before = len(state.partials)
        released = release(self.plan, state, missed)
        if len(state.partials) != before:
            state.deadline = min((p.deadline for p in state.partials), default=FOREVER)
        seen: set[tuple[tuple[int, int], ...]] = set()
        for match in released:
            path = tuple((t.step, id(t.event)) for t in match.last.chain())
            if path in seen:
                continue
            seen.add(path)
            if self._cooldown is not None:
                if state.quiet_until is not None and match.time < state.quiet_until:
                    continue
                state.quiet_until = match.time + self._cooldown
            found.matches.append(match)

    def _limits_exceeded(self, state: RuleState) -> bool:
        if len(state.partials) > self._limits.partial_matches:
            return True
        state.taken_since_count += 1
        if state.taken_since_count <= self._limits.events:
            return False
        held = held_events(state)
        state.taken_since_count = held
        return held > self._limits.events

    def _enforce_limits(self, state: RuleState, event: Event, found: Found) -> None:
        limits = self._limits
        before = len(state.partials)
        if limits.on_limit is OnLimit.PAUSE_RULE:
            state.partials, state.finished, state.paused = [], [], True
        elif limits.on_limit is OnLimit.REJECT_NEW:
            state.partials = [p for p in state.partials if p.last.event is not event]
            if len(state.partials) > limits.partial_matches:
                del state.partials[limits.partial_matches :]
        else:
            state.partials.sort(key=lambda partial: order(partial.first))
            del state.partials[: max(0, before - limits.partial_matches)]
            while state.partials and held_events(state) > limits.events:
                oldest = order(state.partials[0].first)
                state.partials = [p for p in state.partials if order(p.first) > oldest]
        dropped = before - len(state.partials)
        found.dropped += dropped
        detail = (
            f"more than {limits.partial_matches} partial matches or {limits.events} events"
            f" for one key: {limits.on_limit.value} dropped {dropped} partial matches"
        )
        found.failures.append(Failure("limit_reached", None, event, detail))


def held_events(state: RuleState) -> int:
    """How many distinct events the partial and finished matches hold."""
    seen: set[int] = set()
    events: set[int] = set()
    for last in _ends(state):
        for taken in last.chain():
            if id(taken) in seen:
                break
            seen.add(id(taken))
            events.add(id(taken.event))
    return len(events)


def _ends(state: RuleState) -> Iterable[Taken]:
    for partial in state.partials:
        yield partial.last
    for finished in state.finished:
        yield finished.last


def _distinct(partials: list[Partial]) -> list[Partial]:
    """Partial matches without repetitions.

    Two that stand in the same state on the same last taken event object share their whole past,
    so whatever comes happens to both alike; merging them by less than that would be wrong, since
    look-back conditions read the past.
    """
    if len(partials) < 2:  # noqa: PLR2004
        return partials
    distinct: dict[tuple[int, int], Partial] = {}
    for partial in partials:
        key = (partial.state, id(partial.last))
        before = distinct.get(key)
        if before is None or (partial.matched and not before.matched):
            distinct[key] = partial
    return list(distinct.values())
