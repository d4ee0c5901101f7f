"""The state of many keys, as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from spark_cep.columns.compilation import NEVER, NONE, Table
from spark_cep.matcher.row_pattern.instances import ROW
from spark_cep.matcher.row_pattern.loops import tables


def new_keys(count: int) -> Table:
    """Return ``count`` keys without state."""
    keys = np.zeros(count, tables.KEY)
    keys["time"], keys["frontier"] = NEVER, NONE
    return keys


@dataclass(slots=True)
class RowPatternStates:
    """Keys by number, with their threads, nodes and rows (``ROW``), and where attempts have failed,
    those of a key together, in the order of keys
    (:mod:`spark_cep.matcher.row_pattern.loops.tables`)."""

    keys: Table = field(default_factory=lambda: new_keys(0))
    threads: Table = field(default_factory=lambda: np.zeros(0, tables.THREAD))
    nodes: Table = field(default_factory=lambda: np.zeros(0, tables.NODE))
    rows: Table = field(default_factory=lambda: np.zeros(0, ROW))
    tried: Table = field(default_factory=lambda: np.zeros(0, tables.TRIED))


class Attempt(NamedTuple):
    """The attempt under way of a key: the place of its first row among those of all keys, and how
    many there are from there on; the instruction of each thread and the variables of the rows that
    it has taken; and the variables of the match so far."""

    key: int
    row: int
    rows: int
    threads: list[tuple[int, tuple[int, ...]]]
    found: tuple[int, ...] | None


def attempts(states: RowPatternStates) -> Iterator[Attempt]:
    """The attempts under way."""
    keys = states.keys
    starts = {name: np.cumsum(keys[name]) - keys[name] for name in ("threads", "nodes", "rows")}
    for number in np.flatnonzero(keys["attempt"]).tolist():
        key = keys[number]
        nodes = states.nodes[starts["nodes"][number] :]
        first = int(starts["threads"][number])
        threads = states.threads[first : first + int(key["threads"])]
        before = int(key["start"] - key["first"])
        yield Attempt(
            number,
            int(starts["rows"][number]) + before,
            int(key["rows"]) - before,
            [(at, _labels(node, nodes)) for at, node, _, _ in threads.tolist()],
            _labels(int(key["found_node"]), nodes) if key["found"] else None,
        )


def _labels(node: int, nodes: Table) -> tuple[int, ...]:
    """The variables of a thread's rows, which stand behind its last node."""
    labels: list[int] = []
    while node != NONE:
        node, label = (int(part) for part in nodes[node])
        if label != tables.EDGE:
            labels.append(label)
    return tuple(reversed(labels))
