"""Runs a partitioning's rules over arrays: many keys, many rules, one call.

Events and keys are numbers here: the caller knows which event and which key a number means. Events
``0 … known - 1`` are those held from before, the others are new; of one key, the one with the
lower number is applied first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from service.compiler.rule_set import Partitioning
from service.matcher.columnar import kernel
from service.matcher.columnar.kernel import I32, I64, NEVER, NONE, U8
from service.matcher.columnar.tables import Tables

#: Findings are handed out when there are so many, so that they never pile up.
_DRAIN_AT = 65_536

_Row = TypeVar("_Row", bound=NamedTuple)


class Held(NamedTuple):
    """What is remembered between runs. Units are sorted by key and rule; ``partials`` and
    ``finished`` are in their order, as many as they say. Nodes stand before those behind them."""

    key: I64
    rule: I32
    deadline: I64
    quiet: I64
    paused: U8
    limited: U8
    events_bound: I64
    partial_count: I32
    finished_count: I32
    partials: kernel.Partials
    finished: kernel.Finished
    node_previous: I32
    node_step: I32
    node_event: I32

    @classmethod
    def nothing(cls) -> Held:
        """What is remembered at first."""
        i32, i64, u8 = (np.zeros(0, kind) for kind in (np.int32, np.int64, np.uint8))
        return cls(
            i64, i32, i64, i64, u8, u8, i64, i32, i32,
            kernel.Partials(i32, i32, i32, i64, u8), kernel.Finished(i32, i32, i64),
            i32, i32, i32,
        )  # fmt: skip

    @property
    def due(self) -> I64:
        """Per unit, the watermark at which something is due."""
        waits = (self.quiet != NEVER) & (self.finished_count == 0)
        return np.where(waits, np.minimum(self.deadline, self.quiet), self.deadline)


class Chains(NamedTuple):
    """Events taken, by chain: those of chain ``i`` are rows ``ends[i - 1]`` to ``ends[i]``."""

    ends: I64
    steps: I32
    events: I32

    def chain(self, number: int) -> Iterator[tuple[int, int]]:
        """Step number and event number of each event of one chain, first to last."""
        start = int(self.ends[number - 1]) if number else 0
        end = int(self.ends[number])
        return zip(self.steps[start:end].tolist(), self.events[start:end].tolist(), strict=True)


class Findings(NamedTuple):
    """What was found, in arrays by kind; ``match_chains`` and ``timeout_chains`` in their order.
    ``failure_last`` is the chain's end where there is one."""

    match_key: I64
    match_rule: I32
    match_time: I64
    match_chains: Chains
    timeout_key: I64
    timeout_rule: I32
    timeout_deadline: I64
    timeout_matched: U8
    timeout_chains: Chains
    failure_key: I64
    failure_rule: I32
    failure_kind: I32
    failure_event: I32
    failure_detail: I64
    started: I64
    dropped: I64


class ColumnarMatcher:
    """The rules of one partitioning, ready to run. Holds tables, no state."""

    def __init__(self, partitioning: Partitioning) -> None:
        self.partitioning = partitioning
        self._tables = Tables(partitioning)
        self._cooling = any(r.plan.rule.cooldown_ms is not None for r in partitioning.rules)

    def run(
        self,
        held: Held,
        times: I64,
        keys: I64,
        masks: Sequence[int],
        mask_numbers: I64,
        watermark: int,
    ) -> Run:
        """Apply new events and move all keys to ``watermark``.

        ``times`` are of all events, held ones first; ``keys`` and ``mask_numbers`` (places in
        ``masks``, the sets of true conditions) of the new ones. Iterate over what is returned for
        the findings; after that it has the new state.
        """
        return Run(self._tables, held, times, keys, masks, mask_numbers, watermark)


