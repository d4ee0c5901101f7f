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

from spark_cep.columns.compilation import FOREVER, I32, I64, NEVER, Table
from spark_cep.columns.growth import grown
from spark_cep.columns.texts import Texts
from spark_cep.columns.vectors import Bytes, Flags
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning
from spark_cep.matcher.batch.events import EventTable
from spark_cep.matcher.findings.chains import Chains
from spark_cep.matcher.steps.held import INSTANCE, NODE, Held
from spark_cep.matcher.steps.loops import event_loop, kernel, kernel_tables
from spark_cep.matcher.steps.loops.collector import (
    count_held,
    mark_held,
    put_away,
    take_up,
)
from spark_cep.matcher.steps.tables import PlanTables
from spark_cep.programs.loops import expression_loop
from spark_cep.programs.loops.distinct_loop import BRANCH, MOST_BRANCHES
from spark_cep.programs.python_calls import CallFailure

#: Findings are handed out when there are so many, so that they never pile up.
_DRAIN_AT = 65_536
#: So many rows more than events make necessary are there at first; tables grow as they must.
_ROOM = 64

_KEPT = ("deadline", "quiet", "events_bound", "rule", "partials", "finished", "paused", "limited")


_NO_CHAINS = Chains(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32))


class Findings(NamedTuple):
    """Findings, in arrays by kind; ``match_chains`` and ``timeout_chains`` in their order."""

    match_key: I64
    match_rule: I32
    match_time: I64
    match_chains: Chains
    timeout_key: I64
    timeout_rule: I32
    timeout_deadline: I64
    timeout_matched: NDArray[np.uint8]
    timeout_chains: Chains
    failure_rule: I32
    failure_kind: I32
    failure_event: I32
    failure_detail: I64
    failure_work: I64
    call_failures: Sequence[CallFailure]
    tallies: Table


