"""Runs one plan over one key's events: the reference machine.

``Machine`` is immutable; the caller owns the :class:`RuleState`. Time is an argument. The contract
is Flink's NFA (``org.apache.flink.cep.nfa.NFA``): events come in order, time is moved to an
event's time before the event is applied, and a match may start at every event. It differs on
purpose: identical partial matches are kept once, a sequence of events times out once, with the last
of the partial matches that hold it, and deadlines are applied in their own order however far time
jumps.
"""

from __future__ import annotations

from spark_cep.compiler.plan import EventAtom, GapAtom, LookBackAtom, Plan, StateKind
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Slot
from spark_cep.matcher.findings.found import (
    Failure,
    limit_failure,
    match_limit_failure,
    skip_failure,
    work_limit_failure,
)
from spark_cep.matcher.findings.partial import (
    FOREVER,
    MATCHED,
    MATCHED_WITH_MORE,
    NOT_MATCHED,
    Finished,
    Partial,
    RuleState,
    Taken,
)
from spark_cep.matcher.steps.conditions import cost
from spark_cep.matcher.steps.look_back_programs import program
from spark_cep.matcher.steps.loops.kernel_tables import SPARE_PART
from spark_cep.matcher.steps.transitions import PASS, Outcome, Transitions
from spark_cep.model import Event
from spark_cep.pattern.tree import OnLimit
from spark_cep.pattern.work import HELD_EVENT
from tests.reference.found import Expired, Found
from tests.reference.limits import beyond, enforce, held_nodes, keep, pause
from tests.reference.look_back_tests import LookBackTests
from tests.reference.skip import release

#: The events that the current event was taken behind, by their last one and the step.
_Taking = dict[tuple[int, int], Taken]


