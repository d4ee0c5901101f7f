"""The states of many keys put together, and chosen from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import texts_together
from spark_cep.matcher.batch.events import together
from spark_cep.matcher.keys import KeysState
from spark_cep.matcher.row_pattern.instances import instances_together, moved_rows
from spark_cep.matcher.steps.matcher import Held


def joined(states: Sequence[KeysState]) -> KeysState:
    """Several states, of different keys, as one."""
    states = [state for state in states if len(state.keys)]
    if not states:
        return KeysState()
    if len(states) == 1:
        return states[0]
    keys = _starts([len(state.keys) for state in states])
    events = _starts([len(state.events) for state in states])
    nodes = _starts([len(state.held.nodes) for state in states])

    held = Held(*map(np.concatenate, zip(*(state.held for state in states), strict=True)))
    instances = [len(state.held.instances) for state in states]
    held.instances["key"] += np.repeat(keys, instances)
    for table, rows in ((held.partials, 1), (held.finished, 2)):
        counts = [len(state.held[rows]) for state in states]
        table["first"] += np.repeat(np.array(events, np.int32), counts)
        table["last"] += np.repeat(np.array(nodes, np.int32), counts)
    row_patterns = instances_together([state.row_patterns for state in states])
    row_patterns.instances["key"] += np.repeat(keys, [len(s.row_patterns) for s in states])
    row_patterns.rows["event"] += np.repeat(events, [len(s.row_patterns.rows) for s in states])
    counts = [len(state.held.nodes) for state in states]
    held.nodes["event"] += np.repeat(np.array(events, np.int32), counts)
    previous = held.nodes["previous"]
    previous += np.where(previous < 0, 0, np.repeat(np.array(nodes, np.int32), counts))
    return KeysState(
        keys=texts_together([state.keys for state in states]),
        events=together([state.events for state in states]),
        event_key=np.concatenate(
            [state.event_key + start for state, start in zip(states, keys, strict=True)]
        ),
        held=held,
        row_patterns=row_patterns,
    )


def chosen(state: KeysState, wanted: Any) -> KeysState:
    """The state of some keys; ``wanted`` says for each key whether it is one of them."""
    if wanted.all():
        return state
    if not wanted.any():
        return KeysState()
    held = state.held
    of_instances = wanted[held.instances["key"]]
    of_events = wanted[state.event_key]
    of_nodes = of_events[held.nodes["event"]]
    keys, events, nodes = (np.cumsum(of) - 1 for of in (wanted, of_events, of_nodes))
    kept = Held(
        held.instances[of_instances],
        held.partials[np.repeat(of_instances, held.instances["partials"])],
        held.finished[np.repeat(of_instances, held.instances["finished"])],
        held.nodes[of_nodes],
    )
    _renumber(kept, keys, events, nodes)
    in_sql = state.row_patterns
    row_patterns = in_sql.take(np.flatnonzero(wanted[in_sql.instances["key"]]))
    row_patterns.instances["key"] = keys[row_patterns.instances["key"]]
    row_patterns.rows = moved_rows(row_patterns.rows, events)
    return KeysState(
        keys=state.keys.take(np.flatnonzero(wanted)),
        events=state.events.take(np.flatnonzero(of_events)),
        event_key=keys[state.event_key[of_events]],
        held=kept,
        row_patterns=row_patterns,
    )


def _renumber(held: Held, keys: I64, events: I64, nodes: I64) -> None:
    """Give keys, events and nodes other numbers, in place: those that stand at the old ones."""
    held.instances["key"] = keys[held.instances["key"]]
    for table in (held.partials, held.finished):
        table["first"] = events[table["first"]]
        table["last"] = nodes[table["last"]]
    held.nodes["event"] = events[held.nodes["event"]]
    previous = held.nodes["previous"]
    inner = previous >= 0
    previous[inner] = nodes[previous[inner]]


def _starts(counts: Sequence[int]) -> list[int]:
    return [0, *np.cumsum(counts)[:-1].tolist()]
