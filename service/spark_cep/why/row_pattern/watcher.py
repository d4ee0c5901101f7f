"""The account of a rule in SQL: what each row did to the attempt under way.

The ways in which the attempt has taken rows are its partial matches. Attempts that begin and fail
within one row are not in the account; what their first variable lacked is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.compiler.row_pattern.program import Done, Label
from spark_cep.matcher.batch.events import Names, slot_types
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.keys import KeysState
from spark_cep.model import Event
from spark_cep.why.account import (
    EndReason,
    EventState,
    Moment,
    PartialEnding,
    Passed,
    SeenEvent,
    Turn,
)
from spark_cep.why.ledger import DRAINS, Ledger
from spark_cep.why.probes import Chain, chain_of, counted
from spark_cep.why.row_pattern.conditions import AttemptConditions, AttemptRows
from spark_cep.why.row_pattern.endings import AttemptEndings
from spark_cep.why.row_pattern.held import Labels, UnderWay


class AttemptWatcher:
    """Writes the account of a rule in SQL into a ledger."""

    def __init__(self, ledger: Ledger, types: RecordTypes) -> None:
        watched = ledger.watched
        assert isinstance(watched.plan, RowPatternPlan)
        self.ledger, self.plan = ledger, watched.plan
        self._conditions = AttemptConditions(watched)
        self._slots = slot_types(watched.partitioning.slots, types)
        self._first = self._conditions.first_variables()
        self._done = [
            at for at, each in enumerate(self.plan.program.instructions) if isinstance(each, Done)
        ]
        self._held = UnderWay()
        self._event: Event | None = None
        self._micros = 0

    def before(self, state: KeysState, one: InputBatch, names: Names) -> None:
        """See :class:`~spark_cep.why.watched.Watcher`."""
        self._held = UnderWay.of(state, names, self._slots)
        self._event = None
        if len(one):
            self._event = one.events.objects(names, self._slots)(0)
            self._micros = int(one.events.all_micros[0])
            kept = {event.at: self.ledger.masks[event.at] for event in self._held.rows}
            self.ledger.masks = {**kept, self._event.at: one.masks[one.mask[0]]}

    def after(self, state: KeysState, names: Names, time: int, outputs: Outputs) -> None:
        """See :class:`~spark_cep.why.watched.Watcher`."""
        after = UnderWay.of(state, names, self._slots)
        self.ledger.found(outputs)
        event = self._event
        seen = None if event is None else self.ledger.see(event)
        # Rows of one match may come in several pieces.
        matched = {each.match_id: chain_of(self.plan, each.steps) for each in outputs.matches}
        at = None if event is None else event.at
        endings = AttemptEndings(
            self.plan, self._held, after, outputs, matched, time, at, self._micros
        )
        rows = self._rows(event)
        turns = [
            self._turn(chain, labels, seen, after, endings, rows)
            for chain, labels in self._in_order(self._held.alive)
        ]
        known = {turn.ending.result for turn in turns if turn.ending}
        turns.sort(key=lambda turn: turn.partial)
        started = self._started(
            after, {match_id: each for match_id, each in matched.items() if match_id not in known}
        )
        if event is None or seen is None:
            turns = [each for each in turns if each.took or each.ending]
            if turns or started or matched:
                found = (*matched,)
                self._add(Moment(time, None, None, (*turns,), started, (), found), after)
            return
        effective = self.plan.rule.effective_from_ms
        if effective is not None and time < effective:
            self._add(Moment(time, seen, EventState.TOO_EARLY), after)
            return
        mask, part = self.ledger.masks[seen.at], self.ledger.watched.partitioning
        if mask >> part.unseen(0) & 1:
            self._add(Moment(time, seen, EventState.UNSEEN), after)
            return
        where = rows.where(event)
        if not self._is_row(event):
            note = "no row of the pattern: WHERE is not true"
            passed = (Passed("WHERE", where),)
            self._add(Moment(time, seen, EventState.PASSED, (), (), passed, (), note), after)
            return
        own = rows.end - 1
        self.ledger.tried(part for name in self._first for part in rows.parts(own, name))
        chains = (*after.alive, *matched.values())
        takes = any(seen.at == taken for chain in chains for _, taken in chain)
        opens = () if takes else tuple(rows.passed(own, (), name) for name in self._first)
        state_of = EventState.TAKEN if takes else EventState.PASSED
        note = DRAINS if (part.own_bits(0, mask) or 0) & self.plan.closed else ""
        found = (*matched,)
        self._add(Moment(time, seen, state_of, (*turns,), started, opens, found, note), after)

    def _add(self, moment: Moment, after: UnderWay) -> None:
        standing = {
            self.ledger.alive[chain]: tuple(after.ways.get(labels, self._done))
            for chain, labels in after.alive.items()
        }
        self.ledger.add(replace(moment, standing=standing))

    def _rows(self, event: Event | None) -> AttemptRows:
        held = self._held
        new = [event] if event is not None and self._is_row(event) else []
        base = held.base if held.rows or held.start >= 0 else 0
        return AttemptRows(
            self._conditions, base, [*held.rows, *new], self.ledger.masks, held.matches + 1
        )

    def _is_row(self, event: Event) -> bool:
        part = self.ledger.watched.partitioning
        return part.own_bits(0, self.ledger.masks[event.at]) is not None

    def _turn(
        self,
        chain: Chain,
        labels: Labels,
        seen: SeenEvent | None,
        after: UnderWay,
        endings: AttemptEndings,
        rows: AttemptRows,
    ) -> Turn:
        number, held = self.ledger.alive.pop(chain), counted(self.plan, chain)
        same = after.start == self._held.start
        awaited = self._awaited(self._held.ways.get(labels, ()))
        took: list[tuple[str, int]] = []
        stays = same and chain in after.alive
        if stays:
            self.ledger.alive[chain] = number
        for child, of_child in after.alive.items() if same else ():
            if len(of_child) <= len(labels) or of_child[: len(labels)] != labels:
                continue
            if child in self.ledger.alive:
                continue
            goes_on = number
            if stays or took:
                goes_on = self.ledger.begin(number, {})
            self.ledger.set_steps(goes_on, self._steps(after, of_child))
            self.ledger.alive[child] = goes_on
            took.append((self.plan.steps[of_child[len(labels)]], goes_on))
        names = {name for name, _ in took}
        passed = tuple(
            rows.passed(self._held.start, labels, each) for each in awaited if each not in names
        )
        if took or stays:
            return Turn(number, held, (*took,), passed if seen else (), stays)
        ending = endings.of(chain, labels, passed)
        if ending.reason is EndReason.MATCH and ending.result is not None:
            match = endings.matched[ending.result]
            self._complete(number, match)
            own = [label for label, at in match if seen is not None and at == seen.at]
            took = [(self.plan.steps[label], number) for label in own]
        self.ledger.end(number, ending)
        return Turn(number, held, (*took,), passed if seen else (), False, ending)

    def _awaited(self, places: Iterable[int]) -> list[str]:
        """The variables that ways at these instructions wait for."""
        instructions = [self.plan.program.instructions[at] for at in places]
        labels = [each.variable for each in instructions if isinstance(each, Label)]
        return [self.plan.steps[each] for each in dict.fromkeys(labels)]

    def _started(
        self, after: UnderWay, matched: Mapping[str, Chain]
    ) -> tuple[tuple[str, int], ...]:
        """Ways of a new attempt, and matches that were found at once."""
        started = []
        for chain, labels in after.alive.items():
            if chain not in self.ledger.alive:
                number = self.ledger.begin(None, self._steps(after, labels))
                self.ledger.alive[chain] = number
                started.append((self.plan.steps[labels[0]], number))
        for match_id, chain in matched.items():
            if chain:
                number = self.ledger.begin(None, {})
                self._complete(number, chain)
                at = None if self._event is None else self._event.at
                time = max(self.ledger.events[each].time for _, each in chain)
                self.ledger.end(
                    number, PartialEnding(EndReason.MATCH, time, "complete", at, result=match_id)
                )
                first = min(chain, key=lambda each: self.ledger.events[each[1]].number)
                started.append((self.plan.steps[first[0]], number))
        return tuple(started)

    def _complete(self, number: int, chain: Chain) -> None:
        steps: dict[str, tuple[SeenEvent, ...]] = {}
        for label, at in sorted(chain, key=lambda each: self.ledger.events[each[1]].number):
            name = self.plan.steps[label]
            steps[name] = (*steps.get(name, ()), self.ledger.events[at])
        self.ledger.set_steps(number, steps)

    def _steps(self, held: UnderWay, labels: Labels) -> Mapping[str, tuple[SeenEvent, ...]]:
        steps: dict[str, tuple[SeenEvent, ...]] = {}
        first = held.start - held.base
        for label, event in zip(labels, held.rows[first:], strict=False):
            name = self.plan.steps[label]
            steps[name] = (*steps.get(name, ()), self.ledger.events[event.at])
        return steps

    def _in_order(self, chains: Mapping[Chain, Labels]) -> list[tuple[Chain, Labels]]:
        # A way that goes on from a longer one does not go on from a shorter one.
        return sorted(chains.items(), key=lambda each: (-len(each[1]), self.ledger.alive[each[0]]))