class Run:
    """One run: an iterator over findings, then the new state in ``held``.

    ``kept_events`` are the numbers of the events that the new state holds, in ascending order:
    it numbers them by their place there.
    """

    held: Held
    kept_events: I64

    def __init__(
        self,
        tables: Tables,
        held: Held,
        times: I64,
        keys: I64,
        masks: Sequence[int],
        mask_numbers: I64,
        watermark: int,
    ) -> None:
        self._before = held
        self._rule_count = len(tables.rules.start)
        known = len(times) - len(keys)
        touched = tables.touched(masks)
        self._tables = tables
        pair_event, pair_unit, pair_class = self._pairs(touched, keys, mask_numbers, known)
        codes = held.key * self._rule_count + held.rule
        active = (held.due <= watermark) | np.isin(codes, pair_unit)
        self._active = active
        self._codes = np.union1d(codes[active], pair_unit)
        feed = kernel.Feed(np.ascontiguousarray(times, np.int64), pair_event, pair_class)
        self._arrange(codes, active, feed, pair_unit, watermark)

    def _pairs(
        self,
        touched: Sequence[tuple[Sequence[int], Sequence[int]]],
        keys: I64,
        mask_numbers: I64,
        known: int,
    ) -> tuple[I32, I64, I32]:
        """Events with the rules that they touch, sorted by unit and then in order."""
        counts = np.array([len(rules) for rules, _ in touched], np.int64)
        firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        rules = np.array([r for each, _ in touched for r in each], np.int64)
        classes = np.array([c for _, each in touched for c in each], np.int32)
        if len(touched) and (counts == 1).all():
            # One rule: no event is repeated.
            events = np.arange(len(keys))
            places = firsts[mask_numbers]
        else:
            repeats = counts[mask_numbers]
            events = np.repeat(np.arange(len(keys)), repeats)
            within = np.arange(len(events)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
            places = firsts[mask_numbers[events]] + within
        units = keys[events] * self._rule_count + rules[places]
        if len(units) > 1 and (units[1:] < units[:-1]).any():
            order = np.argsort(units, kind="stable")
            units, events, places = units[order], events[order], places[order]
        return (events + known).astype(np.int32), units, classes[places]

    def _arrange(
        self, codes: I64, active: Any, feed: kernel.Feed, pair_unit: I64, watermark: int
    ) -> None:
        held, units = self._before, self._codes
        places = np.searchsorted(units, codes[active])
        partial_ends = np.concatenate([[0], np.cumsum(held.partial_count)]).astype(np.int64)
        finished_ends = np.concatenate([[0], np.cumsum(held.finished_count)]).astype(np.int64)

        def spread(values: Any, missing: int) -> Any:
            column = np.full(len(units), missing, values.dtype)
            column[places] = values[active]
            return column

        self._units = kernel.Units(
            rule=(units % self._rule_count).astype(np.int32),
            first_event=np.searchsorted(pair_unit, units, "left").astype(np.int64),
            end_event=np.searchsorted(pair_unit, units, "right").astype(np.int64),
            first_partial=spread(partial_ends[:-1], 0),
            end_partial=spread(partial_ends[1:], 0),
            first_finished=spread(finished_ends[:-1], 0),
            end_finished=spread(finished_ends[1:], 0),
            quiet=spread(held.quiet, NEVER),
            paused=spread(held.paused, 0),
            limited=spread(held.limited, 0),
            events_bound=spread(held.events_bound, 0),
        )
        self._feed = feed
        count, events = len(units), len(feed.event)
        known = len(held.node_event)
        nodes = known + 2 * events + 64
        zero = np.zeros
        self._nodes = kernel.Nodes(*(zero(nodes, np.int32) for _ in range(10)))
        self._nodes.previous[:known] = held.node_previous
        self._nodes.step[:known] = held.node_step
        self._nodes.event[:known] = held.node_event
        self._partials = _partials(64)
        self._following = _partials(64)
        self._same = zero(64, np.int32)
        self._finished = _finished(64)
        self._event_mark = zero(len(feed.time), np.int32)
        few = min(events, _DRAIN_AT) + 64
        self._found = kernel.Found(
            zero(few, np.int32), zero(few, np.int32), zero(few, np.int32), zero(few, np.int64),
            zero(few, np.int32), zero(few, np.int32), zero(few, np.int32), zero(few, np.int64),
            zero(few, np.uint8),
            zero(64, np.int32), zero(64, np.int32), zero(64, np.int32), zero(64, np.int32),
            zero(64, np.int64),
            zero(self._rule_count, np.int64), zero(self._rule_count, np.int64),
        )  # fmt: skip
        self._kept = kernel.Kept(
            zero(count, np.int32), zero(count, np.int32), zero(count, np.int64),
            zero(count, np.int64), zero(count, np.uint8), zero(count, np.uint8),
            zero(count, np.int64),
        )  # fmt: skip
        self._kept_partials = _partials(events + 64)
        self._kept_finished = _finished(64)
        control = self._control = zero(kernel.CONTROL_SIZE, np.int64)
        control[kernel.WATERMARK] = watermark
        control[kernel.DRAIN_AT] = _DRAIN_AT
        control[kernel.MOST_TAKES] = self._tables.most_takes
        control[kernel.MOST_MOVES] = self._tables.most_moves
        control[kernel.NODES] = known

    def __iter__(self) -> Iterator[Findings]:
        tables = self._tables
        while True:
            status = kernel.run(
                tables.rules, tables.states, tables.outcomes, tables.classes, tables.gaps,
                self._feed, self._units, self._before.partials, self._before.finished,
                self._nodes, self._partials, self._following, self._same, self._finished,
                self._event_mark, self._found, self._kept, self._kept_partials,
                self._kept_finished, self._control,
            )  # fmt: skip
            if status == kernel.GROW:
                self._grow()
                continue
            yield self._findings()
            if status == kernel.DONE:
                break
        self._settle()

    def _grow(self) -> None:
        need = self._control
        self._nodes = _grown(self._nodes, need[kernel.NEED_NODES])
        self._partials = _grown(self._partials, need[kernel.NEED_PARTIALS])
        self._following = _grown(self._following, need[kernel.NEED_PARTIALS])
        if len(self._same) < len(self._following.state):
            self._same = np.zeros(len(self._following.state), np.int32)
        self._finished = _grown(self._finished, need[kernel.NEED_FINISHED])
        self._kept_partials = _grown(self._kept_partials, need[kernel.NEED_KEPT_PARTIALS])
        self._kept_finished = _grown(self._kept_finished, need[kernel.NEED_KEPT_FINISHED])
        found = self._found
        matches = _grown(found[:4], need[kernel.NEED_MATCHES])
        timeouts = _grown(found[4:9], need[kernel.NEED_TIMEOUTS])
        failures = _grown(found[9:14], need[kernel.NEED_FAILURES])
        self._found = kernel.Found(*matches, *timeouts, *failures, *found[14:])

    def _findings(self) -> Findings:
        found, control = self._found, self._control
        matches, timeouts, failures = (
            slice(int(control[n])) for n in (kernel.MATCHES, kernel.TIMEOUTS, kernel.FAILURES)
        )
        findings = Findings(
            match_key=self._codes[found.match_unit[matches]] // self._rule_count,
            match_rule=self._units.rule[found.match_unit[matches]],
            match_time=found.match_time[matches].copy(),
            match_chains=self._chains(found.match_last[matches]),
            timeout_key=self._codes[found.timeout_unit[timeouts]] // self._rule_count,
            timeout_rule=self._units.rule[found.timeout_unit[timeouts]],
            timeout_deadline=found.timeout_deadline[timeouts].copy(),
            timeout_matched=found.timeout_matched[timeouts].copy(),
            timeout_chains=self._chains(found.timeout_last[timeouts]),
            failure_key=self._codes[found.failure_unit[failures]] // self._rule_count,
            failure_rule=self._units.rule[found.failure_unit[failures]],
            failure_kind=found.failure_kind[failures].copy(),
            failure_event=found.failure_event[failures].copy(),
            failure_detail=found.failure_detail[failures].copy(),
            started=found.started.copy(),
            dropped=found.dropped.copy(),
        )
        control[[kernel.MATCHES, kernel.TIMEOUTS, kernel.FAILURES]] = 0
        found.started[:] = 0
        found.dropped[:] = 0
        return findings

    def _chains(self, lasts: I32) -> Chains:
        lengths = np.zeros(len(lasts), np.int64)
        kernel.chain_lengths(self._nodes, lasts, lengths)
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        steps, events = np.empty(total, np.int32), np.empty(total, np.int32)
        kernel.chains(self._nodes, lasts, ends, steps, events)
        return Chains(ends, steps, events)

    def _settle(self) -> None:
        """Put what has run and what has not together, and let go what nothing points to."""
        before, kept, passive = self._before, self._kept, ~self._active
        remembers = (
            (kept.partials > 0) | (kept.finished > 0) | (kept.paused > 0) | (kept.quiet != NEVER)
        )
        code = np.concatenate(
            [(before.key * self._rule_count + before.rule)[passive], self._codes[remembers]]
        )
        order = np.argsort(code, kind="stable")

        def merged(old: Any, new: Any) -> Any:
            return np.concatenate([old[passive], new[remembers]])[order]

        partial_count = np.concatenate([before.partial_count[passive], kept.partials[remembers]])
        finished_count = np.concatenate([before.finished_count[passive], kept.finished[remembers]])
        partials = _reordered(
            before.partials, np.repeat(passive, before.partial_count),
            self._kept_partials, int(self._control[kernel.KEPT_PARTIALS]), partial_count, order,
        )  # fmt: skip
        finished = _reordered(
            before.finished, np.repeat(passive, before.finished_count),
            self._kept_finished, int(self._control[kernel.KEPT_FINISHED]), finished_count, order,
        )  # fmt: skip
        lasts = np.concatenate([partials.last, finished.last])
        self._control[kernel.SERIAL] += 1
        serial = int(self._control[kernel.SERIAL])
        nodes = self._nodes
        count = kernel.compact(
            nodes, int(self._control[kernel.NODES]), lasts, self._event_mark, serial
        )
        self.kept_events = np.flatnonzero(self._event_mark == serial)
        renumbered = np.zeros(len(self._event_mark), np.int32)
        renumbered[self.kept_events] = np.arange(len(self.kept_events))
        code = code[order]
        self.held = Held(
            key=code // self._rule_count,
            rule=(code % self._rule_count).astype(np.int32),
            deadline=merged(before.deadline, kept.deadline),
            quiet=merged(before.quiet, kept.quiet),
            paused=merged(before.paused, kept.paused),
            limited=merged(before.limited, kept.limited),
            events_bound=merged(before.events_bound, kept.events_bound),
            partial_count=partial_count[order],
            finished_count=finished_count[order],
            partials=partials._replace(
                first=renumbered[partials.first], last=lasts[: len(partials.last)]
            ),
            finished=finished._replace(
                first=renumbered[finished.first], last=lasts[len(partials.last) :]
            ),
            node_previous=nodes.previous[:count].copy(),
            node_step=nodes.step[:count].copy(),
            node_event=renumbered[nodes.event[:count]],
        )


def _partials(size: int) -> kernel.Partials:
    zero = np.zeros
    return kernel.Partials(
        zero(size, np.int32), zero(size, np.int32), zero(size, np.int32), zero(size, np.int64),
        zero(size, np.uint8),
    )  # fmt: skip


def _finished(size: int) -> kernel.Finished:
    zero = np.zeros
    return kernel.Finished(zero(size, np.int32), zero(size, np.int32), zero(size, np.int64))


def _grown(table: Any, need: int) -> Any:
    """The table's columns with room for at least ``need`` rows, twice that where they grow."""
    if len(table[0]) >= need:
        return table
    columns = []
    for column in table:
        larger = np.zeros(2 * int(need), column.dtype)
        larger[: len(column)] = column
        columns.append(larger)
    return type(table)(*columns) if hasattr(table, "_fields") else columns


def _reordered(
    old: Any, old_rows: Any, new: Any, new_count: int, counts: I32, order: I64
) -> Any:
    """Rows of the units that did not run and of those that did, in the units' order."""
    ends = np.cumsum(counts)
    starts = (ends - counts)[order]
    lengths = counts[order]
    rows = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
    return type(old)(
        *(
            np.concatenate([column[old_rows], fresh[:new_count]])[rows]
            for column, fresh in zip(old, new, strict=True)
        )
    )


__all__ = ["NONE", "Chains", "ColumnarMatcher", "Findings", "Held", "Run"]