class StepLoopRun:
    """One run of ``tables``: an iterator over findings, then the new state in ``held``, with the
    numbers of this run's events.

    ``events`` are all, held ones first; ``keys`` and ``mask_numbers`` (places in ``masks``, the
    sets of true conditions) are of the new ones. All keys move to ``watermark``.
    """

    held: Held

    def __init__(
        self,
        tables: PlanTables,
        held: Held,
        events: EventTable,
        keys: I64,
        masks: Sequence[int],
        mask_numbers: I64,
        watermark: int,
    ) -> None:
        self._before = held
        self._rule_count = tables.rule_count
        known = len(events) - len(keys)
        touched = tables.touched(masks)
        self._tables = tables
        pair_event, pair_instance, pair_class = self._pairs(touched, keys, mask_numbers, known)
        codes = held.instances["key"] * self._rule_count + held.instances["rule"]
        instances = _different(pair_instance)
        active = (held.due <= watermark) | _among(codes, instances)
        self._active = active
        self._codes = _different(np.sort(np.concatenate([codes[active], instances])))
        feed = np.zeros(len(pair_event), kernel_tables.FEED)
        feed["event"] = pair_event
        feed["event_class"] = pair_class
        self._arrange(codes, active, feed, pair_instance, events.time, watermark)
        columns = events.vectors(tables.slots)
        values = tables.values(columns, len(events))
        self._programs, self._columns = tables.programs(values), values.columns
        self._calls = tables.calls_of(
            values, columns, self._out.stack,
            lambda: self._out.nodes, lambda: int(self._controls["collections"][0]),
        )  # fmt: skip

    def _pairs(
        self,
        touched: Sequence[tuple[Sequence[int], Sequence[int]]],
        keys: I64,
        mask_numbers: I64,
        known: int,
    ) -> tuple[I32, I64, I32]:
        """Events with the rules that they touch, sorted by instance and then in order."""
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
        instances = keys[events] * self._rule_count + rules[places]
        if len(instances) > 1 and (instances[1:] < instances[:-1]).any():
            order = np.argsort(instances, kind="stable")
            instances, events, places = instances[order], events[order], places[order]
        return (events + known).astype(np.int32), instances, classes[places]

    def _arrange(
        self, codes: I64, active: Any, feed: Table, pair_instance: I64, times: I64, watermark: int
    ) -> None:
        before = self._before
        instances = np.zeros(len(self._codes), kernel_tables.INSTANCE)
        instances["rule"] = self._codes % self._rule_count
        instances["quiet"], instances["deadline"] = NEVER, FOREVER
        instances["first_event"] = np.searchsorted(pair_instance, self._codes, "left")
        instances["end_event"] = np.searchsorted(pair_instance, self._codes, "right")
        places = np.searchsorted(self._codes, codes[active])
        for kind in ("partial", "finished"):
            counts = before.instances["partials" if kind == "partial" else kind].astype(np.int64)
            ends = np.cumsum(counts)
            instances[f"first_{kind}"][places] = (ends - counts)[active]
            instances[f"end_{kind}"][places] = ends[active]
        for name in ("deadline", "quiet", "events_bound", "paused", "limited"):
            instances[name][places] = before.instances[name][active]
        self._work = kernel_tables.Work(times, feed, instances, before.partials, before.finished)
        known = len(before.nodes)
        moving = int((instances["end_partial"] - instances["first_partial"]).max(initial=0)) + 1
        # Room for one event of the instance with most partial matches, and for the next.
        room = known + 2 * (len(feed) + moving * self._tables.most_moves) + _ROOM
        nodes = np.zeros(room, kernel_tables.NODE)
        take_up(before.nodes, nodes)
        few = min(len(feed), _DRAIN_AT) + _ROOM
        self._out = kernel_tables.Tables(
            nodes=nodes,
            partials=np.zeros(_ROOM, kernel_tables.PARTIAL),
            following=np.zeros(_ROOM, kernel_tables.PARTIAL),
            finished=np.zeros(_ROOM, kernel_tables.FINISHED),
            event_mark=np.zeros(len(times), np.int32),
            matches=np.zeros(few, kernel_tables.MATCH),
            timeouts=np.zeros(few, kernel_tables.TIMEOUT),
            failures=np.zeros(_ROOM, kernel_tables.FAILURE),
            tallies=np.zeros(self._rule_count, kernel_tables.TALLY),
            kept_partials=np.zeros(len(feed) + _ROOM, kernel_tables.PARTIAL),
            kept_finished=np.zeros(_ROOM, kernel_tables.FINISHED),
            stack=np.zeros(expression_loop.STACK, expression_loop.VALUE),
            path=np.zeros(len(times) + MOST_BRANCHES, np.int32),
            totals=np.zeros(few, kernel_tables.TOTALS),
            accumulators=np.zeros(
                few * self._tables.most_accumulators + _ROOM, expression_loop.VALUE
            ),
            branches=np.zeros(_ROOM, BRANCH),
        )
        self._controls = np.zeros(1, kernel_tables.CONTROL)
        control = self._controls[0]
        control["watermark"] = watermark
        control["drain_at"] = _DRAIN_AT
        control["most_moves"] = self._tables.most_moves
        control["nodes"] = known
        count_held(instances, before.partials, before.finished, nodes, known)

    def __iter__(self) -> Iterator[Findings]:
        try:
            yield from self._run()
        finally:
            self._calls.close()

    def _run(self) -> Iterator[Findings]:
        control = self._controls[0]
        while True:
            status = kernel.run(
                self._tables.plans, self._programs, self._columns, self._work, self._out,
                self._calls, self._controls,
            )  # fmt: skip
            if status == kernel.GROW:
                self._grow()
                continue
            if status == kernel.RESOLVE:
                state, answers = control["unresolved_state"], control["unresolved_answers"]
                self._tables.resolve(int(state), int(answers))
                control["most_moves"] = self._tables.most_moves
                continue
            yield self._findings()
            if status == kernel.DONE:
                break
        self._settle()

    def _grow(self) -> None:
        need = {name: int(self._controls[name][0]) for name in kernel_tables.CONTROL.names or ()}
        need["need_following"] = need["need_partials"]
        larger: dict[str, Any] = {
            name: grown(getattr(self._out, name), need[f"need_{name}"])
            for name in self._out._fields
            if f"need_{name}" in need
        }
        self._out = self._out._replace(**larger)

    def _findings(self) -> Findings:
        control = self._controls[0]
        out, instances = self._out, self._work.instances
        matches = out.matches[: control["matches"]]
        timeouts = out.timeouts[: control["timeouts"]]
        failures = out.failures[: control["failures"]]
        findings = Findings(
            match_key=self._codes[matches["instance"]] // self._rule_count,
            match_rule=instances["rule"][matches["instance"]],
            match_time=matches["time"].copy(),
            match_chains=self._chains(matches),
            timeout_key=self._codes[timeouts["instance"]] // self._rule_count,
            timeout_rule=instances["rule"][timeouts["instance"]],
            timeout_deadline=timeouts["deadline"].copy(),
            timeout_matched=timeouts["matched"].copy(),
            timeout_chains=self._chains(timeouts),
            failure_rule=instances["rule"][failures["instance"]],
            failure_kind=failures["kind"].copy(),
            failure_event=failures["event"].copy(),
            failure_detail=failures["detail"].copy(),
            failure_work=failures["work"].copy(),
            call_failures=self._calls.failures(),
            tallies=out.tallies.copy(),
        )
        control["matches"] = control["timeouts"] = control["failures"] = 0
        control["first_match"] = control["first_timeout"] = control["first_failure"] = 0
        out.tallies[:] = 0
        return findings

    def _chains(self, found: Table) -> Chains:
        if not len(found):
            return _NO_CHAINS
        ends = np.zeros(len(found), np.int64)
        kernel.chain_lengths(self._out.nodes, found, ends)
        ends = np.cumsum(ends)
        steps, events = np.empty((2, ends[-1]), np.int32)
        kernel.chains(self._out.nodes, found, ends, steps, events)
        return Chains(ends, steps, events)

    def _settle(self) -> None:
        """Put what has run and what has not together, and let go what nothing points to."""
        before, instances, out = self._before, self._work.instances, self._out
        control = self._controls[0]
        passive = ~self._active
        remembers = (
            (instances["partials"] > 0)
            | (instances["finished"] > 0)
            | (instances["paused"] > 0)
            | (instances["quiet"] != NEVER)
        )
        ran = np.zeros(int(remembers.sum()), INSTANCE)
        ran["key"] = self._codes[remembers] // self._rule_count
        for name in _KEPT:
            ran[name] = instances[name][remembers]
        partials = out.kept_partials[: control["kept_partials"]].copy()
        finished = out.kept_finished[: control["kept_finished"]].copy()
        if passive.any():
            merged = np.concatenate([before.instances[passive], ran])
            order = np.lexsort((merged["rule"], merged["key"]))
            partials = _reordered(
                before.partials[np.repeat(passive, before.instances["partials"])], partials,
                merged["partials"], order,
            )  # fmt: skip
            finished = _reordered(
                before.finished[np.repeat(passive, before.instances["finished"])], finished,
                merged["finished"], order,
            )  # fmt: skip
            ran = merged[order]
        serial = int(control["serial"]) + 1
        count = mark_held(out.nodes, int(control["nodes"]), partials, finished, serial)
        nodes = np.zeros(count, NODE)
        put_away(out.nodes, partials, finished, serial, nodes)
        self.held = Held(ran, partials, finished, nodes)


