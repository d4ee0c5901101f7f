"""The compiled matcher as tests call it: bits of rows from their columns, and states from and to
those of the reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from spark_cep.columns.compilation import I64, NONE, Table
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.matcher.batch.events import EventTable, Names, together
from spark_cep.matcher.row_pattern.found import RunFindings, limit_text, plain
from spark_cep.matcher.row_pattern.instances import ROW
from spark_cep.matcher.row_pattern.loops import tables
from spark_cep.matcher.row_pattern.lowering import RowPatternLimits
from spark_cep.matcher.row_pattern.matcher import CompiledRowPattern, RowPatternLoopRun
from spark_cep.matcher.row_pattern.python_calls.calls import ConditionFailure
from spark_cep.matcher.row_pattern.states import RowPatternStates, new_keys
from spark_cep.pattern.expressions import bind
from tests.reference.row_pattern.state import Attempt, KeyState, Thread

_COUNTS = "first", "matches", "covered", "next_start", "time", "frontier", "work", "searched"
_LIMITS = {
    "rows": tables.ROWS_LIMIT,
    "threads": tables.THREADS_LIMIT,
    "work": tables.WORK_LIMIT,
}


@dataclass(slots=True)
class States(RowPatternStates):
    """States, and the events that their rows are, in the order of these."""

    events: EventTable = field(default_factory=EventTable.empty)


class Run(RowPatternLoopRun):
    """A run over rows of which each is an event of its own: those of the states, and new ones, with
    their bits."""

    states: States

    def __init__(
        self,
        matcher: CompiledRowPattern,
        states: States,
        events: EventTable,
        bits: I64,
        key: I64,
        watermark: int,
        names: Names,
        *,
        closed: bool = False,
    ) -> None:
        self._known = together([states.events, events])
        fresh = rows_of(events, bits)
        fresh["event"] += len(states.events)
        super().__init__(matcher, states, self._known, fresh, key, watermark, names, closed=closed)

    def __iter__(self) -> Iterator[RunFindings]:
        yield from super().__iter__()
        kept = self.states
        events = self._known.take(kept.rows["event"])
        kept.rows["event"] = np.arange(len(events))
        self.states = States(kept.keys, kept.threads, kept.nodes, kept.rows, kept.tried, events)


def rows_of(events: EventTable, bits: I64) -> Table:
    """Events as rows, with these bits."""
    rows = np.zeros(len(events), ROW)
    rows["event"], rows["bits"], rows["micros"] = np.arange(len(events)), bits, events.all_micros
    return rows


class Loops(CompiledRowPattern):
    """The compiled matcher, with the conditions on a row alone evaluated as the job's decoder would
    have done it before."""

    def __init__(self, plan: RowPatternPlan, limits: RowPatternLimits | None = None) -> None:
        super().__init__(plan, limits)
        self._limits = limits or RowPatternLimits()
        places = {path: place for place, path in enumerate(plan.columns)}
        query = plan.query
        self._conditions = [bind(each, places, {}, query.event) for each in self.row_bits]
        needed = self.compiled.lowered.program.variables["bits"].tolist()
        self._variables: list[str] = []
        for bit in range(len(self._conditions)):
            pairs = zip(query.variables, needed, strict=True)
            having = [name for name, bits in pairs if bits >> bit & 1]
            self._variables.append((having or query.variables)[0])

    def row_bits_of(self, events: EventTable, names: Names) -> tuple[I64, list[ConditionFailure]]:
        """The bits of rows, and what could not be computed, which is not true."""
        bits = np.zeros(len(events), np.int64)
        failures: list[ConditionFailure] = []
        event = events.objects(names, self.slots)
        for row in range(len(events)):
            read = event(row)
            for bit, condition in enumerate(self._conditions):
                try:
                    if condition(read.columns, ()) is True:
                        bits[row] |= 1 << bit
                except Exception as error:  # noqa: BLE001  as of any condition
                    failures.append(ConditionFailure(self._variables[bit], read, repr(error)))
        return bits, failures

    def apply(
        self,
        states: States,
        events: EventTable,
        key: I64,
        watermark: int,
        names: Names,
        *,
        closed: bool = False,
    ) -> Run:
        """Run with the bits of rows computed from their columns."""
        bits, _ = self.row_bits_of(events, names)
        return Run(self, states, events, bits, key, watermark, names, closed=closed)

    def states_of(self, given: Sequence[KeyState], names: Names) -> States:
        """The states of the reference as arrays."""
        states = states_of(given, names, self)
        bits, _ = self.row_bits_of(states.events, names)
        states.rows = rows_of(states.events, bits)
        return states

    def key_states(self, states: States, names: Names) -> list[KeyState]:
        """The states as the reference has them."""
        limits = self._limits.rows, self._limits.threads, self._limits.work
        return list(key_states(states, names, self, limits))


def key_states(
    states: States,
    names: Names,
    matcher: CompiledRowPattern,
    limits: tuple[int, int, int],
) -> Iterator[KeyState]:
    """Each key's state as the reference has it. ``limits``: of rows, threads and work."""
    event = states.events.objects(names, matcher.slots)
    thread_at = row_at = node_at = 0
    for key in states.keys:
        rows = [plain(event(row)) for row in range(row_at, row_at + int(key["rows"]))]
        row_at += len(rows)
        nodes = states.nodes[node_at : node_at + int(key["nodes"])].tolist()
        threads = states.threads[thread_at : thread_at + int(key["threads"])]
        thread_at += len(threads)
        node_at += len(nodes)
        attempt = None
        if key["attempt"]:
            found, dropped = (
                _thread(0, int(key[f"{name}_node"]), nodes) if key[name] else None
                for name in ("found", "dropped")
            )
            limit = int(key["limit"])
            attempt = Attempt(
                int(key["start"]),
                int(key["next_row"]),
                [_thread(at, node, nodes) for at, node, _, _ in threads.tolist()],
                found,
                dropped,
                limit_text(limit, limits) if limit else None,
            )
        state = KeyState(rows, attempt=attempt, searched=bool(key["searched"]))
        for name in _COUNTS:
            setattr(state, name, int(key[name]))
        yield state


