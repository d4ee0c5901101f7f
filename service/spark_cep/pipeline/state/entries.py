"""The entries of a key group's map: their names, and what is known of each without reading it.

A name begins with the partitioning's prefix: ``p/3`` is the base of bucket 3, ``p/3+`` its changes,
``p/w5`` holds events ahead of the watermark. What is stored is compressed: a batch that touches
many buckets spends most of its time on the way of their bytes through Spark.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count as numbers_from
from types import MappingProxyType
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from spark_cep.columns.compilation import FOREVER, NEVER
from spark_cep.errors import RESTORE, StateError, damaged_state, printable
from spark_cep.pipeline.state.buckets import buckets_of

#: The values of many entries at once.
Load = Callable[[Sequence[str]], Sequence[bytes | None]]
Store = Callable[[str, bytes | None], None]
#: Whether what buckets of a partitioning, by prefix, hold means what it meant under a fingerprint.
SameBuckets = Callable[[bytes, str], bool]

#: Of 80 KB of keys half is left, and read in 11 µs; Zstandard leaves a third, and takes 65 µs.
_CODEC: Final = pa.Codec("lz4_raw")
#: A byte of LZ4 stands for so many at most.
_LZ4_MOST: Final = 255
#: What the names of changes end with.
CHANGES = "+"
_WAITING = "w"
#: Of the names of a partitioning's entries.
PREFIX_LENGTH = 8


class EntryMap(Protocol):
    """The entries of one key group."""

    def get(self, names: Sequence[str], /) -> Sequence[bytes | None]:
        """The values of these names; ``None`` for those that there are not."""

    def put(self, values: Sequence[tuple[str, bytes | None]], /) -> None:
        """Write values, and remove the names without one."""


def base_name(prefix: str, bucket: int) -> str:
    """The entry of a bucket's base."""
    return f"{prefix}/{bucket}"


def bucket_of(name: str) -> int | None:
    """The bucket that an entry is of; ``None`` for events that wait."""
    rest = name.partition("/")[2]
    try:
        return None if rest.startswith(_WAITING) else int(rest.removesuffix(CHANGES))
    except ValueError:
        raise damaged_state(f"an entry of a key group is called {printable(name)}") from None


def check_entry(group: int, name: str, stored: bytes | None, size: int, checksum: int) -> bytes:
    """The value, of ``size`` bytes, of an entry of key group ``group``, whose state has this
    checksum of what is ``stored``. StateError when it is lost, or not what was written last."""
    if stored is None:
        raise StateError(
            f"the state lacks entry {name} of key group {group}, which it knows of: it is damaged;"
            f" {RESTORE}"
        )
    if checksum_of(stored) != checksum:
        raise StateError(
            f"the state is damaged: entry {name} of key group {group} is not what was written last,"
            f" its checksum is another; {RESTORE}"
        )
    try:
        # A larger size would make room for bytes that there are not.
        if size <= _LZ4_MOST * len(stored):
            value: bytes = _CODEC.decompress(stored, size, asbytes=True)
            return value
    except OSError:
        pass
    raise damaged_state(f"entry {name} of key group {group} has not {size} bytes")


def compressed(data: bytes) -> bytes:
    """The value of an entry as it is stored."""
    found: bytes = _CODEC.compress(data, asbytes=True)
    return found


def checksum_of(stored: bytes) -> int:
    """The checksum of what is stored of an entry."""
    return zlib.crc32(stored)


