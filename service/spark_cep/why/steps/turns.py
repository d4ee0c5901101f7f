"""The effect of one event on the partial matches of a rule of steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from spark_cep.compiler.formula import Formula
from spark_cep.compiler.plan import Action, Plan, StateKind
from spark_cep.durations import format_duration
from spark_cep.matcher.findings.partial import MATCHED, Partial, Taken
from spark_cep.matcher.steps.transitions import PASS, Outcome, Transitions
from spark_cep.why.account import EndReason, PartialEnding, Passed, SeenEvent, Turn
from spark_cep.why.ledger import Ledger
from spark_cep.why.probes import Chain, counted
from spark_cep.why.steps.conditions import EventTruths
from spark_cep.why.steps.endings import Losses
from spark_cep.why.steps.held import HeldByKey

_NOTHING: Chain = frozenset()


@dataclass
class StepTurns:
    """The turns of one event. ``closed``: the bit that lets no partial match begin; ``untils``: the
    formulas of steps that have one."""

    plan: Plan
    truths: EventTruths
    transitions: Transitions
    closed: int
    untils: Sequence[tuple[str, Formula]]
    before: HeldByKey
    after: HeldByKey
    losses: Losses
    ledger: Ledger
    _lost: dict[Chain, PartialEnding] = field(default_factory=dict)

    def all_turns(
        self, event: SeenEvent
    ) -> tuple[list[Turn], list[tuple[str, int]], tuple[Passed, ...]]:
        """The turns of all partial matches, those that began, and the first steps that did not take
        the event."""
        alive = sorted(self.before.alive, key=self.ledger.alive.__getitem__)
        self._look_for_losses(alive, event)
        turns = [self._turn(chain, event) for chain in alive]
        outcome = self._outcome(self.plan.start, _NOTHING)
        stopped = self._violated(self.plan.start, _NOTHING, None, event) if outcome.stops else None
        started = []
        for step in _steps(outcome):
            name = self.plan.steps[step]
            child = frozenset(((step, event.at),))
            number = self.ledger.begin(None, {name: (event,)})
            self._goes_on(child, number, stopped)
            started.append((name, number))
        took = frozenset(name for name, _ in started)
        passed = self.truths.passed((self.plan.start,), _NOTHING, None, took)
        return turns, started, passed

    def _outcome(self, state: int, chain: Chain) -> Outcome:
        return self.transitions.outcome(state, self.truths.atoms(chain) | self.closed)

    def _look_for_losses(self, alive: Iterable[Chain], event: SeenEvent) -> None:
        """Complete matches that were not emitted, in the order of their starts."""
        complete = {chain: None for chain in alive if chain in self.before.finished}
        for chain in (*alive, _NOTHING):
            held = self.before.partials.get(chain, ())
            places = [(each.state, each.last.matched) for each in held]
            for state, matched in places if chain else [(self.plan.start, 0)]:
                for move in self._outcome(state, chain).moves:
                    if move.completes and move.step != PASS:
                        complete[chain | {(move.step, event.at)}] = None
                    elif move.completes and matched != MATCHED:
                        complete[chain] = None
        complete.pop(_NOTHING, None)
        for chain in sorted(complete, key=self.losses.number):
            if chain not in self.after.finished and chain not in self.losses.matched:
                self._lost[chain] = self.losses.of_match(chain)

    def _turn(self, chain: Chain, event: SeenEvent) -> Turn:
        partials = self.before.partials.get(chain, [])
        number = self.ledger.alive[chain]
        outcomes = [self._outcome(each.state, chain) for each in partials]
        stopped = self._stopped(chain, partials, outcomes, event)
        stays = chain in self.after.alive
        took: list[tuple[str, int, Chain]] = []
        for step in dict.fromkeys(step for outcome in outcomes for step in _steps(outcome)):
            name = self.plan.steps[step]
            child = chain | {(step, event.at)}
            goes_on = number
            if stays or took:
                steps = self.ledger.steps_of(number)
                if took:
                    steps = self._steps_before(steps, event)
                goes_on = self.ledger.begin(number, steps)
            self.ledger.advance(goes_on, name, event)
            took.append((name, goes_on, child))
        ending = None
        if not stays:
            del self.ledger.alive[chain]
            if not took:
                ending = self._ending(chain, partials, outcomes, stopped, event)
                self.ledger.end(number, ending)
        for _, goes_on, child in took:
            self._goes_on(child, goes_on, stopped)
        names = frozenset(name for name, *_ in took)
        last = partials[0].last if partials else None
        states = [each.state for each in partials]
        passed = self.truths.passed(states, chain, last, names)
        pairs = tuple((name, goes_on) for name, goes_on, _ in took)
        return Turn(number, counted(self.plan, chain), pairs, passed, stays, ending)

    def _steps_before(
        self, steps: Mapping[str, Sequence[SeenEvent]], event: SeenEvent
    ) -> Mapping[str, Sequence[SeenEvent]]:
        """The steps without the event, which another branch has taken already."""
        without = {name: [e for e in taken if e.at != event.at] for name, taken in steps.items()}
        return {name: tuple(taken) for name, taken in without.items() if taken}

    def _goes_on(self, chain: Chain, number: int, stopped: PartialEnding | None) -> None:
        """A partial match that has taken the event: it is alive, or ended with that. ``stopped``:
        its end where the event violates a NOT step, too."""
        if chain in self.after.alive:
            self.ledger.alive[chain] = number
            return
        match_id = self.losses.matched.get(chain)
        if match_id is not None:
            at, time = self.losses.event, self.losses.time
            ending = PartialEnding(EndReason.MATCH, time, "complete", at, result=match_id)
        else:
            ending = self._lost.get(chain) or stopped or self.losses.of_partial(chain)
        self.ledger.end(number, ending)

    def _stopped(
        self, chain: Chain, partials: list[Partial], outcomes: list[Outcome], event: SeenEvent
    ) -> PartialEnding | None:
        for partial, outcome in zip(partials, outcomes, strict=True):
            if outcome.stops:
                return self._violated(partial.state, chain, partial.last, event)
        return None

    def _ending(
        self,
        chain: Chain,
        partials: list[Partial],
        outcomes: list[Outcome],
        stopped: PartialEnding | None,
        event: SeenEvent,
    ) -> PartialEnding:
        at, time = event.at, event.time
        match_id = self.losses.matched.get(chain)
        if match_id is not None:
            return PartialEnding(EndReason.MATCH, time, "complete", at, result=match_id)
        if chain in self._lost:
            return self._lost[chain]
        if stopped is not None:
            return stopped
        moves = [move for outcome in outcomes for move in outcome.moves]
        if moves and all(move.completes for move in moves):
            # What it took was a match before, and is none again.
            return PartialEnding(EndReason.MATCH, time, "it was a match already", at)
        if moves:
            return self._not_kept(chain, partials, outcomes, event)
        for name, formula in self.untils:
            true = self.truths.atoms(chain)
            if formula.evaluate(true) and any(
                self.transitions.outcome(each.state, true & ~formula.atoms()).moves
                for each in partials
            ):
                held = self.truths.holding(formula, partials[0].last)
                detail = f"the until of {name} is true"
                return PartialEnding(EndReason.UNTIL, time, detail, at, name, (held,))
        detail = "the event is for none of the steps that it waits for, and none may lie between"
        return PartialEnding(EndReason.CONTIGUITY, time, detail, at)

    def _not_kept(
        self, chain: Chain, partials: list[Partial], outcomes: list[Outcome], event: SeenEvent
    ) -> PartialEnding:
        """The end of a partial match that the event passes by."""
        last = max(each.last.event.time for each in partials)
        gaps = [self.plan.states[move.target].gap_ms for each in outcomes for move in each.moves]
        if all(gap is not None and last + gap <= event.time for gap in gaps):
            gap = format_duration(max(gap for gap in gaps if gap is not None))
            detail = f"no event was taken for {gap}"
            return PartialEnding(EndReason.GAP, event.time, detail, event.at)
        return self.losses.of_partial(chain)

    def _violated(
        self, start: int, chain: Chain, last: Taken | None, event: SeenEvent
    ) -> PartialEnding:
        """The NOT step whose event has come."""
        true = self.truths.atoms(chain)
        todo, seen = [start], {start}
        while todo:
            for edge in self.plan.states[todo.pop()].edges:
                target = self.plan.states[edge.target]
                if edge.action is not Action.PROCEED or not edge.condition.evaluate(true):
                    continue
                if target.kind is StateKind.STOP:
                    held = self.truths.holding(edge.condition, last)
                    detail = f"an event of the NOT step {target.step} came"
                    return PartialEnding(
                        EndReason.NOT, event.time, detail, event.at, target.step, (held,)
                    )
                if edge.target not in seen:
                    seen.add(edge.target)
                    todo.append(edge.target)
        raise AssertionError(f"state {start} does not stop")


def _steps(outcome: Outcome) -> list[int]:
    """The steps that take the event, by number."""
    return list(dict.fromkeys(move.step for move in outcome.moves if move.step != PASS))
