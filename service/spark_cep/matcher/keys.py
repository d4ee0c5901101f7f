"""The rules of a partitioning applied to many keys at once: events and deadlines in order, and what
is remembered of each key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice

import numpy as np

from spark_cep.columns.compilation import I64, NEVER
from spark_cep.columns.texts import with_more
from spark_cep.columns.vectors import Bytes, no_texts
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning
from spark_cep.matcher.batch.events import EventTable, Names, SlotType, together
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.batch.meaning import Meaning
from spark_cep.matcher.findings.chains import Chains
from spark_cep.matcher.findings.found import (
    Expired,
    Failure,
    Found,
    limit_failure,
    match_limit_failure,
    skip_failure,
)
from spark_cep.matcher.findings.live import PartialMatch
from spark_cep.matcher.findings.look_back import LookBacks
from spark_cep.matcher.findings.outputs import Outputs, Reporter
from spark_cep.matcher.findings.partial import FOREVER, Finished, Partial, RuleState, Taken
from spark_cep.matcher.findings.results import ResultKind, Results
from spark_cep.matcher.row_pattern.instances import RowPatternInstances
from spark_cep.matcher.row_pattern.keys import NewEvents, RowPatternRules
from spark_cep.matcher.steps.loops import kernel_tables
from spark_cep.matcher.steps.matcher import ColumnarMatcher, Findings, Held
from spark_cep.model import Event

#: Outputs are handed out when their matches and timeouts hold so many events.
_MOST_TAKEN_EVENTS = 50_000


def _no_numbers() -> I64:
    return np.zeros(0, np.int64)


@dataclass(slots=True)
class KeysState:
    """What is remembered of many keys, which are numbered by their place in ``keys``. ``events``
    are those that partial matches hold, ``event_key`` the key of each."""

    keys: Bytes = field(default_factory=no_texts)
    events: EventTable = field(default_factory=EventTable.empty)
    event_key: I64 = field(default_factory=_no_numbers)
    held: Held = field(default_factory=Held.nothing)
    row_patterns: RowPatternInstances = field(default_factory=RowPatternInstances)

    @property
    def deadline(self) -> int:
        """The watermark at which something is due; ``FOREVER`` for never."""
        of_steps = self.held.due.min(initial=FOREVER)
        return int(self.row_patterns.instances["due"].min(initial=of_steps))

    @property
    def idle(self) -> bool:
        """Whether there is nothing to remember."""
        return not len(self.held.instances) and not len(self.row_patterns)


class KeysMatcher:
    """All rules of one partitioning, applied to many keys at once. Holds no state.

    With ``columns``, what rules find stays columns where they emit nothing but coordinates."""

    def __init__(
        self, partitioning: Partitioning, types: RecordTypes, columns: bool = False
    ) -> None:
        self.partitioning = partitioning
        self._matcher = ColumnarMatcher(partitioning, types)
        self._reporters = [
            Reporter(plan, LookBacks(plan, partitioning.slots, types))
            for plan in partitioning.step_plans
        ]
        self._plans = partitioning.step_plans
        self._row_patterns = RowPatternRules(partitioning)
        self._meanings: dict[tuple[int, ...], Meaning] = {}
        self._plain = np.array([columns and reporter.plain for reporter in self._reporters], bool)

    @property
    def slots(self) -> Sequence[SlotType]:
        """The columns of events."""
        return self._matcher.slots

    @cached_property
    def fingerprints(self) -> list[str]:
        """What names the rules in stored state, by number."""
        return [rule.plan.fingerprint for rule in self.partitioning.rules]

    def meaning(self, rules: tuple[int, ...] = ()) -> Meaning:
        """What the bits and columns of events mean in a state that has these numbers for the rules.
        Most key groups have the same."""
        if rules not in self._meanings:
            conditions = tuple(condition.name for condition in self.partitioning.conditions)
            columns = tuple(slot.meaning for slot in self.slots)
            named = zip(rules, self.partitioning.rules, strict=False)
            draining = tuple(number for number, rule in named if rule.drains)
            self._meanings[rules] = Meaning(conditions, columns, rules, draining)
        return self._meanings[rules]

    def advance(
        self, state: KeysState, batch: InputBatch, watermark: int, names: Names
    ) -> Iterator[Outputs]:
        """Apply events that the watermark has reached, in any order and none of them late, and move
        all keys to ``watermark``.

        What is found comes in pieces of bounded size; ``state`` has moved when they have been
        taken.
        """
        keys, places = with_more(state.keys, batch.keys)
        key = places[batch.key]
        order = _in_order(batch.events, key, names)
        key, mask = key[order], batch.mask[order]
        fresh = batch.events.take(order)
        # Their order is all that microseconds are for, but in SQL.
        applied = replace(fresh, micros=None)
        known = together([state.events, applied])
        run = self._matcher.run(state.held, known, key, batch.masks, mask, watermark)
        for findings in run:
            yield from self._outputs(findings, keys, known, names)
        new = NewEvents(known, keys, batch.masks, key, mask, fresh.all_micros)
        in_sql = self._row_patterns.run(state.row_patterns, new, watermark, names)
        yield from in_sql
        kept = np.union1d(run.kept_events, in_sql.instances.rows["event"])
        _renumber_events(run.held, np.searchsorted(kept, run.kept_events))
        # Keys of which nothing is remembered lose their number.
        used = np.union1d(run.held.instances["key"], in_sql.instances.instances["key"])
        event_key = np.concatenate([state.event_key, key])[kept]
        state.keys = keys.take(used).compacted()
        state.held = run.held
        state.held.instances["key"] = np.searchsorted(used, state.held.instances["key"])
        state.row_patterns = in_sql.instances
        instances, rows = in_sql.instances.instances, in_sql.instances.rows
        instances["key"] = np.searchsorted(used, instances["key"])
        rows["event"] = np.searchsorted(kept, rows["event"])
        state.events = known.take(kept)
        state.event_key = np.searchsorted(used, event_key)

    def rule_states(
        self, state: KeysState, names: Names
    ) -> Iterator[tuple[str | None, int, RuleState]]:
        """What is remembered, as objects: key, rule number, state."""
        return rule_states(state, names, self.slots)

    def live_in_sql(self, state: KeysState, names: Names) -> Iterator[PartialMatch]:
        """The attempts of rules in SQL that are under way."""
        return self._row_patterns.live(state.row_patterns, state.events, state.keys, names)

    def _outputs(
        self, findings: Findings, keys: Bytes, events: EventTable, names: Names
    ) -> Iterator[Outputs]:
        if self._plain.any():
            yield from self._columns(findings.of_rules(self._plain), keys, events, names)
            findings = findings.of_rules(~self._plain)
        outputs, size = Outputs(), 0
        event = events.objects(names, self.slots)
        for key, rule, length, found in chain(
            _matches(findings, event), _timeouts(findings, event)
        ):
            self._reporters[rule].report(keys.text(key), found, outputs)
            size += length
            if size >= _MOST_TAKEN_EVENTS:
                yield outputs
                outputs, size = Outputs(), 0
        for key, rule, kind, row, detail in zip(
            findings.failure_key.tolist(),
            findings.failure_rule.tolist(),
            findings.failure_kind.tolist(),
            findings.failure_event.tolist(),
            findings.failure_detail.tolist(),
            strict=True,
        ):
            failure = self._failure(rule, kind, event(row), detail)
            self._reporters[rule].report(keys.text(key), Found(failures=[failure]), outputs)
        for failed in findings.call_failures:
            failure = Failure(
                "condition_failed", failed.atom.step, event(failed.event), failed.error
            )
            self._reporters[failed.rule].report(None, Found(failures=[failure]), outputs)
        tallies = findings.tallies
        for number in np.flatnonzero(tallies["tested"] | tallies["pruned"] | tallies["dropped"]):
            tally = tallies[number]
            counted = {name: int(tally[name]) for name in tally.dtype.names}
            self._reporters[number].count(counted, outputs)
        yield outputs

    def _columns(
        self, findings: Findings, keys: Bytes, events: EventTable, names: Names
    ) -> Iterator[Outputs]:
        """What the plain rules found."""
        nothing = np.zeros(len(findings.match_rule), np.uint8)
        matches = Results.of(
            ResultKind.MATCH, self._plans, keys, names, findings.match_rule, findings.match_key,
            findings.match_time, nothing, findings.match_chains, events,
        )  # fmt: skip
        timeouts = Results.of(
            ResultKind.TIMEOUT, self._plans, keys, names, findings.timeout_rule,
            findings.timeout_key, findings.timeout_deadline, findings.timeout_matched,
            findings.timeout_chains, events,
        )  # fmt: skip
        for results, what in ((matches, "matched"), (timeouts, "timed_out")):
            # Versions of a rule are counted together.
            counts: Counter[tuple[str, str]] = Counter()
            for number, count in enumerate(np.bincount(results.rule).tolist()):
                if count:
                    counts[self._plans[number].rule.id, what] += count
            for piece in results.cut(_MOST_TAKEN_EVENTS):
                yield Outputs(results=[piece], counts=counts)
                counts = Counter()

    def _failure(self, rule: int, kind: int, event: Event, detail: int) -> Failure:
        plan = self._plans[rule]
        if kind == kernel_tables.LIMIT_REACHED:
            return limit_failure(plan, event, detail)
        if kind == kernel_tables.MATCH_LIMIT_REACHED:
            return match_limit_failure(plan, event, detail)
        return skip_failure(plan, event)


def _renumber_events(held: Held, numbers: I64) -> None:
    """Give events other numbers, in place: those that stand at the old ones."""
    for table in (held.partials, held.finished):
        table["first"] = numbers[table["first"]]
    held.nodes["event"] = numbers[held.nodes["event"]]


def rule_states(
    state: KeysState, names: Names, slots: Sequence[SlotType]
) -> Iterator[tuple[str | None, int, RuleState]]:
    """What is remembered, as objects: key, rule number, state. Without ``slots`` the events have no
    columns."""
    held = state.held
    event = state.events.objects(names, slots)
    events = [event(row) for row in range(len(state.events))]
    nodes: list[Taken] = []
    for previous, step, row in held.nodes.tolist():
        nodes.append(Taken(nodes[previous] if previous >= 0 else None, step, events[row]))
    partials = (
        Partial(state, events[first], nodes[last], deadline, matched)
        for deadline, state, first, last, _, matched in held.partials.tolist()
    )
    finished = (
        Finished(events[first], nodes[last], time) for time, first, last in held.finished.tolist()
    )
    for instance in held.instances:
        quiet = int(instance["quiet"])
        rule_state = RuleState(
            partials=list(islice(partials, instance["partials"])),
            finished=list(islice(finished, instance["finished"])),
            deadline=int(instance["deadline"]),
            quiet_until=None if quiet == NEVER else quiet,
            paused=bool(instance["paused"]),
            limited=bool(instance["limited"]),
            events_at_most=int(instance["events_bound"]),
        )
        yield state.keys.text(int(instance["key"])), int(instance["rule"]), rule_state


def _in_order(events: EventTable, key: I64, names: Names) -> I64:
    """The order of application within each key: time to the microsecond, topic, partition,
    offset."""
    topic = events.topic
    if len(names.topics) > 1:
        topic = np.argsort(np.argsort(np.array(names.topics)))[topic].astype(np.int32)
    fine = () if events.micros is None else (events.micros,)
    return np.lexsort((events.offset, events.partition, topic, *fine, events.time, key))


_Events = Callable[[int], Event]


def _matches(findings: Findings, event: _Events) -> Iterator[tuple[int, int, int, Found]]:
    """Each match: key, rule, how many events it holds, and itself."""
    for key, rule, time, (first, last, length) in zip(
        findings.match_key.tolist(),
        findings.match_rule.tolist(),
        findings.match_time.tolist(),
        _taken(findings.match_chains, event),
        strict=True,
    ):
        yield key, rule, length, Found(matches=[Finished(first, last, time)])


def _timeouts(findings: Findings, event: _Events) -> Iterator[tuple[int, int, int, Found]]:
    """Each timeout, likewise."""
    for key, rule, deadline, matched, (first, last, length) in zip(
        findings.timeout_key.tolist(),
        findings.timeout_rule.tolist(),
        findings.timeout_deadline.tolist(),
        findings.timeout_matched.tolist(),
        _taken(findings.timeout_chains, event),
        strict=True,
    ):
        yield key, rule, length, Found(timeouts=[Expired(first, last, deadline, bool(matched))])


def _taken(chains: Chains, event: _Events) -> Iterator[tuple[Event, Taken, int]]:
    """Each chain: its first event, its end, and its length."""
    for number in range(len(chains.ends)):
        taken = [(step, event(row)) for step, row in chains.chain(number)]
        last = None
        for step, one in taken:
            last = Taken(last, step, one)
        assert last is not None
        yield taken[0][1], last, len(taken)
