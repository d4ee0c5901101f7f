"""Slots of keys: linear hashing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.matcher.columnar.keys import KeysState
from service.pipeline.entries import Spread
from service.pipeline.slots import Part, hashes_of, slots_of

HASHES = hashes_of([None, *map(str, range(5_000))])


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13, 1_000])
def test_every_slot_is_used(count: int) -> None:
    """And none more than its class of hashes is large: at most twice the others, but for chance."""
    used = np.bincount(slots_of(HASHES, count), minlength=count)
    assert len(used) == count
    assert used.min() > 0 or count == 1_000
    assert used.max() <= 4 * len(HASHES) / count + 10


@given(st.integers(1, 300), st.integers(0, 300))
def test_more_slots_split_some(before: int, more: int) -> None:
    """A key stays where it is, or goes where its slot was split to."""
    after = before + more
    spread = Spread("p", before, after)
    was, now = slots_of(HASHES, before), slots_of(HASHES, after)
    for one, other in {*zip(was.tolist(), now.tolist(), strict=True)}:
        assert one == other or other in spread.split[one]
    targets = [slot for slots in spread.split.values() for slot in slots]
    assert len(targets) == len(set(targets))
    assert set(range(before, after)) <= set(targets) <= set(range(after))


def test_a_slot_that_is_split() -> None:
    """All its keys are in one of the new slots; those that get nothing are there, empty."""
    spread = Spread("p", 1, 3)
    entries = dict.fromkeys(("a", "b", "c", "d"), (1, b""))
    parts = dict(spread.divided(0, Part(dict(entries), KeysState())))
    assert parts.keys() == {0, 1, 2}
    assert {key for part in parts.values() for key in part.entries} == entries.keys()
    for slot, part in parts.items():
        assert slots_of(hashes_of(part.entries), 3).tolist() == [slot] * len(part.entries)
    assert spread.divided(0, Part())[1][1].size == 0