def _thread(at: int, node: int, nodes: Sequence[tuple[int, int]]) -> Thread:
    labels: list[int] = []
    chain: list[int] = []
    while node != NONE:
        node, label = nodes[node]
        chain.append(label)
    edges: list[int] = []
    for label in reversed(chain):
        if label == tables.EDGE:
            edges.append(len(labels))
        else:
            labels.append(label)
    return Thread(at, tuple(labels), tuple(edges))


def states_of(given: Sequence[KeyState], names: Names, matcher: CompiledRowPattern) -> States:
    """The states of the reference as arrays, without rows."""
    keys = new_keys(len(given))
    threads: list[tuple[int, int, int, int]] = []
    nodes: list[tuple[int, int]] = []
    for number, state in enumerate(given):
        key = keys[number]
        for name in _COUNTS:
            key[name] = getattr(state, name)
        key["rows"] = len(state.rows)
        attempt, first_node = state.attempt, len(nodes)
        if attempt is not None:
            key["attempt"], key["start"], key["next_row"] = 1, attempt.start, attempt.next_row
            key["threads"] = len(attempt.threads)
            threads += [_put_thread(each, nodes, first_node) for each in attempt.threads]
            for name, thread in (("found", attempt.found), ("dropped", attempt.dropped)):
                if thread is not None:
                    _, node, length, _ = _put_thread(thread, nodes, first_node)
                    key[name], key[f"{name}_node"], key[f"{name}_length"] = 1, node, length
            if attempt.limit is not None:
                key["limit"] = _LIMITS[attempt.limit.rpartition(" ")[2]]
        key["nodes"] = len(nodes) - first_node
    events = [event for state in given for event in state.rows]
    return States(
        keys,
        np.array(threads, tables.THREAD),
        np.array(nodes, tables.NODE),
        events=EventTable.of(events, names, matcher.slots),
    )


def _put_thread(
    thread: Thread, nodes: list[tuple[int, int]], first: int
) -> tuple[int, int, int, int]:
    """Write a thread's nodes, which count from the key's first."""
    node, edges = NONE, list(thread.edges)
    for length, label in enumerate([*thread.labels, None]):
        while edges and edges[0] == length:
            edges.pop(0)
            nodes.append((node, tables.EDGE))
            node = len(nodes) - 1 - first
        if label is not None:
            nodes.append((node, label))
            node = len(nodes) - 1 - first
    return thread.at, node, len(thread.labels), 0
