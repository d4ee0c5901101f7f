"""Buckets of keys: linear hashing, and what stands beside the base of a bucket."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.matcher.columnar.compilation import FOREVER, NEVER
from service.matcher.columnar.keys import KeysState
from service.matcher.columnar.matcher import UNIT, Held
from service.matcher.columnar.snapshot import StoredKeys, encode
from service.matcher.columnar.texts import TextSet
from service.pipeline.state.buckets import BucketKeys, buckets_of, hashes_of, whole
from service.pipeline.state.entries import Spread

HASHES = hashes_of([None, *map(str, range(5_000))])


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13, 1_000])
def test_every_bucket_is_used(count: int) -> None:
    """And none more than its class of hashes is large: at most twice the others, but for chance."""
    used = np.bincount(buckets_of(HASHES, count), minlength=count)
    assert len(used) == count
    assert used.min() > 0 or count == 1_000
    assert used.max() <= 4 * len(HASHES) / count + 10


@given(st.integers(1, 300), st.integers(0, 300))
def test_more_buckets_split_some(before: int, more: int) -> None:
    """A key stays where it is, or goes where its bucket was split to."""
    after = before + more
    spread = Spread("p", before, after)
    was, now = buckets_of(HASHES, before), buckets_of(HASHES, after)
    for one, other in {*zip(was.tolist(), now.tolist(), strict=True)}:
        assert one == other or other in spread.split[one]
    targets = [bucket for buckets in spread.split.values() for bucket in buckets]
    assert len(targets) == len(set(targets))
    assert set(range(before, after)) <= set(targets) <= set(range(after))


def remembering(keys: Sequence[str]) -> KeysState:
    """A state that remembers something of each key, due at 1, 2, 3 …."""
    units = np.zeros(len(keys), UNIT)
    units["key"] = np.arange(len(keys))
    units["deadline"] = np.arange(len(keys)) + 1
    units["quiet"] = NEVER
    return KeysState(list(keys), held=Held.nothing()._replace(units=units))


def stored(*buckets: Sequence[str], gone: Sequence[str] = ()) -> StoredKeys:
    """Keys as they are stored, something being remembered of each but those that are ``gone``;
    their deadlines count from 1 in each bucket."""
    blocks = []
    for keys in buckets:
        state = remembering(keys)
        state.keys += gone
        blocks += encode(state, [3])
    return StoredKeys(blocks, {3: 0})


def dues(state: KeysState) -> dict[str | None, int]:
    """The deadline of each key."""
    return {state.keys[unit["key"]]: int(unit["deadline"]) for unit in state.held.units}


def beginning(base: StoredKeys, changes: StoredKeys, *anew: bool) -> BucketKeys:
    """A batch begins."""
    return BucketKeys(np.arange(len(anew)), base, changes, np.array(anew))


def test_changes_replace_the_base() -> None:
    """A key that has changed is as its changes say, one that is gone is not there."""
    base, changes = stored("abcd", "pq"), stored("xb", "", gone=["a"])
    state, homes = whole(base, changes)
    assert dues(state) == {"c": 3, "d": 4, "x": 1, "b": 2, "p": 1, "q": 2}
    found = dict(zip(state.keys, homes.tolist(), strict=True))
    assert found == {"c": 0, "d": 0, "x": 0, "b": 0, "p": 1, "q": 1}


def test_keys_are_taken_and_given_back() -> None:
    """Keys that are wanted leave base and changes; what is given stands beside the base, and what
    does not come back is gone. The other bucket is not written."""
    many = [f"more {number}" for number in range(40)]
    keys = beginning(stored(["a", "b", "c", "d", *many], "pq"), stored("xb", ""), False, False)
    taken = keys.take(TextSet.of({"c", "a", "b"}), watermark=0)
    assert dues(taken) == {"a": 1, "c": 3, "b": 2}
    keys.give(remembering("nc"), np.array([0, 0]))
    written = keys.written()
    assert written.changed.tolist() == [True, False]
    assert written.anew.tolist() == [False, False]
    assert sorted(key or "" for key in written.changes.keys) == ["a", "b", "c", "n", "x"]
    assert dues(written.changes) == {"x": 1, "n": 1, "c": 2}
    assert written.homes_of_changes.tolist() == [0] * 5
    assert written.bases.keys == []
    assert written.base_due.tolist() == [4, 1]  # of "d", and of "p"
    assert written.changes_due.tolist() == [1, FOREVER]


def test_keys_that_are_due_are_taken() -> None:
    """Of base and changes, but not of a base that changes replace."""
    keys = beginning(stored("abc"), stored("xa"), False)
    assert dues(keys.take(TextSet.of(()), watermark=1)) == {"x": 1}
    assert dues(keys.take(TextSet.of(()), watermark=2)) == {"b": 2, "a": 2}
    keys = beginning(stored("abc"), stored("xa"), False)
    assert not keys.take(TextSet.of(["other"]), watermark=0).keys
    assert not keys.written().changed.any()


def test_a_base_is_written_again() -> None:
    """When a good part of it has changed, or all of it is to be written anyway."""
    keys = beginning(stored("abcd", "pq"), stored("x", ""), False, True)
    keys.take(TextSet.of(["a", "b"]), watermark=0)
    keys.give(remembering("b"), np.array([0]))
    written = keys.written()
    assert written.anew.tolist() == [True, True]
    assert written.changes.keys == []
    assert dues(written.bases) == {"c": 3, "d": 4, "x": 1, "b": 1, "p": 1, "q": 2}
    homes = dict(zip(written.bases.keys, written.homes_of_bases.tolist(), strict=True))
    assert homes == {"c": 0, "d": 0, "x": 0, "b": 0, "p": 1, "q": 1}