def _different(numbers: I64) -> I64:
    """The numbers, which ascend, each once."""
    first = np.ones(len(numbers), bool)
    np.not_equal(numbers[1:], numbers[:-1], out=first[1:])
    return numbers[first]


def _among(numbers: I64, some: I64) -> Flags:
    """Return which of the numbers are among some that ascend."""
    if not len(some):
        return np.zeros(len(numbers), bool)
    found: Flags = some.take(some.searchsorted(numbers), mode="clip") == numbers
    return found


def _reordered(old: Table, new: Table, counts: I32, order: I64) -> Table:
    """Rows of the instances that did not run and of those that did, in the instances' order."""
    lengths = counts[order].astype(np.int64)
    starts = (np.cumsum(counts, dtype=np.int64) - counts)[order]
    rows = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
    ordered: Table = np.concatenate([old, new])[rows]
    return ordered


def prepare() -> None:
    """Compile everything, or load what was compiled before, so that no batch waits for it.

    Raises OSError when it would have to be kept in a cache that cannot be written.
    """
    nothing = Partitioning((), (), (), (), keeps_payload=False)
    none = np.zeros(0, np.int64)
    tables = PlanTables(nothing, RecordTypes())
    tables.check(Held.nothing())
    run = StepLoopRun(tables, Held.nothing(), EventTable.empty(), none, (), none, 0)
    for _ in run:
        pass
    event_loop.answered_at(0, 0)
    text = Bytes.of([b"", None])
    Texts([text], (), ordered=False).number("a")
    text.compacted()
