"""What is remembered of many keys, as arrays; and from, and to, a
:class:`~spark_cep.matcher.row_pattern.state.KeyState` each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from spark_cep.columns.compilation import I64, NEVER, NONE, Table
from spark_cep.columns.vectors import places_of
from spark_cep.matcher.batch.events import EventTable, Names, SlotType
from spark_cep.matcher.row_pattern.loops import tables
from spark_cep.matcher.row_pattern.state import Attempt, KeyState, Thread
from spark_cep.model import Event

_LIMITS = {tables.ROWS_LIMIT: "rows", tables.THREADS_LIMIT: "threads"}


def new_keys(count: int) -> Table:
    """So many keys of which nothing is known."""
    keys = np.zeros(count, tables.KEY)
    keys["time"] = NEVER
    return keys


def _no_numbers() -> I64:
    return np.zeros(0, np.int64)


@dataclass(slots=True)
class RowPatternStates:
    """Keys by number, with their threads, nodes and rows, those of a key together, in the order of
    keys (:mod:`spark_cep.matcher.row_pattern.loops.tables`). ``bits`` are those of the rows."""

    keys: Table = field(default_factory=lambda: new_keys(0))
    threads: Table = field(default_factory=lambda: np.zeros(0, tables.THREAD))
    nodes: Table = field(default_factory=lambda: np.zeros(0, tables.NODE))
    rows: EventTable = field(default_factory=EventTable.empty)
    bits: I64 = field(default_factory=_no_numbers)

    def take(self, chosen: I64) -> RowPatternStates:
        """The keys of these numbers, in this order."""
        counts = [self.keys[name].astype(np.int64) for name in ("threads", "nodes", "rows")]
        threads, nodes, rows = (places_of(each, chosen) for each in counts)
        return RowPatternStates(
            self.keys[chosen],
            self.threads[threads],
            self.nodes[nodes],
            self.rows.take(rows),
            self.bits[rows],
        )


def key_states(
    states: RowPatternStates,
    names: Names,
    slots: Sequence[SlotType],
    limits: tuple[int, int],
) -> Iterator[KeyState]:
    """Each key's state as the reference matcher has it. ``limits``: of rows and threads."""
    event = states.rows.objects(names, slots)
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
                _thread(int(key[f"{name}_at"]), int(key[f"{name}_node"]), nodes)
                if key[name]
                else None
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
        first, matches, covered, next_start, time = (
            int(key[name]) for name in ("first", "matches", "covered", "next_start", "time")
        )
        yield KeyState(rows, first, matches, covered, next_start, attempt, time)


def limit_text(limit: int, limits: tuple[int, int]) -> str:
    """A limit as a result names it."""
    return f"more than {limits[limit - 1]} {_LIMITS[limit]}"


def plain(event: Event) -> Event:
    """The event with its columns as a tuple."""
    return event._replace(columns=tuple(event.columns))


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


def states_of(
    given: Sequence[KeyState], names: Names, slots: Sequence[SlotType]
) -> RowPatternStates:
    """The states of the reference matcher as arrays, without the bits of rows."""
    keys = new_keys(len(given))
    threads: list[tuple[int, int, int, int]] = []
    nodes: list[tuple[int, int]] = []
    for number, state in enumerate(given):
        key = keys[number]
        for name in ("first", "matches", "covered", "next_start", "time"):
            key[name] = getattr(state, name)
        key["rows"] = len(state.rows)
        attempt, first_node = state.attempt, len(nodes)
        if attempt is not None:
            key["attempt"], key["start"], key["next_row"] = 1, attempt.start, attempt.next_row
            key["threads"] = len(attempt.threads)
            threads += [_put_thread(each, nodes, first_node) for each in attempt.threads]
            for name, thread in (("found", attempt.found), ("dropped", attempt.dropped)):
                if thread is not None:
                    at, node, length, _ = _put_thread(thread, nodes, first_node)
                    key[name], key[f"{name}_at"] = 1, at
                    key[f"{name}_node"], key[f"{name}_length"] = node, length
            if attempt.limit is not None:
                words = {text: code for code, text in _LIMITS.items()}
                key["limit"] = words[attempt.limit.rpartition(" ")[2]]
        key["nodes"] = len(nodes) - first_node
    events = [event for state in given for event in state.rows]
    return RowPatternStates(
        keys,
        np.array(threads, tables.THREAD),
        np.array(nodes, tables.NODE),
        EventTable.of(events, names, slots),
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
