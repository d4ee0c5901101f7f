"""The account of a rule of steps: its events and deadlines, one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spark_cep.compiler.formula import Formula
from spark_cep.compiler.plan import Plan, StateKind
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.steps.conditions import AtomTable
from spark_cep.durations import format_duration
from spark_cep.matcher.batch.events import Names, slot_types
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import FOREVER, MATCHED, Partial, RuleState
from spark_cep.matcher.keys import KeysState
from spark_cep.matcher.steps.transitions import Transitions
from spark_cep.model import Event
from spark_cep.pattern.tree import walk
from spark_cep.why.account import EndReason, EventState, Moment, PartialEnding, SeenEvent, Turn
from spark_cep.why.ledger import DRAINS, Ledger
from spark_cep.why.probes import Chain, Probes, chain_of, counted
from spark_cep.why.steps.conditions import EventTruths, StepConditions
from spark_cep.why.steps.endings import Losses
from spark_cep.why.steps.held import HeldByKey
from spark_cep.why.steps.turns import StepTurns

_PAUSED = "a limit has paused the rule for this key (on_limit: pause_rule)"


class StepWatcher:
    """Writes the account of a rule of steps into a ledger."""

    def __init__(self, ledger: Ledger, types: RecordTypes) -> None:
        watched = ledger.watched
        assert isinstance(watched.plan, Plan)
        self.ledger, self.plan = ledger, watched.plan
        self._conditions = StepConditions(watched, types)
        self._probes = Probes(watched, types)
        self._transitions = Transitions(self.plan)
        self._slots = slot_types(watched.partitioning.slots, types)
        table = AtomTable(self.plan.rule, self.plan.atoms)
        self._untils: list[tuple[str, Formula]] = [
            (step.name, table.until(step))
            for step in walk(self.plan.rule.pattern)
            if step.until is not None
        ]
        self._final = tuple(
            state.number for state in self.plan.states if state.kind is StateKind.FINAL
        )
        self._held = HeldByKey(RuleState())
        self._event: Event | None = None
        self._truths: EventTruths | None = None

    def before(self, state: KeysState, one: InputBatch, names: Names) -> None:
        """See :class:`~spark_cep.why.watched.Watcher`."""
        self._held = HeldByKey.of(state, names, self._slots)
        self._event = self._truths = None
        if len(one):
            event = self._event = one.events.objects(names, self._slots)(0)
            probed = self._probes.true_of(state, one, names)
            self._truths = EventTruths(self._conditions, event, one.masks[one.mask[0]], probed)

    def after(self, state: KeysState, names: Names, time: int, outputs: Outputs) -> None:
        """See :class:`~spark_cep.why.watched.Watcher`."""
        after = HeldByKey.of(state, names, self._slots)
        matched = {chain_of(self.plan, each.steps): each.match_id for each in outputs.matches}
        self.ledger.found(outputs)
        seen = None if self._event is None else self.ledger.see(self._event)
        losses = Losses(
            self.plan, self._held.state, outputs, time, None if seen is None else seen.at,
            self.ledger.events, matched,
        )  # fmt: skip
        if seen is None:
            turns = self._at_deadline(after, losses)
            if turns or matched:
                moment = Moment(time, None, None, turns, matches=(*matched.values(),))
                self._add(moment, after)
        else:
            self._at_event(seen, after, losses)

    def _at_event(self, seen: SeenEvent, after: HeldByKey, losses: Losses) -> None:
        effective = self.plan.rule.effective_from_ms
        if effective is not None and seen.time < effective:
            self._add(Moment(seen.time, seen, EventState.TOO_EARLY), after)
            return
        if self._held.state.paused:
            self._add(Moment(seen.time, seen, EventState.PASSED, note=_PAUSED), after)
            return
        assert self._truths is not None
        part = self.ledger.watched.partitioning
        if self._truths.mask >> part.unseen(0) & 1:
            self._add(Moment(seen.time, seen, EventState.UNSEEN), after)
            return
        closed = (part.own_bits(0, self._truths.mask) or 0) & self.plan.closed
        step = StepTurns(
            self.plan, self._truths, self._transitions, closed, self._untils,
            self._held, after, losses, self.ledger,
        )  # fmt: skip
        turns, started, passed = step.all_turns(seen)
        tried = {
            (name, text): (name, text, true, values)
            for name, formula in self._conditions.ways(self.plan.start)
            for text, true, values in self._truths.tried(formula)
        }
        self.ledger.tried(tried.values())
        took = bool(started) or any(turn.took for turn in turns)
        state = EventState.TAKEN if took else EventState.PASSED
        matches = tuple(losses.matched.values())
        note = DRAINS if closed else ""
        moment = Moment(seen.time, seen, state, tuple(turns), tuple(started), passed, matches, note)
        self._add(moment, after)

    def _add(self, moment: Moment, after: HeldByKey) -> None:
        standing = {
            self.ledger.alive[chain]: tuple(dict.fromkeys(each.state for each in partials))
            for chain, partials in after.partials.items()
        }
        for chain in after.finished:
            standing.setdefault(self.ledger.alive[chain], self._final)
        self.ledger.add(replace(moment, standing=standing))

    def _at_deadline(self, after: HeldByKey, losses: Losses) -> tuple[Turn, ...]:
        plan, time = self.plan, losses.time
        timeouts = {chain_of(plan, each.steps): each.match_id for each in losses.outputs.timeouts}
        return tuple(
            self._ended(chain, self._ending(chain, losses, timeouts.get(chain), time))
            for chain in self._in_order(self._held.alive - after.alive)
        )

    def _ending(
        self, chain: Chain, losses: Losses, timeout: str | None, time: int
    ) -> PartialEnding:
        partials = self._held.partials.get(chain, [])
        due = max((each.deadline for each in partials), default=FOREVER)
        absent = any(
            self.plan.states[each.state].absence and each.last.matched != MATCHED
            for each in partials
        )
        if chain in losses.matched:
            detail = "complete: what must not come has not come" if due <= time else "complete"
            return PartialEnding(EndReason.MATCH, time, detail, result=losses.matched[chain])
        if timeout is not None:
            return self._out_of_time(partials[0], due, timeout)
        if chain in self._held.finished or (absent and due <= time):
            return losses.of_match(chain)
        return (
            self._out_of_time(partials[0], due, None) if due <= time else losses.of_partial(chain)
        )

    def _out_of_time(self, partial: Partial, due: int, timeout: str | None) -> PartialEnding:
        window = self.plan.window_ms
        if window is not None and due == partial.first.time + window:
            detail = f"the window of {format_duration(window)} from its first event is over"
            return PartialEnding(EndReason.WINDOW, due, detail, result=timeout)
        detail = f"no event was taken for {format_duration(due - partial.last.event.time)}"
        return PartialEnding(EndReason.GAP, due, detail, result=timeout)

    def _ended(self, chain: Chain, ending: PartialEnding) -> Turn:
        number = self.ledger.alive.pop(chain)
        self.ledger.end(number, ending)
        return Turn(number, counted(self.plan, chain), stays=False, ending=ending)

    def _in_order(self, chains: Iterable[Chain]) -> list[Chain]:
        return sorted(chains, key=self.ledger.alive.__getitem__)
