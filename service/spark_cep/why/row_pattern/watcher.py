"""The account of a rule in SQL: what each row did to the attempt under way.

The ways in which the attempt has taken rows are its partial matches. Attempts that begin and fail
within one row are not in the account; what their first variable lacked is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.compiler.row_pattern.program import Done, Label
from spark_cep.durations import format_duration
from spark_cep.matcher.batch.events import Names, slot_types
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.keys import KeysState
from spark_cep.matcher.row_pattern.keys import states_of
from spark_cep.matcher.row_pattern.states import attempts
from spark_cep.model import Coordinates, Event
from spark_cep.why.account import (
    EndReason,
    EventState,
    Moment,
    PartialEnding,
    Passed,
    SeenEvent,
    Turn,
)
from spark_cep.why.ledger import Ledger
from spark_cep.why.probes import Chain, chain_of
from spark_cep.why.row_pattern.conditions import AttemptConditions, AttemptRows

Labels = tuple[int, ...]


@dataclass
class _UnderWay:
    """The rows of the key that are kept, from number ``base`` on, how many matches there were, and
    the attempt: the number of its first row, its ways with the instructions at which they stand,
    and the match so far."""

    base: int = 0
    rows: list[Event] = field(default_factory=list)
    matches: int = 0
    start: int = -1
    ways: dict[Labels, list[int]] = field(default_factory=dict)
    found: Labels | None = None

    def chain(self, labels: Labels) -> Chain:
        first = self.start - self.base
        events = self.rows[first : first + len(labels)]
        return frozenset((label, event.at) for label, event in zip(labels, events, strict=True))

    @property
    def alive(self) -> dict[Chain, Labels]:
        """The ways that have taken a row, and the match so far."""
        ways = [each for each in self.ways if each]
        ways += [self.found] if self.found else []
        return {self.chain(labels): labels for labels in ways}


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
        #: The numbers of ways that are alive.
        self.numbers: dict[Chain, int] = {}
        self._masks: dict[Coordinates, int] = {}
        self._held = _UnderWay()
        self._event: Event | None = None

    def before(self, state: KeysState, one: InputBatch, names: Names) -> None:
        """See :class:`~spark_cep.why.watched.Watcher`."""
        self._held = self._under_way(state, names)
        self._event = None
        if len(one):
            self._event = one.events.objects(names, self._slots)(0)
            kept = {event.at: self._masks[event.at] for event in self._held.rows}
            self._masks = {**kept, self._event.at: one.masks[one.mask[0]]}

    def after(self, state: KeysState, names: Names, time: int, outputs: Outputs) -> None:
        """See :class:`~spark_cep.why.watched.Watcher`."""
        after = self._under_way(state, names)
        self.ledger.found(outputs)
        event = self._event
        seen = None if event is None else self.ledger.see(event)
        matched = self._matched(outputs)
        rows = self._rows(event)
        turns = [
            self._turn(chain, labels, seen, after, matched, rows, outputs, time)
            for chain, labels in self._in_order(self._held.alive)
        ]
        known = {turn.ending.result for turn in turns if turn.ending}
        turns.sort(key=lambda turn: turn.partial)
        started = self._started(
            after, {chain: each for chain, each in matched.items() if each not in known}
        )
        if event is None or seen is None:
            turns = [each for each in turns if each.took or each.ending]
            if turns or started or matched:
                found = (*matched.values(),)
                self._add(Moment(time, None, None, (*turns,), started, (), found), after)
            return
        effective = self.plan.rule.effective_from_ms
        if effective is not None and time < effective:
            self._add(Moment(time, seen, EventState.TOO_EARLY), after)
            return
        where = rows.where(event)
        if not self._is_row(event):
            note = "no row of the pattern: WHERE is not true"
            passed = (Passed("WHERE", where),)
            self._add(Moment(time, seen, EventState.PASSED, (), (), passed, (), note), after)
            return
        own = rows.end - 1
        self.ledger.tried(part for name in self._first for part in rows.parts(own, name))
        takes = any(seen.at == at for chain in (*after.alive, *matched) for _, at in chain)
        opens = () if takes else tuple(rows.passed(own, (), name) for name in self._first)
        state_of = EventState.TAKEN if takes else EventState.PASSED
        found = (*matched.values(),)
        self._add(Moment(time, seen, state_of, (*turns,), started, opens, found), after)

    def _add(self, moment: Moment, after: _UnderWay) -> None:
        standing = {
            self.numbers[chain]: tuple(after.ways.get(labels, self._done))
            for chain, labels in after.alive.items()
        }
        self.ledger.add(replace(moment, standing=standing))

    def _under_way(self, state: KeysState, names: Names) -> _UnderWay:
        known = state.row_patterns
        if not len(known):
            return _UnderWay()
        states = states_of(known, state.events)
        event = states.rows.objects(names, self._slots)
        (key,) = states.keys
        rows = [event(number) for number in range(len(states.rows))]
        held = _UnderWay(int(key["first"]), rows, int(key["matches"]))
        for attempt in attempts(states):
            held.start, held.found = int(key["start"]), attempt.found
            for at, labels in attempt.threads:
                held.ways.setdefault(labels, []).append(at)
        return held

    def _rows(self, event: Event | None) -> AttemptRows:
        held = self._held
        new = [event] if event is not None and self._is_row(event) else []
        base = held.base if held.rows or held.start >= 0 else 0
        return AttemptRows(
            self._conditions, base, [*held.rows, *new], self._masks, held.matches + 1
        )

    def _is_row(self, event: Event) -> bool:
        part = self.ledger.watched.partitioning
        return part.own_bits(0, self._masks[event.at]) is not None

    def _matched(self, outputs: Outputs) -> dict[Chain, str]:
        found = {chain_of(self.plan, each.steps): each.match_id for each in outputs.matches}
        rows: dict[str, set[tuple[int, Coordinates]]] = {}
        for row in outputs.rows:
            if row.match_id is not None and row.variable is not None:
                taken = self.plan.steps.index(row.variable), row.event.at
                rows.setdefault(row.match_id, set()).add(taken)
        return found | {frozenset(taken): match_id for match_id, taken in rows.items()}

    def _turn(
        self,
        chain: Chain,
        labels: Labels,
        seen: SeenEvent | None,
        after: _UnderWay,
        matched: Mapping[Chain, str],
        rows: AttemptRows,
        outputs: Outputs,
        time: int,
    ) -> Turn:
        number, held = self.numbers.pop(chain), _counted(self.plan, chain)
        same = after.start == self._held.start
        awaited = self._awaited(self._held.ways.get(labels, ()))
        took: list[tuple[str, int]] = []
        stays = same and chain in after.alive
        if stays:
            self.numbers[chain] = number
        for child, of_child in after.alive.items() if same else ():
            if len(of_child) <= len(labels) or of_child[: len(labels)] != labels:
                continue
            if child in self.numbers:
                continue
            goes_on = number
            if stays or took:
                goes_on = self.ledger.begin(number, {})
            self.ledger.set_steps(goes_on, self._steps(after, of_child))
            self.numbers[child] = goes_on
            took.append((self.plan.steps[of_child[len(labels)]], goes_on))
        if took or stays:
            names = {name for name, _ in took}
            passed = tuple(
                rows.passed(self._held.start, labels, each) for each in awaited if each not in names
            )
            return Turn(number, held, (*took,), passed if seen else (), stays)
        passed = tuple(rows.passed(self._held.start, labels, each) for each in awaited)
        ending = self._ending(chain, seen, matched, outputs, time)
        mine = next((each for each in matched if chain <= each), None)
        if mine is not None and ending.result is not None:
            self._complete(number, mine)
        self.ledger.end(number, ending)
        return Turn(number, held, (), passed if seen else (), False, ending)

    def _awaited(self, places: Iterable[int]) -> list[str]:
        """The variables that ways at these instructions wait for."""
        instructions = [self.plan.program.instructions[at] for at in places]
        labels = [each.variable for each in instructions if isinstance(each, Label)]
        return [self.plan.steps[each] for each in dict.fromkeys(labels)]

    def _ending(
        self,
        chain: Chain,
        seen: SeenEvent | None,
        matched: Mapping[Chain, str],
        outputs: Outputs,
        time: int,
    ) -> PartialEnding:
        at = None if seen is None else seen.at
        mine = next((match_id for each, match_id in matched.items() if chain <= each), None)
        if mine is not None:
            return PartialEnding(EndReason.MATCH, time, "complete", at, result=mine)
        if matched:
            by = ", ".join(matched.values())
            return PartialEnding(
                EndReason.MATCH, time, f"a preferred way of the attempt matched: {by}", at
            )
        limits = [each for each in outputs.dead_letters if each.reason == "limit_reached"]
        if limits:
            return PartialEnding(EndReason.LIMIT, time, limits[0].detail, at)
        within = self.plan.query.within_ms
        if outputs.timeouts and within is not None:
            timeout = outputs.timeouts[0]
            is_mine = chain_of(self.plan, timeout.steps) == chain
            detail = f"WITHIN {format_duration(within)} from its first row is over"
            result = timeout.match_id if is_mine else None
            return PartialEnding(EndReason.WINDOW, timeout.deadline, detail, at, result=result)
        if seen is None:
            return PartialEnding(EndReason.CONTIGUITY, time, "no row of the key will follow")
        detail = (
            "the row is none of the variables that may come next, and rows are next to each other"
        )
        return PartialEnding(EndReason.CONTIGUITY, time, detail, at)

    def _started(
        self, after: _UnderWay, matched: Mapping[Chain, str]
    ) -> tuple[tuple[str, int], ...]:
        """Ways of a new attempt, and matches that were found at once."""
        started = []
        for chain, labels in after.alive.items():
            if chain not in self.numbers:
                number = self.ledger.begin(None, self._steps(after, labels))
                self.numbers[chain] = number
                started.append((self.plan.steps[labels[0]], number))
        for chain, match_id in matched.items():
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

    def _steps(self, held: _UnderWay, labels: Labels) -> Mapping[str, tuple[SeenEvent, ...]]:
        steps: dict[str, tuple[SeenEvent, ...]] = {}
        first = held.start - held.base
        for label, event in zip(labels, held.rows[first:], strict=False):
            name = self.plan.steps[label]
            steps[name] = (*steps.get(name, ()), self.ledger.events[event.at])
        return steps

    def _in_order(self, chains: Mapping[Chain, Labels]) -> list[tuple[Chain, Labels]]:
        # A way that goes on from a longer one does not go on from a shorter one.
        return sorted(chains.items(), key=lambda each: (-len(each[1]), self.numbers[each[0]]))


def _counted(plan: RowPatternPlan, chain: Chain) -> Mapping[str, int]:
    found = Counter(label for label, _ in chain)
    return {name: found[n] for n, name in enumerate(plan.steps) if found[n]}
