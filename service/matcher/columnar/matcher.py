"""Runs a partitioning's rules over arrays: many keys, many rules, one call.

Events and keys are numbers here: the caller knows which event and which key a number means. Events
``0 … known - 1`` are those held from before, the others are new; of one key, the one with the
lower number is applied first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.compiler.record_types import RecordTypes
from service.compiler.rule_set import Partitioning
from service.matcher.columnar import kernel
from service.matcher.columnar.kernel import I32, I64, NEVER, Table
from service.matcher.columnar.tables import Tables, Values

#: Findings are handed out when there are so many, so that they never pile up.
_DRAIN_AT = 65_536
#: So many rows more than events make necessary are there at first; tables grow as they must.
_ROOM = 64

#: A unit that something is remembered of: rule and key, and as in ``kernel.UNIT``.
UNIT = np.dtype(
    [
        ("key", "i8"), ("deadline", "i8"), ("quiet", "i8"), ("events_bound", "i8"),
        ("rule", "i4"), ("partials", "i4"), ("finished", "i4"), ("paused", "u1"),
        ("limited", "u1"),
    ],
    align=True,
)  # fmt: skip
NODE = np.dtype([("previous", "i4"), ("step", "i4"), ("event", "i4")])
_KEPT = ("deadline", "quiet", "events_bound", "rule", "partials", "finished", "paused", "limited")


class Held(NamedTuple):
    """What is remembered between runs, as records. ``units`` are sorted by key and rule;
    ``partials`` and ``finished`` are in their order, as many as they say. Nodes stand before those
    behind them."""

    units: Table
    partials: Table
    finished: Table
    nodes: Table

    @classmethod
    def nothing(cls) -> Held:
        """What is remembered at first."""
        kinds = (UNIT, kernel.PARTIAL, kernel.FINISHED, NODE)
        return cls(*(np.zeros(0, kind) for kind in kinds))

    @property
    def due(self) -> I64:
        """Per unit, the watermark at which something is due."""
        units = self.units
        waits = (units["quiet"] != NEVER) & (units["finished"] == 0)
        return np.where(waits, np.minimum(units["deadline"], units["quiet"]), units["deadline"])


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
    """What was found, in arrays by kind; ``match_chains`` and ``timeout_chains`` in their order."""

    match_key: I64
    match_rule: I32
    match_time: I64
    match_chains: Chains
    timeout_key: I64
    timeout_rule: I32
    timeout_deadline: I64
    timeout_matched: NDArray[np.uint8]
    timeout_chains: Chains
    failure_key: I64
    failure_rule: I32
    failure_kind: I32
    failure_event: I32
    failure_detail: I64
    tallies: Table


class ColumnarMatcher:
    """The rules of one partitioning, ready to run. Holds tables, no state."""

    def __init__(self, partitioning: Partitioning, types: RecordTypes) -> None:
        self.partitioning = partitioning
        self._tables = Tables(partitioning, types)

    def run(
        self,
        held: Held,
        times: I64,
        keys: I64,
        masks: Sequence[int],
        mask_numbers: I64,
        watermark: int,
        columns: Sequence[Sequence[Any]] | None = None,
    ) -> Run:
        """Apply new events and move all keys to ``watermark``.

        ``times`` are of all events, held ones first; ``keys`` and ``mask_numbers`` (places in
        ``masks``, the sets of true conditions) of the new ones. ``columns`` are rows of all events.
        Iterate over what is returned for the findings; after that it has the new state.
        """
        values = self._tables.values(columns, len(times))
        return Run(self._tables, held, times, keys, masks, mask_numbers, watermark, values)


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
        values: Values,
    ) -> None:
        self._before = held
        self._values = values
        self._rule_count = len(tables.rules)
        known = len(times) - len(keys)
        touched = tables.touched(masks)
        self._tables = tables
        pair_event, pair_unit, pair_class = self._pairs(touched, keys, mask_numbers, known)
        codes = held.units["key"] * self._rule_count + held.units["rule"]
        active = (held.due <= watermark) | np.isin(codes, pair_unit)
        self._active = active
        self._codes = np.union1d(codes[active], pair_unit)
        feed = np.zeros(len(pair_event), kernel.FEED)
        feed["event"] = pair_event
        feed["event_class"] = pair_class
        self._arrange(codes, active, feed, pair_unit, times, watermark)

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
        self, codes: I64, active: Any, feed: Table, pair_unit: I64, times: I64, watermark: int
    ) -> None:
        before = self._before
        units = self._units = np.zeros(len(self._codes), kernel.UNIT)
        units["rule"] = self._codes % self._rule_count
        units["quiet"] = NEVER
        units["first_event"] = np.searchsorted(pair_unit, self._codes, "left")
        units["end_event"] = np.searchsorted(pair_unit, self._codes, "right")
        places = np.searchsorted(self._codes, codes[active])
        for kind in ("partial", "finished"):
            counts = before.units["partials" if kind == "partial" else kind].astype(np.int64)
            ends = np.cumsum(counts)
            units[f"first_{kind}"][places] = (ends - counts)[active]
            units[f"end_{kind}"][places] = ends[active]
        for name in ("quiet", "events_bound", "paused", "limited"):
            units[name][places] = before.units[name][active]
        self._feed, self._times = feed, times
        known = len(before.nodes)
        self._nodes = np.zeros(known + 2 * len(feed) + _ROOM, kernel.NODE)
        for name in ("previous", "step", "event"):
            self._nodes[name][:known] = before.nodes[name]
        few = min(len(feed), _DRAIN_AT) + _ROOM
        self._partials = np.zeros(_ROOM, kernel.PARTIAL)
        self._following = np.zeros(_ROOM, kernel.PARTIAL)
        self._finished = np.zeros(_ROOM, kernel.FINISHED)
        self._stack = np.zeros(kernel.STACK, kernel.VALUE)
        self._path = np.zeros(len(times), np.int32)
        self._event_mark = np.zeros(len(times), np.int32)
        self._matches = np.zeros(few, kernel.MATCH)
        self._timeouts = np.zeros(few, kernel.TIMEOUT)
        self._failures = np.zeros(_ROOM, kernel.FAILURE)
        self._tallies = np.zeros(self._rule_count, kernel.TALLY)
        self._kept_partials = np.zeros(len(feed) + _ROOM, kernel.PARTIAL)
        self._kept_finished = np.zeros(_ROOM, kernel.FINISHED)
        self._controls = np.zeros(1, kernel.CONTROL)
        control = self._controls[0]
        control["watermark"] = watermark
        control["drain_at"] = _DRAIN_AT
        control["most_moves"] = self._tables.most_moves
        control["nodes"] = known

    def __iter__(self) -> Iterator[Findings]:
        tables, values = self._tables, self._values
        while True:
            status = kernel.run(
                tables.rules, tables.states, tables.outcomes, tables.moves, tables.classes,
                tables.outcome_of, tables.asked, tables.questions,
                values.operations, tables.looks, values.wholes, values.doubles, values.nulls,
                self._stack, self._path, self._times, self._feed, self._units,
                self._before.partials, self._before.finished, self._nodes, self._partials,
                self._following, self._finished, self._event_mark, self._matches, self._timeouts,
                self._failures, self._tallies, self._kept_partials, self._kept_finished,
                self._controls,
            )  # fmt: skip
            if status == kernel.GROW:
                self._grow()
                continue
            yield self._findings()
            if status == kernel.DONE:
                break
        self._settle()

    def _grow(self) -> None:
        need = {name: int(self._controls[name][0]) for name in kernel.CONTROL.names or ()}
        self._nodes = _grown(self._nodes, need["need_nodes"])
        self._partials = _grown(self._partials, need["need_partials"])
        self._following = _grown(self._following, need["need_partials"])
        self._finished = _grown(self._finished, need["need_finished"])
        self._matches = _grown(self._matches, need["need_matches"])
        self._timeouts = _grown(self._timeouts, need["need_timeouts"])
        self._failures = _grown(self._failures, need["need_failures"])
        self._kept_partials = _grown(self._kept_partials, need["need_kept_partials"])
        self._kept_finished = _grown(self._kept_finished, need["need_kept_finished"])

    def _findings(self) -> Findings:
        control = self._controls[0]
        matches = self._matches[: control["matches"]]
        timeouts = self._timeouts[: control["timeouts"]]
        failures = self._failures[: control["failures"]]
        findings = Findings(
            match_key=self._codes[matches["unit"]] // self._rule_count,
            match_rule=self._units["rule"][matches["unit"]],
            match_time=matches["time"].copy(),
            match_chains=self._chains(matches),
            timeout_key=self._codes[timeouts["unit"]] // self._rule_count,
            timeout_rule=self._units["rule"][timeouts["unit"]],
            timeout_deadline=timeouts["deadline"].copy(),
            timeout_matched=timeouts["matched"].copy(),
            timeout_chains=self._chains(timeouts),
            failure_key=self._codes[failures["unit"]] // self._rule_count,
            failure_rule=self._units["rule"][failures["unit"]],
            failure_kind=failures["kind"].copy(),
            failure_event=failures["event"].copy(),
            failure_detail=failures["detail"].copy(),
            tallies=self._tallies.copy(),
        )
        control["matches"] = control["timeouts"] = control["failures"] = 0
        self._tallies[:] = 0
        return findings

    def _chains(self, found: Table) -> Chains:
        ends = np.zeros(len(found), np.int64)
        kernel.chain_lengths(self._nodes, found, ends)
        ends = np.cumsum(ends)
        total = int(ends[-1]) if len(ends) else 0
        steps, events = np.empty(total, np.int32), np.empty(total, np.int32)
        kernel.chains(self._nodes, found, ends, steps, events)
        return Chains(ends, steps, events)

    def _settle(self) -> None:
        """Put what has run and what has not together, and let go what nothing points to."""
        before, units, control = self._before, self._units, self._controls[0]
        passive = ~self._active
        remembers = (
            (units["partials"] > 0)
            | (units["finished"] > 0)
            | (units["paused"] > 0)
            | (units["quiet"] != NEVER)
        )
        ran = np.zeros(int(remembers.sum()), UNIT)
        ran["key"] = self._codes[remembers] // self._rule_count
        for name in _KEPT:
            ran[name] = units[name][remembers]
        merged = np.concatenate([before.units[passive], ran])
        order = np.lexsort((merged["rule"], merged["key"]))
        partials = _reordered(
            before.partials[np.repeat(passive, before.units["partials"])],
            self._kept_partials[: control["kept_partials"]], merged["partials"], order,
        )  # fmt: skip
        finished = _reordered(
            before.finished[np.repeat(passive, before.units["finished"])],
            self._kept_finished[: control["kept_finished"]], merged["finished"], order,
        )  # fmt: skip
        serial = int(control["serial"]) + 1
        count = kernel.compact(
            self._nodes, int(control["nodes"]), partials, finished, self._event_mark, serial
        )
        self.kept_events = np.flatnonzero(self._event_mark == serial)
        renumbered = np.zeros(len(self._event_mark), np.int32)
        renumbered[self.kept_events] = np.arange(len(self.kept_events))
        partials["first"] = renumbered[partials["first"]]
        finished["first"] = renumbered[finished["first"]]
        nodes = np.zeros(count, NODE)
        nodes["previous"] = self._nodes["previous"][:count]
        nodes["step"] = self._nodes["step"][:count]
        nodes["event"] = renumbered[self._nodes["event"][:count]]
        self.held = Held(merged[order], partials, finished, nodes)


def _grown(table: Table, need: int) -> Table:
    """The table with room for at least ``need`` rows, twice that where it grows."""
    if len(table) >= need:
        return table
    larger = np.zeros(2 * need, table.dtype)
    larger[: len(table)] = table
    return larger


def _reordered(old: Table, new: Table, counts: I32, order: I64) -> Table:
    """Rows of the units that did not run and of those that did, in the units' order."""
    lengths = counts[order].astype(np.int64)
    starts = (np.cumsum(counts, dtype=np.int64) - counts)[order]
    rows = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
    ordered: Table = np.concatenate([old, new])[rows]
    return ordered