class Machine:
    """One compiled rule, ready to be applied to the states of many keys."""

    def __init__(
        self, plan: Plan, slots: tuple[Slot, ...], types: RecordTypes | None = None
    ) -> None:
        self.plan = plan
        self.look_backs = LookBackTests(plan, slots, types or RecordTypes())
        self._transitions = Transitions(plan)
        self._gaps = tuple(state.gap_ms for state in plan.states)
        self._absence = tuple(state.absence for state in plan.states)
        self._live = tuple(
            state.kind in (StateKind.START, StateKind.NORMAL) for state in plan.states
        )
        self._taking = tuple(state.taking_gap_ms for state in plan.states)
        self._step_gaps = any(isinstance(atom, GapAtom) for atom in plan.atoms)
        self._window = plan.window_ms
        self._cooldown = plan.rule.cooldown_ms
        self._limits = plan.rule.limits
        self._effective_from = plan.rule.effective_from_ms
        numbers = {(slot.events, slot.of_type, slot.path): n for n, slot in enumerate(slots)}
        known = types or RecordTypes()
        self._costs = {
            number: cost(program(atom, plan, numbers, known))
            if isinstance(atom, LookBackAtom)
            else 1
            for number, atom in enumerate(plan.atoms)
            if not isinstance(atom, EventAtom)
        }

    def apply(self, state: RuleState, event: Event, bits: int, found: Found) -> int:
        """Apply one event whose event atoms are true as ``bits`` says. Returns how many partial
        matches it was tested against, with the one that might begin; 0 when it does not count."""
        if event.time >= state.deadline:
            self.advance(state, event.time, found)
        if state.paused or (self._effective_from is not None and event.time < self._effective_from):
            return 0
        overworked = self._limit_work(state, event, bits, found)
        if state.paused:
            return 0
        tested = len(state.partials) + 1
        outcome_of = self._transitions.outcome
        looks_back = self._transitions.looks_back
        kept: list[Partial] = []
        taking: _Taking = {}
        changed = False
        for partial in state.partials:
            true = self._ask(partial, event, bits, found) if looks_back else bits
            outcome = outcome_of(partial.state, true)
            if outcome.unchanged:
                kept.append(partial)
            else:
                changed = True
                self._follow(partial, outcome, event, state, kept, taking)
        true = self._ask(None, event, bits, found) if looks_back else bits
        opening = outcome_of(self.plan.start, true)
        if opening.takes:
            changed = True
            found.started += 1
            self._follow(None, opening, event, state, kept, taking)
        if changed:
            state.partials = _distinct(kept)
            state.events_at_most += 1
            self._settle(state, event, found)
            state.limited = state.limited or overworked
        return tested

    def _limit_work(self, state: RuleState, event: Event, bits: int, found: Found) -> bool:
        """Drop the partial matches that would cost more work than is allowed; returns whether
        there were such."""
        opening, most = self._cost(self.plan.start, bits), self._limits.work
        held = len(list(held_nodes((*state.finished, *state.partials)))) * HELD_EVENT
        work = opening + held + sum(self._cost(each.state, bits) for each in state.partials)
        if work <= most:
            return False
        if self._limits.on_limit is OnLimit.PAUSE_RULE:
            dropped = pause(state)
        else:
            newest_first = self._limits.on_limit is OnLimit.DROP_OLDEST
            ordered = state.partials[::-1] if newest_first else state.partials
            kept = [
                number
                for number in range(1, len(ordered) + 1)
                if opening
                + len(list(held_nodes((*state.finished, *ordered[:number])))) * HELD_EVENT
                + sum(self._cost(each.state, bits) for each in ordered[:number])
                <= most - held // SPARE_PART
            ]
            dropped = len(ordered) - len(kept)
            state.partials = ordered[: len(kept)]
            if newest_first:
                state.partials = state.partials[::-1]
        found.dropped += dropped
        if not state.limited:
            found.failures.append(work_limit_failure(self.plan, event, work, dropped))
        state.limited = True
        self._release(state, found)
        _refresh_deadline(state)
        return True

    def _cost(self, state: int, bits: int) -> int:
        """What the event costs a partial match."""
        asked = self._transitions.conditions(state, bits)
        return 1 + sum(cost for number, cost in self._costs.items() if asked >> number & 1)

    def advance(self, state: RuleState, time: int, found: Found) -> None:
        """Move time to ``time``: what has its deadline at or before it is decided."""
        while state.deadline <= time:
            deadline = state.deadline
            due = [p for p in state.partials if p.deadline <= deadline]
            state.partials = [p for p in state.partials if p.deadline > deadline]
            _refresh_deadline(state)
            for partial in due:
                if self._absence[partial.state]:
                    _finish(partial.first, partial.last, deadline, state)
            # Only a gap between repetitions gives the holders of one sequence several deadlines.
            held = {id(p.last) for p in state.partials} if self._step_gaps else ()
            expired: dict[int, Expired] = {}
            for partial in due:
                first, last = partial.first, partial.last
                gap = self._taking[partial.state]
                could_take = gap is None or deadline <= last.event.time + gap
                if self._live[partial.state] and could_take and id(last) not in held:
                    expired[id(last)] = Expired(first, last, deadline, last.had_matched)
            found.timeouts.extend(expired.values())
            self._release(state, found)
        if state.quiet_until is not None and state.quiet_until <= time and not state.finished:
            state.quiet_until = None

    # One partial match, one event.

    def _follow(
        self,
        partial: Partial | None,
        outcome: Outcome,
        event: Event,
        state: RuleState,
        kept: list[Partial],
        taking: _Taking,
    ) -> None:
        """What becomes of ``partial``; ``None`` is the match that may start at ``event``."""
        if partial is None:
            first, previous = event, None
        else:
            first, previous = partial.first, partial.last
        for step, target, completes in outcome.moves:
            last = previous
            if step != PASS:
                last = taking.get((id(previous), step))
                if last is None:
                    last = taking[id(previous), step] = Taken(previous, step, event)
            if last is None:
                continue
            if completes:
                _finish(first, last, event.time, state)
            if outcome.stops or self.plan.states[target].kind is StateKind.FINAL:
                continue
            deadline = self._deadline(target, first, last)
            # A branch that has not taken the event could only repeat, and its gap may be over.
            if step != PASS or deadline > event.time:
                kept.append(Partial(target, first, last, deadline))

    def _deadline(self, target: int, first: Event, last: Taken) -> int:
        deadline = FOREVER if self._window is None else first.time + self._window
        gap = self._gaps[target]
        return deadline if gap is None else min(deadline, last.event.time + gap)

    def _ask(self, partial: Partial | None, event: Event, bits: int, found: Found) -> int:
        """``bits`` with those look-back atoms added that matter here and are true."""
        state = self.plan.start if partial is None else partial.state
        asked = self._transitions.conditions(state, bits)
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

    def _settle(self, state: RuleState, event: Event, found: Found) -> None:
        limits, first = self._limits, len(found.matches)
        self._release(state, found)
        too_much = beyond(state, limits)
        if too_much:
            dropped = enforce(state, limits, lambda: self._release(state, found))
            found.dropped += dropped
            if not state.limited:
                found.failures.append(limit_failure(self.plan, event, dropped))
        completed = found.matches[first:]
        too_many = len(completed) > limits.matches
        if too_many:
            found.matches[first:] = kept = keep(completed, limits)
            dropped = len(completed) - len(kept)
            found.dropped_matches += dropped
            if limits.on_limit is OnLimit.PAUSE_RULE:
                found.dropped += pause(state)
            if not state.limited:
                found.failures.append(match_limit_failure(self.plan, event, dropped))
        state.limited = too_much or too_many
        _refresh_deadline(state)

    def _release(self, state: RuleState, found: Found) -> None:
        if not state.finished:
            return

        def missed(match: Finished) -> None:
            found.failures.append(skip_failure(self.plan, match.last.event))

        before = len(state.partials)
        held = before + len(state.finished)
        released = release(self.plan, state, missed)
        found.pruned += held - len(released) - len(state.partials) - len(state.finished)
        if len(state.partials) != before:
            _refresh_deadline(state)
        for match in released:
            if self._cooldown is not None:
                if state.quiet_until is not None and match.time < state.quiet_until:
                    continue
                state.quiet_until = match.time + self._cooldown
            found.matches.append(match)


def _finish(first: Event, last: Taken, time: int, state: RuleState) -> None:
    """Add a complete match, unless the same events have been one."""
    if last.matched == MATCHED:
        return
    for taken in last.chain():
        if taken.matched == NOT_MATCHED:
            taken.matched = MATCHED_WITH_MORE
    last.matched = MATCHED
    state.finished.append(Finished(first, last, time))


def _distinct(partials: list[Partial]) -> list[Partial]:
    """Partial matches without repetitions.

    Two that stand in the same state on the same last taken event object share their whole past,
    so whatever comes happens to both alike; merging them by less than that would be wrong, since
    look-back conditions read the past.
    """
    distinct: dict[tuple[int, int], Partial] = {}
    for partial in partials:
        distinct.setdefault((partial.state, id(partial.last)), partial)
    return list(distinct.values())


def _refresh_deadline(state: RuleState) -> None:
    """Set ``deadline`` to the earliest of the partial matches."""
    state.deadline = min((partial.deadline for partial in state.partials), default=FOREVER)
