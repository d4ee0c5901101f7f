"""Partial matches that hold events later than the time to which the clock is set back.

Earlier events than those may come now, and a partial match takes events in their order: so it ends.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spark_cep.columns.compilation import FOREVER, I64, NEVER
from spark_cep.matcher.keys import KeysState
from spark_cep.matcher.row_pattern.instances import RowPatternInstances
from spark_cep.matcher.steps.held import Held
from spark_cep.pipeline.state.carried import tidied


def without_later(state: KeysState, time: int, cooldowns: I64) -> tuple[KeysState, I64]:
    """The state without what events later than ``time`` have made of it, and how many partial
    matches ended, by rule. ``cooldowns``: of each rule, ``FOREVER`` for none.

    A rule in SQL begins anew for a key of which it holds a later row.
    """
    times = state.events.time
    held, of_steps = _steps(state.held, times, time, cooldowns)
    in_sql, of_sql = _row_patterns(state.row_patterns, times, time, len(cooldowns))
    return tidied(replace(state, held=held, row_patterns=in_sql)), of_steps + of_sql


def _steps(held: Held, times: I64, time: int, cooldowns: I64) -> tuple[Held, I64]:
    instances = held.instances.copy()
    of_partial = np.repeat(np.arange(len(instances)), instances["partials"])
    of_finished = np.repeat(np.arange(len(instances)), instances["finished"])
    last = times[held.nodes["event"][held.partials["last"]]]
    partials, finished = held.partials[last <= time], held.finished[held.finished["time"] <= time]
    ended = np.bincount(of_partial[last > time], minlength=len(instances))
    of_partial = of_partial[last <= time]
    of_finished = of_finished[held.finished["time"] <= time]
    instances["partials"] = np.bincount(of_partial, minlength=len(instances))
    instances["finished"] = np.bincount(of_finished, minlength=len(instances))
    deadline = np.full(len(instances), FOREVER, np.int64)
    np.minimum.at(deadline, of_partial, partials["deadline"])
    # Complete matches that waited for a partial match which has ended are looked at again.
    waits = (ended > 0) & (instances["finished"] > 0)
    instances["deadline"] = np.where(waits, np.minimum(deadline, time), deadline)
    cooldown = cooldowns[instances["rule"]]
    counts = (instances["quiet"] != NEVER) & (cooldown != FOREVER)
    began = instances["quiet"] - np.where(counts, cooldown, 0)
    instances["quiet"][counts & (began > time)] = NEVER
    remembers = (
        (instances["partials"] > 0)
        | (instances["finished"] > 0)
        | (instances["paused"] > 0)
        | (instances["quiet"] != NEVER)
    )
    by_rule = np.bincount(instances["rule"], ended, len(cooldowns)).astype(np.int64)
    return Held(instances[remembers], partials, finished, held.nodes.copy()), by_rule


def _row_patterns(
    state: RowPatternInstances, times: I64, time: int, rules: int
) -> tuple[RowPatternInstances, I64]:
    newest = np.full(len(state), NEVER, np.int64)
    of_row = np.repeat(np.arange(len(state)), state.instances["rows"].astype(np.int64))
    np.maximum.at(newest, of_row, times[state.rows["event"]])
    later = newest > time
    left = state.of_instances(~later)
    left.instances["time"] = np.minimum(left.instances["time"], time)
    ended = np.bincount(state.instances["rule"][later], state.live[later], rules)
    return left, ended.astype(np.int64)