class Entries:
    """The entries of a key group: the earliest time at which each may be due, its bytes, and its
    checksum as stored; the number of buckets of each partitioning; the entries written under
    another rule set, and that set.

    ``fingerprints``: what bits and columns mean under this rule set, by prefix.
    """

    def __init__(self, group: int, fingerprints: Mapping[str, bytes]) -> None:
        self._group = group
        self._fingerprints = fingerprints
        self._due: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        self._checksums: dict[str, int] = {}
        #: The number of events in each entry of those that wait.
        self._waiting: dict[str, int] = {}
        self._buckets: dict[str, int] = {}
        #: By name, the fingerprint of the rule set.
        self._stale: dict[str, bytes] = {}

    def restore(self, stored: Mapping[str, Any], same_buckets: SameBuckets) -> None:
        """Take over what :meth:`packed` gave under the rule set before. Buckets hold columns
        and what rules have, what waits has bits, too."""
        self._buckets = stored["buckets"]
        self._stale = stored["stale"]
        self._waiting = stored["waiting"]
        for name, (due, size, checksum) in stored["entries"].items():
            self._due[name], self._sizes[name], self._checksums[name] = due, size, checksum
            prefix = name.partition("/")[0]
            written_under = stored["fingerprints"].get(prefix)
            if written_under is None:
                raise damaged_state(f"an entry of a key group is called {printable(name)}")
            was = self._stale.pop(name, written_under)
            same = was == self._fingerprints.get(prefix)
            if not same and (bucket_of(name) is None or not same_buckets(was, prefix)):
                self._stale[name] = was

    def packed(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "entries": {
                name: [due, self._sizes[name], self._checksums[name]]
                for name, due in self._due.items()
            },
            "buckets": self._buckets,
            "fingerprints": dict(self._fingerprints),
            "stale": self._stale,
            "waiting": self._waiting,
        }

    @property
    def events_waiting(self) -> int:
        """The number of events that wait for the watermark, in all partitionings."""
        return sum(self._waiting.values())

    def meanings_needed(self) -> set[bytes]:
        """Fingerprints of this rule set, and of those that entries were written under."""
        return {*self._stale.values(), *self._fingerprints.values()}

    def __contains__(self, name: str) -> bool:
        return name in self._due

    def due(self, prefix: str, watermark: int) -> list[str]:
        """The entries of a partitioning of which something may be due."""
        return [
            name
            for name, due in self._due.items()
            if due <= watermark and name.partition("/")[0] == prefix
        ]

    def waiting(self, prefix: str, watermark: int) -> list[tuple[int, int]]:
        """Return the time and the bytes of each entry of waiting events that is due."""
        return [
            (self._due[name], self._sizes[name])
            for name in self.due(prefix, watermark)
            if bucket_of(name) is None
        ]

    def loaded(self, names: Sequence[str], load: Load) -> Sequence[bytes]:
        """The values of entries that there are. StateError when one is lost or another."""
        return [
            check_entry(self._group, name, stored, self._sizes[name], self._checksums[name])
            for name, stored in zip(names, load(names), strict=True)
        ]

    def keep_waiting(self, name: str, data: bytes, due: int, events: int, store: Store) -> None:
        """Write an entry of events that wait for the watermark, so many of them."""
        self.keep(name, data, due, store)
        self._waiting[name] = events

    def keep(self, name: str, data: bytes, due: int, store: Store) -> None:
        """Write an entry."""
        stored = compressed(data)
        store(name, stored)
        self._due[name], self._sizes[name] = due, len(data)
        self._checksums[name] = checksum_of(stored)
        self._stale.pop(name, None)

    def next_due(self, name: str, due: int) -> None:
        """Set the earliest time at which an unchanged entry, if it exists, may be due."""
        if name in self._due:
            self._due[name] = due

    def sooner(self, prefix: str, by: int | None) -> None:
        """Move the earliest due times of a partitioning's buckets forward by ``by`` milliseconds,
        or, with ``None``, to now."""
        for name, due in self._due.items():
            if bucket_of(name) is not None and name.partition("/")[0] == prefix:
                if by is None:
                    self._due[name] = NEVER
                elif due != FOREVER:
                    self._due[name] = due - by

    def due_of(self, name: str) -> int:
        """Before when nothing of an entry is due; ``FOREVER`` where there is no such entry."""
        return self._due.get(name, FOREVER)

    def stale(self, name: str) -> bytes | None:
        """The fingerprint of what columns meant where an entry was written, if they mean something
        else now."""
        return self._stale.get(name)

    def outdated(self, prefix: str, meanings: int, most: int) -> list[int]:
        """Buckets to be written under this rule set though nothing touches them: where they were
        written under more than so many others, at most ``most`` of those that the fewest share."""
        by_meaning: dict[bytes, list[int]] = {}
        for name, meaning in self._stale.items():
            bucket = bucket_of(name)
            if bucket is not None and name.partition("/")[0] == prefix:
                by_meaning.setdefault(meaning, []).append(bucket)
        if len(by_meaning) <= meanings:
            return []
        return min(by_meaning.values(), key=len)[:most]

    def remove(self, name: str, store: Store) -> None:
        """Remove an entry, if there is one."""
        if name in self._due:
            store(name, None)
            del self._due[name], self._sizes[name], self._checksums[name]
            self._stale.pop(name, None)
            self._waiting.pop(name, None)

    def remove_others(self, store: Store) -> None:
        """Remove what partitionings have left that this rule set does not have."""
        for name in [n for n in self._due if n.partition("/")[0] not in self._fingerprints]:
            self.remove(name, store)
        for prefix in self._buckets.keys() - self._fingerprints.keys():
            del self._buckets[prefix]

    def free_for_waiting(self, prefix: str) -> Iterator[str]:
        """Names of entries to come, for events that wait."""
        names = (f"{prefix}/{_WAITING}{number}" for number in numbers_from(0))
        return (name for name in names if name not in self._due)

    # Buckets.

    def spread(self, prefix: str, bucket_size: int, least: int = 1) -> Spread:
        """Return the present number of buckets, and the number from now on with which a bucket has
        ``bucket_size`` bytes, and that is ``least`` or more."""
        before = self._buckets.get(prefix, 1)
        size = sum(
            size
            for name, size in self._sizes.items()
            if name.partition("/")[0] == prefix and bucket_of(name) is not None
        )
        after = self._buckets[prefix] = max(before, size // bucket_size, least)
        return Spread(prefix, before, after)

    def portions(
        self,
        spread: Spread,
        buckets: Iterable[int],
        most: int,
        more: Mapping[int, float] = MappingProxyType({}),
    ) -> Iterator[list[int]]:
        """Buckets in portions of about ``most`` bytes: those that are stored, and ``more`` by
        bucket."""
        portion: list[int] = []
        total = 0.0
        for bucket in buckets:
            total += more.get(bucket, 0)
            total += sum(self._sizes.get(name, 0) for name in spread.names(bucket))
            portion.append(bucket)
            if total >= most:
                yield portion
                portion, total = [], 0.0
        if portion:
            yield portion


class Spread:
    """The buckets of a partitioning: ``before`` of them until now, ``after`` from now on."""

    def __init__(self, prefix: str, before: int, after: int) -> None:
        self.prefix = prefix
        self.before = before
        self.after = after
        #: Of buckets that are split: where their keys go.
        self.split: dict[int, list[int]] = {}
        if after > before:
            parents = buckets_of(np.arange(before, after), before)
            for bucket, parent in enumerate(parents.tolist(), before):
                self.split.setdefault(parent, [parent]).append(bucket)

    def names(self, bucket: int) -> tuple[str, str]:
        """The entries of a bucket: its base, and what has changed since that was written."""
        base = base_name(self.prefix, bucket)
        return base, base + CHANGES

    def targets(self, bucket: int) -> list[int]:
        """The buckets that its keys are in from now on."""
        return self.split.get(bucket, [bucket])
