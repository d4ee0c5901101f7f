"""The states of many keys put together, and chosen from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Flags, texts_together
from spark_cep.matcher.batch.events import together
from spark_cep.matcher.keys import KeysState


def joined(states: Sequence[KeysState]) -> KeysState:
    """Several states, of different keys, as one."""
    states = [state for state in states if len(state.keys)]
    if not states:
        return KeysState()
    if len(states) == 1:
        return states[0]
    keys = _starts([len(state.keys) for state in states])
    events = _starts([len(state.events) for state in states])
    return KeysState(
        texts_together([state.keys for state in states]),
        together([state.events for state in states]),
        np.concatenate(
            [state.event_key + start for state, start in zip(states, keys, strict=True)]
        ),
        *(
            type(parts[0]).together(parts, keys, events)
            for parts in zip(*(state.remembered for state in states), strict=True)
        ),
    )


def chosen(state: KeysState, wanted: Flags) -> KeysState:
    """The state of some keys; ``wanted`` says for each key whether it is one of them."""
    if wanted.all():
        return state
    if not wanted.any():
        return KeysState()
    of_events = wanted[state.event_key]
    keys, events = np.cumsum(wanted) - 1, np.cumsum(of_events) - 1
    parts: list[Any] = [part.of_keys(wanted, of_events) for part in state.remembered]
    found = KeysState(
        state.keys.take(np.flatnonzero(wanted)),
        state.events.take(np.flatnonzero(of_events)),
        keys[state.event_key[of_events]],
        *parts,
    )
    for remembered in found.remembered:
        remembered.renumber(keys, events)
    return found


def _starts(counts: Sequence[int]) -> I64:
    return np.cumsum([0, *counts[:-1]])
