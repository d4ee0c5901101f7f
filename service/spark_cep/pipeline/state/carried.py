"""Partial matches that move from a version of a rule to the next one, when their bucket is read.

A key group writes down, once, how states and steps of the one version are those of the other, and
what deadlines are then. Buckets that nothing touches hold what they held, and are put in the terms
of the new version when they are read, however many versions later: one step for each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from spark_cep.columns.compilation import FOREVER, I64, NEVER, NONE, Table
from spark_cep.columns.vectors import Flags
from spark_cep.compiler.carrying import NOWHERE, same_states, same_steps
from spark_cep.compiler.plan import Plan, StateKind
from spark_cep.matcher.keys import KeysState
from spark_cep.matcher.keys_state import chosen
from spark_cep.matcher.row_pattern.instances import moved_rows
from spark_cep.matcher.steps.held import Held


@dataclass(frozen=True, slots=True)
class Carry:
    """The move of the partial matches of ``version`` to the rule ``to``, a number of the key group.
    ``states`` and ``steps`` map old numbers to new ones, ``gaps`` maps new states to gaps.
    ``finished``: whether complete matches that wait for the skip strategy move, too. Partial
    matches whose new deadline is at or before ``watermark`` end."""

    to: int
    version: int
    watermark: int
    states: list[int]
    steps: list[int]
    window: int
    gaps: list[int | None]
    finished: bool
    #: How much sooner than it was a deadline can be; ``None`` where there was none.
    sooner: int | None

    @classmethod
    def between(cls, old: Plan, new: Plan, to: int, watermark: int) -> Self | None:
        """From ``old`` to ``new``; ``None`` where nothing can move."""
        states = same_states(old, new)
        moves = [(old.states[n], new.states[s]) for n, s in enumerate(states) if s != NOWHERE]
        if not moves:
            return None
        whole = any(state.kind is StateKind.FINAL for state, _ in moves)
        spans = [(old.window_ms, new.window_ms), *((s.gap_ms, t.gap_ms) for s, t in moves)]
        return cls(
            to=to,
            version=old.rule.version,
            watermark=watermark,
            states=states,
            steps=same_steps(old, new),
            window=_or_forever(new.window_ms),
            gaps=[state.gap_ms for state in new.states],
            finished=whole and old.after_match == new.after_match,
            sooner=_sooner(spans),
        )


def _sooner(spans: Iterable[tuple[int | None, int | None]]) -> int | None:
    most = 0
    for before, after in spans:
        if after is not None:
            if before is None:
                return None
            most = max(most, before - after)
    return most


def _or_forever(duration: int | None) -> int:
    return FOREVER if duration is None else duration


def moved(state: KeysState, place: int, target: int, how: Carry) -> tuple[KeysState, int]:
    """The state with what rule ``place`` has as that of rule ``target``, which has nothing in it,
    and how many partial matches have ended."""
    held = state.held
    instances, partials = held.instances.copy(), held.partials.copy()
    mine = instances["rule"] == place
    if not mine.any():
        return state, 0
    nodes = held.nodes.copy()
    of_partial = np.repeat(np.arange(len(instances)), instances["partials"])
    of_finished = np.repeat(np.arange(len(instances)), instances["finished"])
    moving = mine[of_partial]
    states = np.array(how.states, np.int64)[np.where(moving, partials["state"], 0)]
    deadlines = _deadlines(state, partials, states, how)
    kept = ~moving | ((states != NOWHERE) & (deadlines > how.watermark))
    ended = int((~kept).sum())
    partials["state"] = np.where(moving, states, partials["state"])
    partials["deadline"] = np.where(moving, deadlines, partials["deadline"])
    finished_kept = ~mine[of_finished] | how.finished
    steps = np.array([*how.steps, NOWHERE], np.int64)
    taken = _behind(nodes, partials["last"][moving & kept])
    taken |= _behind(nodes, held.finished["last"][mine[of_finished] & finished_kept])
    nodes["step"][taken] = steps[nodes["step"][taken]]
    partials, finished = partials[kept], held.finished[finished_kept]
    of_partial, of_finished = of_partial[kept], of_finished[finished_kept]
    instances["partials"] = np.bincount(of_partial, minlength=len(instances))
    instances["finished"] = np.bincount(of_finished, minlength=len(instances))
    deadline = np.full(len(instances), FOREVER, np.int64)
    np.minimum.at(deadline, of_partial, partials["deadline"])
    instances["deadline"] = np.where(mine, deadline, instances["deadline"])
    instances["rule"][mine] = target
    # What a limit did is the old version's.
    for name in ("paused", "limited"):
        instances[name][mine] = 0
    remembers = (
        (instances["partials"] > 0) | (instances["finished"] > 0) | (instances["quiet"] != NEVER)
    )
    remembers |= ~mine
    order = np.flatnonzero(remembers)
    order = order[np.lexsort((instances["rule"][order], instances["key"][order]))]
    held = Held(
        instances[order],
        partials[_rows(of_partial, order)],
        finished[_rows(of_finished, order)],
        nodes,
    )
    return tidied(replace(state, held=held)), ended


def _deadlines(state: KeysState, partials: Table, states: I64, how: Carry) -> I64:
    time = state.events.time
    first, last = time[partials["first"]], time[state.held.nodes["event"][partials["last"]]]
    gap = np.array([_or_forever(gap) for gap in how.gaps], np.int64)[np.maximum(states, 0)]
    by_window = np.full(len(first), FOREVER) if how.window == FOREVER else first + how.window
    by_gap = np.where(gap == FOREVER, FOREVER, last + np.where(gap == FOREVER, 0, gap))
    deadlines: I64 = np.minimum(by_window, by_gap)
    return deadlines


def _behind(nodes: Table, ends: I64) -> Flags:
    """The nodes of the chains that end there."""
    found = np.zeros(len(nodes), bool)
    while len(ends):
        found[ends] = True
        ends = np.unique(nodes["previous"][ends])
        ends = ends[ends != NONE]
        ends = ends[~found[ends]]
    return found


def _rows(of_rows: I64, order: I64) -> I64:
    """The rows of instances, in the order of these."""
    rank = np.full(int(order.max(initial=-1)) + 1, -1)
    rank[order] = np.arange(len(order))
    ranks = rank[of_rows] if len(of_rows) else of_rows
    return np.argsort(ranks, kind="stable")


def tidied(state: KeysState) -> KeysState:
    """The state without events, links and keys of what has ended."""
    held = state.held
    nodes = _behind(held.nodes, np.concatenate([held.partials["last"], held.finished["last"]]))
    events = np.zeros(len(state.events), bool)
    in_sql = state.row_patterns
    for rows in (
        held.nodes["event"][nodes], held.partials["first"], held.finished["first"],
        in_sql.rows["event"],
    ):  # fmt: skip
        events[rows] = True
    node_at, event_at = np.cumsum(nodes) - 1, np.cumsum(events) - 1
    for table in (held.partials, held.finished):
        table["first"] = event_at[table["first"]]
        table["last"] = node_at[table["last"]]
    left = held.nodes[nodes]
    left["event"] = event_at[left["event"]]
    left["previous"] = np.where(left["previous"] == NONE, NONE, node_at[left["previous"]])
    kept = replace(
        state,
        events=state.events.take(np.flatnonzero(events)),
        event_key=state.event_key[events],
        held=held._replace(nodes=left),
        row_patterns=replace(in_sql, rows=moved_rows(in_sql.rows, event_at)),
    )
    wanted = np.zeros(len(state.keys), bool)
    for part in state.remembered:
        wanted[part.instances["key"]] = True
    return chosen(kept, wanted)
