"""Runs one plan over arrays: many keys, one call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from spark_cep.columns.compilation import FOREVER, I64, NONE, Table
from spark_cep.columns.growth import grown
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.errors import damaged_state
from spark_cep.matcher.batch.events import EventTable, Names, SlotType
from spark_cep.matcher.row_pattern.found import Compiled, RunFindings
from spark_cep.matcher.row_pattern.instances import ROW
from spark_cep.matcher.row_pattern.loops import (
    check_loop,
    key_loop,
    settling_loop,
    tables,
    thread_loop,
)
from spark_cep.matcher.row_pattern.lowering import RowPatternLimits, lower
from spark_cep.matcher.row_pattern.python_calls.calls import ConditionFailure, RowPatternCalls
from spark_cep.matcher.row_pattern.python_calls.evaluation import Binder
from spark_cep.matcher.row_pattern.python_calls.key_rows import KeyRows, places
from spark_cep.matcher.row_pattern.states import RowPatternStates, new_keys
from spark_cep.pattern.expressions import Expression
from spark_cep.pattern.types import column_type
from spark_cep.programs.loops import expression_loop
from spark_cep.programs.values import values_of

#: Results are handed out when there are so many, so that they never pile up.
_DRAIN_AT = 65_536
#: So many rows of tables are there at first; they grow as they must.
_ROOM = 64
#: Where attempts have failed is remembered in at most so many words of 64 bits, of the last rows.
_MOST_TRIED = 1 << 22
#: It is stored of attempts with more instructions times rows than this.
_REPEATED = 1_000
#: Where threads stood is remembered of at most so many, before the last rows.
_MOST_STANDING = 1 << 20


class CompiledRowPattern:
    """A plan, ready to run. Holds tables, no state."""

    def __init__(self, plan: RowPatternPlan, limits: RowPatternLimits | None = None) -> None:
        limits = limits or RowPatternLimits()
        query = plan.query
        self.plan = plan
        #: The columns of rows.
        self.slots = [
            SlotType(
                ".".join(path), None if query.event is None else column_type(query.event, path)
            )
            for path in plan.columns
        ]
        lowered, binder = lower(plan, limits), Binder(plan)
        measures = [binder.expression(each.expression) for each in query.measures]
        bounds = limits.rows, limits.threads, limits.work
        self.compiled = Compiled(plan, lowered, self.slots, measures, bounds)
        self.calls = [binder.expression(expression) for _, expression in lowered.calls]

    @property
    def row_bits(self) -> Sequence[Expression]:
        """The conditions on the row alone, by bit."""
        return self.compiled.lowered.bits

    def deadlines(self, states: RowPatternStates, times: I64) -> I64:
        """By key, the watermark at which the attempt under way is settled; ``FOREVER``: never.
        ``times``: those of events."""
        keys, within = states.keys, self.plan.query.within_ms
        found = np.full(len(keys), FOREVER, np.int64)
        if within is not None:
            open_ = np.flatnonzero((keys["attempt"] != 0) & (keys["threads"] > 0))
            starts = np.cumsum(keys["rows"]) - keys["rows"]
            at = (starts + keys["start"] - keys["first"])[open_]
            found[open_] = times[states.rows["event"][at]] + within
        return found


class RowPatternLoopRun:
    """One run: an iterator over what is found, then the new state in ``states``.

    ``events`` are those that the rows of ``states`` are, and the new rows ``fresh`` (``ROW``),
    which come behind those of their key, in their order; ``key`` is the number of each new row's
    key, and a number beyond those of ``states`` is a new key. All keys move to ``watermark``;
    ``closed``: no row of any key will follow.
    """

    states: RowPatternStates

    def __init__(
        self,
        matcher: CompiledRowPattern,
        states: RowPatternStates,
        events: EventTable,
        fresh: Table,
        key: I64,
        watermark: int,
        names: Names,
        *,
        closed: bool = False,
    ) -> None:
        self._matcher, self._names, self._closed = matcher, names, closed
        _check(states, matcher)
        keys = states.keys.copy()
        count = max(len(keys), int(key.max(initial=-1)) + 1)
        keys = np.concatenate([keys, new_keys(count - len(keys))])
        # Loops number the rows of the states, and behind them the new ones.
        number, bits, micros = (
            np.concatenate([states.rows[each], fresh[each]]) for each in ROW.names or ()
        )
        key_of = np.concatenate([np.repeat(np.arange(count), keys["rows"]), key])
        at = np.argsort(key_of, kind="stable")
        ends = np.cumsum(np.bincount(key_of, minlength=count))
        self._rows = tables.Rows(at, ends, events.time[number], micros, bits)
        #: The same with the numbers of events, as findings have them.
        self._event_rows = self._rows._replace(at=number[at])
        self._event_of = number
        if micros.any():
            of_events = np.zeros(len(events), np.int64)
            of_events[number] = micros
            events = replace(events, micros=of_events)
        self._events = events
        self._bases = keys["first"].copy()
        self._controls = np.zeros(1, tables.CONTROL)
        control = self._controls[0]
        control["closed"], control["watermark"] = closed, watermark
        control["drain_at"], control["repeated"] = _DRAIN_AT, _REPEATED
        self._arrange(keys, states)
        self._values()
        self._key_rows: dict[int, KeyRows] = {}
        self._calls = RowPatternCalls(matcher.calls, self._controls, self._rows_of, self._tables)

    def _arrange(self, keys: Table, states: RowPatternStates) -> None:
        program = self._matcher.compiled.lowered.program
        longest = int(np.diff(self._rows.ends, prepend=0).max(initial=0)) + 1
        instructions = len(program.instructions)
        # A bit for each instruction before a row; of the rows a power of two, so that theirs are
        # found without a division.
        words = instructions // 64 + 1
        # As many nodes again as the key with most of them has.
        nodes = max(1024, 4 * instructions, 2 * int(keys["nodes"].max(initial=0)))
        window = _power(min(longest, max(2, _MOST_TRIED // words)))
        # Of conditions that say the same of each attempt, one thread at most is at a LABEL.
        labels = int((program.instructions["code"] == tables.LABEL).sum())
        clause = program.clause[0]
        noted = clause["near"] and clause["within"] != FOREVER
        stood = _power(min(longest, max(2, _MOST_STANDING // max(1, labels)))) if noted else 1
        self._work = tables.RowPatternWork(
            keys=keys,
            held_threads=states.threads,
            held_nodes=states.nodes,
            held_tried=states.tried,
            threads=np.zeros(_ROOM + instructions, tables.THREAD),
            following=np.zeros(_ROOM + instructions, tables.THREAD),
            stack=np.zeros(2 * (_ROOM + instructions), tables.THREAD),
            seen=np.zeros(2 * (_ROOM + instructions), tables.SEEN),
            heads=np.zeros((_ROOM + instructions, 2), np.int64),
            nodes=np.zeros(nodes, tables.NODE),
            moved=np.zeros(max(nodes, _ROOM), np.int64),
            kept=np.zeros(max(nodes, _ROOM), np.int64),
            registers=np.zeros((_ROOM, int(program.clause[0]["words"])), np.int64),
            accumulators=np.zeros((_ROOM, len(program.aggregates)), expression_loop.VALUE),
            answers=np.zeros(len(program.tests) + 1, np.int64),
            values=np.zeros(expression_loop.STACK, expression_loop.VALUE),
            one=np.zeros(longest, np.int64),
            other=np.zeros(longest, np.int64),
            tried=np.zeros((window, words), np.uint64),
            tried_of=np.full(window, NONE, np.int64),
            stood=np.zeros(stood, tables.STOOD),
            standing=np.zeros((stood, labels), tables.STANDING),
        )
        rows = len(self._rows.at)
        self._out = tables.Out(
            np.zeros(min(rows, _DRAIN_AT) + _ROOM, tables.RESULT),
            np.zeros(min(rows, _DRAIN_AT) + _ROOM, np.int32),
            np.zeros(len(states.threads) + len(keys) + _ROOM, tables.THREAD),
            np.zeros(len(states.nodes) + 2 * len(keys) + _ROOM, tables.NODE),
            np.zeros(_ROOM, tables.TRIED),
        )

    def _values(self) -> None:
        """The columns that programs read, as numbers."""
        lowered, names = self._matcher.compiled.lowered, self._matcher.plan.query.variables
        vectors = self._events.vectors(self._matcher.slots)
        values = values_of(
            [vectors[number].take(self._event_of) for number in lowered.columns],
            len(self._event_of), lowered.operations, lowered.texts, names=names,
        )  # fmt: skip
        numbers = np.ascontiguousarray(values.texts.constants[len(lowered.texts) :])
        self._program = lowered.program._replace(names=numbers)
        self._programs = expression_loop.Programs(
            lowered.conditions, values.operations, np.zeros(0, expression_loop.LOOK)
        )
        self._columns = values.columns

    def __iter__(self) -> Iterator[RunFindings]:
        try:
            yield from self._run()
        finally:
            self._calls.close()

    def _run(self) -> Iterator[RunFindings]:
        control = self._controls[0]
        while True:
            status = key_loop.run(
                self._program, self._programs, self._columns, self._rows, self._work, self._out,
                self._calls, self._controls,
            )  # fmt: skip
            if status not in (settling_loop.DONE, settling_loop.DRAIN):
                self._grow(status)
                continue
            yield self._found()
            control["results"] = control["labels"] = 0
            if status == settling_loop.DONE:
                break
        self._settle()

    def _grow(self, status: int) -> None:
        work, out, control = self._work, self._out, self._controls[0]
        names: dict[int, tuple[str, ...]] = {
            thread_loop.FULL_THREADS: ("threads", "following", "stack", "seen", "heads"),
            thread_loop.FULL_NODES: ("nodes", "moved", "kept"),
            thread_loop.FULL_REGISTERS: ("registers", "accumulators", "moved"),
        }
        if status in names:
            tables_of = {name: getattr(work, name) for name in names[status]}
            self._work = work._replace(
                **{name: grown(each, len(each) + 1) for name, each in tables_of.items()}
            )
        elif status == settling_loop.FULL_KEPT:
            threads, nodes = (
                int(control[f"kept_{name}"] + control[name]) for name in ("threads", "nodes")
            )
            tried = int(control["kept_tried"]) + tables.MOST_KEPT_TRIED
            self._out = out._replace(
                kept_threads=grown(out.kept_threads, threads),
                kept_nodes=grown(out.kept_nodes, nodes),
                kept_tried=grown(out.kept_tried, tried),
            )
        elif status == settling_loop.FULL_RESULTS:
            self._out = out._replace(results=grown(out.results, len(out.results) + 1))
        else:
            self._out = out._replace(labels=grown(out.labels, len(out.labels) + 1))

    def _tables(self) -> tables.RowPatternWork:
        return self._work

    def _rows_of(self, key: int) -> KeyRows:
        if key not in self._key_rows:
            self._key_rows.clear()
            at, slots = places(self._event_rows, key), self._matcher.slots
            self._key_rows[key] = KeyRows(at, int(self._bases[key]), self._events, slots)
        return self._key_rows[key]

    def _found(self) -> RunFindings:
        control = self._controls[0]
        read = self._events.objects(self._names, self._matcher.slots)
        calls = self._matcher.compiled.lowered.calls
        failures = [
            ConditionFailure(calls[each.call][0], read(each.event), each.error)
            for each in self._calls.failures()
        ]
        results = self._out.results[: control["results"]].copy()
        results["row"] = self._event_of[results["row"]]
        return RunFindings(
            self._matcher.compiled,
            results,
            self._out.labels[: control["labels"]].copy(),
            self._events,
            self._names,
            self._event_rows,
            self._bases,
            self._closed,
            failures,
        )

    def _settle(self) -> None:
        """Put together what is remembered."""
        control, keys, rows = self._controls[0], self._work.keys, self._rows
        kept = keys["rows"].astype(np.int64)
        at = np.repeat(rows.ends - np.cumsum(kept), kept) + np.arange(kept.sum())
        chosen = rows.at[at]
        kept_rows = np.zeros(len(at), ROW)
        for name, numbers in zip(
            ROW.names or (), (self._event_of, rows.bits, rows.micros), strict=True
        ):
            kept_rows[name] = numbers[chosen]
        self.states = RowPatternStates(
            keys,
            self._out.kept_threads[: control["kept_threads"]],
            self._out.kept_nodes[: control["kept_nodes"]],
            kept_rows,
            self._out.kept_tried[: control["kept_tried"]],
        )


def _power(rows: int) -> int:
    """The least power of two that has room for so many rows."""
    return 1 << (rows - 1).bit_length()


def _check(states: RowPatternStates, matcher: CompiledRowPattern) -> None:
    """Raise StateError where what is remembered leads outside of it."""
    program, variables = matcher.compiled.lowered.program, matcher.plan.query.variables
    wrong = check_loop.wrong_key(
        states.keys, states.threads, states.nodes, states.tried, len(program.instructions),
        len(variables), np.empty(len(states.nodes), np.int64),
    )  # fmt: skip
    if wrong != NONE or int(states.keys["rows"].sum()) != len(states.rows):
        key = "" if wrong == NONE else f": {states.keys[wrong]}"
        raise damaged_state(f"rows of a rule in SQL are not in order{key}")
