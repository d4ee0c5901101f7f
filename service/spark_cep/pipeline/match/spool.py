"""The packets of a batch for a key group, held in a bounded part of memory.

Packets stay in memory up to a bound and go to a temporary file from there on; events are then taken
up in slices of time, so that only those of one slice are objects at once. A batch within its bound
in bytes has one slice, and no file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from spark_cep.matcher.findings.partial import FOREVER

#: Bytes of packets that stay in memory.
_IN_MEMORY: Final = 32 << 20
#: Bytes of events that are taken up together.
SLICE: Final = 96 << 20
_T = TypeVar("_T")


class Spool(Generic[_T]):
    """Numbered packets that can be read again and again; ``read`` makes items of one. ``views``:
    items are views of their packets, so that those of packets in memory are kept, too."""

    def __init__(
        self,
        read: Callable[[int, bytes], Iterable[_T]],
        in_memory: int = _IN_MEMORY,
        *,
        views: bool = False,
    ) -> None:
        self._read = read
        self._views = views
        self._viewed: dict[int, list[_T]] = {}
        self._room = in_memory
        self._held: list[tuple[int, bytes]] = []
        self._file: IO[bytes] | None = None
        #: Of the packets in the file: number, place and size.
        self._in_file: list[tuple[int, int, int]] = []

    def add(self, number: int, packet: bytes) -> None:
        """Keep a packet."""
        self._room -= len(packet)
        if self._room >= 0:
            self._held.append((number, packet))
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=_scratch())  # noqa: SIM115  closed with the spool
        self._in_file.append((number, self._file.seek(0, os.SEEK_END), len(packet)))
        self._file.write(packet)

    def __iter__(self) -> Iterator[_T]:
        return self.items()

    def items(self, of: int | None = None) -> Iterator[_T]:
        """The items of the packets with the number ``of``, or of all."""
        for place, (number, packet) in enumerate(self._held):
            if of not in (None, number):
                continue
            if not self._views:
                yield from self._read(number, packet)
                continue
            if place not in self._viewed:
                self._viewed[place] = [*self._read(number, packet)]
            yield from self._viewed[place]
        for number, place, size in self._in_file:
            if self._file is not None and of in (None, number):
                self._file.seek(place)
                yield from self._read(number, self._file.read(size))

    def close(self) -> None:
        """Forget everything."""
        self._held, self._viewed, self._in_file = [], {}, []
        if self._file is not None:
            self._file.close()
            self._file = None


def slices(times: NDArray[np.int64], sizes: NDArray[np.int64], most: int = SLICE) -> list[int]:
    """Times, ascending, up to which events make slices of about ``most`` bytes; the last one is
    ``FOREVER``. Events of the same time are never separated."""
    if sizes.sum() <= most:
        return [FOREVER]
    order = np.argsort(times, kind="stable")
    times, sizes = times[order], sizes[order]
    number = (sizes.cumsum() - sizes) // most
    firsts = np.flatnonzero(number[1:] != number[:-1]) + 1
    ends = np.unique(times[firsts] - 1)
    return [*ends[ends >= times[0]].tolist(), FOREVER]


def _scratch() -> Path | None:
    """The first of Spark's folders for temporary files, or ``None`` for the system's."""
    folder = Path(os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0])
    return folder if folder.is_absolute() and folder.is_dir() else None
