"""Buckets of keys: linear hashing, and what stands beside the base of a bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.columns.compilation import FOREVER, NEVER
from spark_cep.columns.vectors import texts_of
from spark_cep.matcher.keys import KeysState
from spark_cep.matcher.keys_state import joined
from spark_cep.matcher.snapshot.written_state import encode
from spark_cep.matcher.steps.held import INSTANCE, Held
from spark_cep.packing import unpack
from spark_cep.pipeline.state.bucket_storage import BucketStorage
from spark_cep.pipeline.state.buckets import (
    BucketKeys,
    StoredBuckets,
    Written,
    buckets_of,
    hashes_of,
    possible_buckets,
    whole,
)
from spark_cep.pipeline.state.entries import Entries, Spread
from tests.matcher.texts import texts_in

HASHES = hashes_of(texts_of([None, *map(str, range(5_000))]))


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


@pytest.mark.parametrize("key", [None, "7", "user-00000007"])
def test_a_key_is_in_a_possible_bucket(key: str | None) -> None:
    """Whatever the number of buckets."""
    possible = possible_buckets(key)
    for count in (*range(1, 70), 1_000, 1 << 20):
        assert int(buckets_of(hashes_of(texts_of([key])), count)[0]) in possible


def remembering(keys: Sequence[str | None], *deadlines: int) -> KeysState:
    """A state that remembers something of each key, due at the ``deadlines``, or 1, 2, 3 …."""
    instances = np.zeros(len(keys), INSTANCE)
    instances["key"] = np.arange(len(keys))
    instances["deadline"] = deadlines or np.arange(len(keys)) + 1
    instances["quiet"] = NEVER
    return KeysState(texts_of(keys), held=Held.nothing()._replace(instances=instances))


def block(keys: Sequence[str], gone: Sequence[str] = ()) -> bytes:
    """Keys as they are stored, something being remembered of each but those that are ``gone``;
    their deadlines count from 1."""
    state = remembering(keys)
    return encode(replace(state, keys=texts_of([*keys, *gone])), [3])[0]


def dues(state: KeysState) -> dict[str | None, int]:
    """The deadline of each key."""
    return {
        state.keys.text(instance["key"]): int(instance["deadline"])
        for instance in state.held.instances
    }


def of_bucket(bucket: int, count: int = 2) -> list[str]:
    """Keys of one of ``count`` buckets."""
    keys = [str(number) for number in range(200 * count)]
    homes = buckets_of(hashes_of(texts_of(keys)), count).tolist()
    return [key for key, home in zip(keys, homes, strict=True) if home == bucket]


def beginning(
    bases: Sequence[Sequence[bytes]], changes: Sequence[Sequence[bytes]], *rewritten: bool
) -> BucketKeys:
    """A batch begins."""
    count = len(bases)
    due = np.zeros(count, np.int64)
    stored = StoredBuckets(
        np.arange(count),
        list(bases),
        list(changes),
        np.array(rewritten or [False] * count),
        due,
        due,
    )
    return BucketKeys(stored, count, {3: 0})


def read(written: Written) -> dict[str | None, int]:
    """What the newest block of changes says, a key that is gone being due never."""
    return {**dict.fromkeys(texts_in(written.changes.keys), FOREVER), **dues(written.changes)}


def test_changes_replace_the_base() -> None:
    """The newest block of changes that names a key says what is remembered of it."""
    bases = [[block("abcd")], [block("pq")]]
    changes = [[block("xba"), block("b", gone=["a"])], []]
    state = whole(bases, changes, {3: 0})
    assert dues(state) == {"c": 3, "d": 4, "x": 1, "b": 1, "p": 1, "q": 2}


def test_keys_are_taken_and_given_back() -> None:
    """What becomes of keys that are wanted is a new block beside the older ones, and what does not
    come back is gone. The other bucket is not written."""
    one, other = of_bucket(0), of_bucket(1)
    older = block(one[1:2], gone=one[2:3])
    keys = beginning([[block(one[:90])], [block(other)]], [[older], []])
    taken = keys.take(texts_of({*one[:4], one[90]}), watermark=0)
    assert dues(taken) == {one[0]: 1, one[1]: 1, one[3]: 4}
    keys.give(remembering([one[90], one[3]]))
    written = keys.written()
    assert written.changed.tolist() == [True, False]
    assert written.rewritten.tolist() == [False, False]
    assert written.older[0] == [older]
    assert read(written) == {one[90]: 1, one[3]: 2, one[0]: FOREVER, one[1]: FOREVER}
    assert written.homes.tolist() == [0] * 4
    assert texts_in(written.bases.keys) == []
    # Not before: what was taken is among what stays.
    assert written.base_due.tolist() == [1, 1]
    assert written.changes_due.tolist() == [1, FOREVER]


def test_keys_that_are_due_are_taken() -> None:
    """Of base and changes, but not of a base that changes replace; and what is due next is found
    without what was due."""
    bases, changes = [[block("abc")]], [[block("xa")]]
    keys = beginning(bases, changes)
    assert dues(keys.take(texts_of(()), watermark=1)) == {"x": 1, "a": 2}
    keys.give(remembering("a", 5))
    assert keys.written().base_due.tolist() == [2]
    keys = beginning(bases, changes)
    assert dues(keys.take(texts_of(()), watermark=2)) == {"b": 2, "x": 1, "a": 2}
    keys = beginning(bases, changes)
    assert not len(keys.take(texts_of(["other"]), watermark=0).keys)
    written = keys.written()
    assert not written.changed.any()
    assert [*written.base_due, *written.changes_due] == [1, 1]


def test_a_base_is_written_again() -> None:
    """When a good part of it has changed, or all of it is to be written anyway."""
    one, other = of_bucket(0), of_bucket(1)
    keys = beginning([[block(one[:4])], [block(other)]], [[block(one[4:5])], []], False, True)
    keys.take(texts_of(one[:2]), watermark=0)
    keys.give(remembering([one[1]]))
    written = keys.written()
    assert written.rewritten.tolist() == [True, True]
    assert texts_in(written.changes.keys) == []
    expected = {one[2]: 3, one[3]: 4, one[4]: 1, one[1]: 1}
    assert dues(written.bases) == expected | {key: n for n, key in enumerate(other, 1)}


def test_what_rules_that_are_gone_have_left_is_not_kept() -> None:
    """The bucket is written without it."""
    instances = remembering(["a", "b"])
    instances.held.instances["rule"] = [0, 1]
    (stored,) = encode(instances, [3, 4])
    keys = beginning([[stored]], [[]])
    assert texts_in(keys.take(texts_of(["b"]), watermark=0).keys) == []
    assert dues(keys.written().bases) == {"a": 1}


class Rules:
    """One rule."""

    def numbers(self, fingerprints: Sequence[str]) -> list[int]:
        """What rules are called in what is stored."""
        return [3] * len(fingerprints)


ANY_KEY = st.sampled_from([None, *"abcdefghijklm"])
BATCHES = st.lists(
    st.tuples(st.dictionaries(ANY_KEY, st.integers(0, 12)), st.sets(ANY_KEY), st.booleans()),
    max_size=24,
)


@given(BATCHES)
def test_batches_after_one_another(batches: list[Any]) -> None:
    """Whatever batches make of keys, the next one finds: a plain mapping of keys to deadlines says
    what. With each, time moves on by one, and sometimes there is a bucket more."""
    expected: dict[str | None, int] = {}
    entries = Entries(0, {"p": b""})
    kept: dict[str, bytes | None] = {}

    def load(names: Sequence[str]) -> list[bytes | None]:
        return [kept[name] for name in names]

    count = 1
    for now, (came, wanted, grow) in enumerate(batches):
        spread = Spread("p", count, count + grow)
        rules: Any = Rules()
        storage = BucketStorage(entries, spread, ["f"], rules)
        keys = storage.read(range(count), load)
        asked = {*came, *wanted}
        taken = dues(keys.take(texts_of(asked), watermark=now))
        due = {key for key, deadline in expected.items() if deadline <= now}
        must = {key: d for key, d in expected.items() if key in asked or key in due}
        assert must.items() <= taken.items() <= expected.items()
        # What was wanted, but did not come, is forgotten, and so is what was due.
        became = {key: d for key, d in taken.items() if key not in asked | due} | came
        keys.give(remembering(list(became), *became.values()))
        storage.write(range(count), keys.written(), kept.__setitem__)
        expected = {key: d for key, d in expected.items() if key not in taken} | became
        count = spread.after
        names = [spread.names(bucket) for bucket in range(count)]
        every = [name for pair in names for name in pair if name in entries]
        values = dict(zip(every, entries.loaded(every, load), strict=True))
        found = [
            whole(
                [[values[base]] if base in values else []],
                [unpack(values[changes]) if changes in values else []],
                {3: 0},
            )
            for base, changes in names
        ]
        assert dues(joined(found)) == expected
        for (base, changes), state in zip(names, found, strict=True):
            soonest = min(int(part.due.min(initial=FOREVER)) for part in state.remembered)
            known = min(entries.due_of(base), entries.due_of(changes))
            assert soonest >= known > now or soonest <= now
