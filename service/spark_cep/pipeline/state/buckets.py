"""Buckets: the keys of a partitioning within a key group, in as many entries as the state needs.

A bucket is a class of keys by hash. It has one entry of the state, its *base*, a block of packed
columns, and a second one with its *changes*: a block of each batch since the base was written, of
the keys that it has touched, as they were then. So a batch decodes, encodes and writes what it has
touched, and not what lies beside it. Blocks of changes are put together when they have become many,
and the base is written again, and the changes go, when they concern a good part of it.

Buckets become more while the state grows, so that none becomes large: linear hashing (Litwin,
1980), which splits some buckets and leaves the others where they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from spark_cep.columns.compilation import FOREVER, I64, NONE
from spark_cep.columns.loops.text_hash import place_hashes
from spark_cep.columns.texts import TextSet
from spark_cep.columns.vectors import Bytes, Flags, no_texts, texts_of, texts_together
from spark_cep.matcher.keys import KeysState
from spark_cep.matcher.keys_state import chosen, joined
from spark_cep.matcher.snapshot.stored_keys import StoredKeys

#: Of its keys, what share changes concern when a base is written again.
_LEAST_SHARE, _MOST_SHARE = 0.125, 0.375
#: How many blocks of changes are put together.
_LEAST_BLOCKS, _MOST_BLOCKS = 8, 16
#: Of hashes of keys.
_HASH_BITS = 32
#: Its multiples, without their whole part, are evenly spread.
_GOLDEN_RATIO = (5**0.5 - 1) / 2


def hashes_of(keys: Bytes) -> I64:
    """A number for each key, the same in every process: the upper half of its XXH64. What the keys
    of a key group have in common of it is, for most numbers of groups, in the lower half."""
    hashes = np.zeros(len(keys), np.int64)
    place_hashes(keys.data, keys.places, keys.nulls, hashes)
    return hashes >> 32 & 0xFFFF_FFFF


def buckets_of(hashes: I64, count: int) -> I64:
    """Return the bucket, of ``count``, of each hash (linear hashing)."""
    level = count.bit_length() - 1
    fine = hashes & ((2 << level) - 1)
    return np.where(fine < count, fine, hashes & ((1 << level) - 1))


def buckets_of_keys(keys: Bytes, count: int) -> I64:
    """Return the bucket, of ``count``, of each key."""
    if count == 1 or not len(keys):
        return np.zeros(len(keys), np.int64)
    return buckets_of(hashes_of(keys), count)


def possible_buckets(key: str | None) -> list[int]:
    """Return the buckets that a key may be in, whatever their number."""
    (found,) = hashes_of(texts_of([key])).tolist()
    return sorted({found & ((1 << level) - 1) for level in range(_HASH_BITS + 1)})


def homes_of(keys: Bytes, buckets: I64 | Sequence[int], count: int) -> I64:
    """For each key the place of its bucket, one of ``count``, in ``buckets``, which ascend."""
    return np.searchsorted(buckets, buckets_of_keys(keys, count))


@dataclass(frozen=True)
class Written:
    """The changes of some buckets. By bucket: whether it has ``changed``, whether its base is
    ``rewritten``, which ``older`` blocks of changes stay, and lower bounds of the times when
    something is due in the base and in the changes. ``changes`` has the newest block of those that
    are not rewritten, in which a key without instances has been removed; ``bases`` has all keys of
    the others; ``homes`` has the place of the bucket of each key of ``changes``."""

    changed: Flags
    rewritten: Flags
    older: list[Sequence[bytes]]
    base_due: I64
    changes_due: I64
    changes: KeysState
    homes: I64
    bases: KeysState


class StoredBuckets(NamedTuple):
    """Some buckets as they are stored. By bucket: its number; its base, if it has one; the blocks
    of its changes, oldest first; whether all of it has to be written; and the watermarks before
    which nothing is due of the base and of the changes."""

    numbers: I64
    bases: list[Sequence[bytes]]
    changes: list[Sequence[bytes]]
    rewritten: Flags
    base_due: I64
    changes_due: I64


class BucketKeys:
    """The keys of some buckets, of ``count`` in all, while a batch is at work on them. What is
    stored stays as it is: what the batch has made of keys is written as a new block of changes.
    When they have become many, changes are put together; when they concern a good part of the
    bucket, all of it is written."""

    def __init__(self, stored: StoredBuckets, count: int, rules: Mapping[int, int]) -> None:
        self._stored, self._count = stored, count
        self._base = StoredKeys(stored.bases, rules)
        self._changes = StoredKeys(stored.changes, rules)
        self._rewritten = stored.rewritten | self._base.forgotten | self._changes.forgotten
        self._due = stored.base_due.copy(), stored.changes_due.copy()
        self._taken = no_texts()
        self._given = KeysState()

    def take(self, keys: Bytes, watermark: int) -> KeysState:
        """Return the state of ``keys`` and of the keys that are due. The caller gives the new state
        back (:meth:`give`)."""
        base, changes = self._base, self._changes
        texts = [
            stored.texts(self._rows_due(stored, due, watermark))
            for stored, due in zip((base, changes), self._due, strict=True)
            if (due <= watermark).any()
        ]
        wanted = TextSet(keys, *texts)
        rows_of_base, of_base = base.find(wanted)
        newer = KeysState()
        if len(changes):
            rows_of_changes, of_changes = changes.find(wanted)
            newest = _last(rows_of_changes, of_changes, len(wanted))
            rows_of_base = rows_of_base[newest[of_base] == NONE]
            newer = changes.chosen(np.sort(newest[newest != NONE]))
        state = joined([base.chosen(rows_of_base), newer])
        self._taken = state.keys
        return state

    def _rows_due(self, stored: StoredKeys, due: I64, watermark: int) -> I64:
        """The rows of which something is due, in buckets where it may be. ``due`` moves on to what
        is due next there."""
        some = due <= watermark
        rows, of_rows = stored.due(some)
        later = of_rows > watermark
        due[some] = _least(stored.homes(rows[later]), of_rows[later], len(due))[some]
        return rows[~later]

    def give(self, state: KeysState) -> None:
        """Take back the new state of the keys that were taken, and that of new keys."""
        self._given = state

    def written(self) -> Written:
        """Return the changes to write."""
        base, changes, given, count = self._base, self._changes, self._given, len(self._rewritten)
        gone = self._taken
        if len(gone):
            gone = gone.take(np.flatnonzero(TextSet(given.keys).find(gone) == NONE))
        fresh = _with_gone(given, gone)
        homes = self._homes(fresh.keys)
        more = np.bincount(homes, minlength=count)
        changed = self._rewritten | (more > 0)
        # One bucket sooner, the other later, for otherwise a steady load would have all of them due
        # in the same batch.
        early = self._stored.numbers * _GOLDEN_RATIO % 1
        most = base.sizes * (_LEAST_SHARE + (_MOST_SHARE - _LEAST_SHARE) * early)
        blocks = np.array([len(each) for each in self._stored.changes])
        many = blocks >= _LEAST_BLOCKS + (_MOST_BLOCKS - _LEAST_BLOCKS) * early
        joint = changed & (self._rewritten | many | (changes.sizes + more >= most))
        rows, keys = _newest(changes, joint, fresh.keys)
        homes_of_rows = changes.homes(rows)
        of_changes = np.bincount(homes_of_rows, minlength=count)
        rewritten = self._rewritten | (joint & (of_changes + more >= most))
        to_base = rewritten[homes_of_rows]
        of_base = base.rows(rewritten)
        if len(of_base):
            of_base = of_base[keys.find(base.texts(of_base)) == NONE]
        beside = ~rewritten[homes]
        older, gone = changes.chosen(rows[~to_base]), changes.gone(rows[~to_base])
        block = _with_gone(joined([older, chosen(fresh, beside)]), gone)
        mine = rewritten[homes[: len(given.keys)]]
        bases = [base.chosen(of_base), changes.chosen(rows[to_base]), chosen(given, mine)]
        base_due, changes_due = self._due
        return Written(
            changed=changed,
            rewritten=rewritten,
            older=[
                () if put_together else each
                for put_together, each in zip(joint.tolist(), self._stored.changes, strict=True)
            ],
            base_due=base_due,
            changes_due=np.minimum(changes_due, due_by_bucket(given, homes, count)),
            changes=block,
            homes=np.concatenate([self._homes(older.keys), homes[beside], self._homes(gone)]),
            bases=joined(bases),
        )

    def _homes(self, keys: Bytes) -> I64:
        return homes_of(keys, self._stored.numbers, self._count)


def whole(
    bases: Sequence[Sequence[bytes]], changes: Sequence[Sequence[bytes]], rules: Mapping[int, int]
) -> KeysState:
    """All that some buckets hold."""
    stored, beside = StoredKeys(bases, rules), StoredKeys(changes, rules)
    every = np.ones(len(bases), bool)
    rows, keys = _newest(beside, every, no_texts())
    of_base = stored.rows(every)
    of_base = of_base[keys.find(stored.texts(of_base)) == NONE]
    return joined([stored.chosen(of_base), beside.chosen(rows)])


def _newest(changes: StoredKeys, buckets: Flags, replaced: Bytes) -> tuple[I64, TextSet]:
    """The rows of some buckets' changes that no later ones replace, nor keys that are ``replaced``
    anyway; and all of their keys."""
    rows = changes.rows(buckets)
    keys = TextSet(changes.texts(rows), replaced)
    if not len(rows):
        return rows, keys
    newest = _last(rows, keys.numbers[: len(rows)], len(keys))
    newest[keys.numbers[len(rows) :]] = NONE
    return np.sort(newest[newest != NONE]), keys


def _last(rows: I64, keys: I64, count: int) -> I64:
    """Return the last row of each of ``count`` keys, ``NONE`` for a key without rows. ``keys`` are
    the rows' keys, ascending."""
    last = np.full(count, NONE, np.int64)
    last[keys] = rows
    return last


def _with_gone(state: KeysState, gone: Bytes) -> KeysState:
    """The state, and keys of which nothing is remembered."""
    if not len(gone):
        return state
    return replace(state, keys=texts_together([state.keys, gone]))


def due_by_bucket(state: KeysState, homes: I64, count: int) -> I64:
    """Return the time when a key of each bucket is next due; ``FOREVER`` for never."""
    due = np.full(count, FOREVER, np.int64)
    for part in state.remembered:
        if len(part.instances):
            due = np.minimum(due, _least(homes[part.instances["key"]], part.due, count))
    return due


def _least(homes: I64, due: I64, count: int) -> I64:
    found = np.full(count, FOREVER, np.int64)
    np.minimum.at(found, homes, due)
    return found
