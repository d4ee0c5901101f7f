"""The compilation of loops, and the types of arrays and constants that all of them share."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numba.core.event import Event, Listener, install_listener, trigger_event
from numpy.typing import NDArray

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
#: An array of records.
Table = NDArray[np.void]

FOREVER = (1 << 63) - 1
NEVER = -(1 << 63)
NONE = -1
_LONG_SECONDS = 1.0
_COMPILING = "numba:compile"
_ELSEWHERE = "elsewhere"

#: Nothing in the loops makes arrays, and the caller keeps those that it hands in. Without the
#: runtime that counts references to arrays, at each call of each function, the loops take a sixth
#: of the time.
_COMPILER: dict[str, Any] = {"error_model": "numpy", "_nrt": False}


def record(**fields: str) -> np.dtype[np.void]:
    """The type of a record with these fields."""
    return np.dtype(list(fields.items()), align=True)


def compiled(function: Callable[..., Any]) -> Any:
    """The function, compiled at its first call."""
    try:
        dispatcher = njit(function, cache=True, **_COMPILER)
    except RuntimeError:
        # No folder to keep the result in can be written: every process compiles again.
        NOT_KEPT.add(function.__qualname__)
        return njit(function, **_COMPILER)
    folder = Path(dispatcher._cache.cache_path)  # noqa: SLF001  see below
    if open_to_others(folder):
        # What is kept is run as it is. `prepare` tells of it.
        OPEN_FOLDERS.add(folder)
        return njit(function, **_COMPILER)
    _stamp(dispatcher)
    _load_if_possible(dispatcher)
    _save_if_possible(dispatcher)
    return dispatcher


class _Compilations(Listener):
    """Listens for functions that are compiled; ``begins`` is called when this takes long."""

    def __init__(self, begins: Callable[[], None]) -> None:
        self._begins = begins
        self.first: float | None = None
        self.is_long = False

    def on_start(self, event: Event) -> None:
        now = time.monotonic()
        if self.first is None:
            self.first = now
        # A function's own compilation begins with those of the functions that it calls.
        long = now - self.first > _LONG_SECONDS or event.data == _ELSEWHERE
        if long and not self.is_long:
            self.is_long = True
            self._begins()

    def on_end(self, event: Event) -> None:
        """See :meth:`on_start`."""


@contextmanager
def compilation_noticed(
    begins: Callable[[], None], ends: Callable[[float], None]
) -> Iterator[None]:
    """Call ``begins`` once compiling in the block has taken a second, and ``ends`` with the seconds
    that it took in all; neither where everything is loaded."""
    listener = _Compilations(begins)
    with install_listener(_COMPILING, listener):
        yield
    if listener.is_long and listener.first is not None:
        ends(time.monotonic() - listener.first)


@contextmanager
def compiled_elsewhere() -> Iterator[None]:
    """Tell :func:`compilation_noticed` that other processes compile in the block, for long."""
    with trigger_event(_COMPILING, _ELSEWHERE):
        yield


class _Refusal(Listener):
    """Gives up what would have to be compiled."""

    refused = False

    def on_start(self, event: Event) -> None:  # noqa: ARG002  Numba's
        self.refused = True
        # Numba makes other errors of an Exception that comes in a compilation.
        raise KeyboardInterrupt

    def on_end(self, event: Event) -> None:
        """See :meth:`on_start`."""


def is_loaded_by(load: Callable[[], None]) -> bool:
    """Call ``load``, and return whether it needs nothing but compiled code that is kept; the first
    function that would have to be compiled ends it."""
    refusal = _Refusal()
    try:
        with install_listener(_COMPILING, refusal):
            load()
    except KeyboardInterrupt:
        if not refusal.refused:
            raise
    return not refusal.refused


_must_be_kept = False


@contextmanager
def all_kept() -> Iterator[None]:
    """Raise OSError in the block where compiled code cannot be kept."""
    global _must_be_kept  # noqa: PLW0603  Numba calls back without arguments of ours
    _must_be_kept = True
    try:
        yield
    finally:
        _must_be_kept = False


def _save_if_possible(dispatcher: Any) -> None:
    """Let a process compile again what a full or read-only folder lacks."""
    kept = dispatcher._cache  # noqa: SLF001  as in _stamp
    save = kept.save_overload

    def saved(*compiled: Any) -> None:
        try:
            with _alone(Path(kept.cache_path)):
                save(*compiled)
        except OSError:
            if _must_be_kept:
                raise

    kept.save_overload = saved


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process at a time write into a folder. To add what is compiled for a signature, Numba
    reads a function's index, takes the next number, and writes both: of two processes at once, the
    index of one could name the code of the other."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _load_if_possible(dispatcher: Any) -> None:
    """Compile again where the cache was written by a version with other types of arguments.

    Numba unpickles the index of a function, which names these types, before it compares stamps.
    """
    kept = dispatcher._cache  # noqa: SLF001  as in _stamp
    load = kept.load_overload

    def loaded(*signature: Any) -> Any:
        try:
            return load(*signature)
        except (AttributeError, ImportError):
            kept.flush()
            return None

    kept.load_overload = loaded


#: Functions for whose code there is no folder.
NOT_KEPT: set[str] = set()
#: Folders of compiled code that other users can write, and that are not used therefore.
OPEN_FOLDERS: set[Path] = set()


@cache
def open_to_others(folder: Path) -> bool:
    """Return whether another user than this one, the administrator and the owner of this code can
    put something into a folder, or has done so. A group that can write the code is no other."""
    source = Path(__file__).parent.stat()
    try:
        found = folder.stat()
        inside = [entry.stat() for entry in os.scandir(folder)]
    except FileNotFoundError:
        # Made when it is needed, by this user.
        return False
    trusted = {0, os.geteuid(), source.st_uid}
    by_group = found.st_mode & stat.S_IWGRP and not (
        source.st_mode & stat.S_IWGRP and source.st_gid == found.st_gid
    )
    by_all = any(each.st_mode & stat.S_IWOTH for each in (found, *inside))
    return bool(by_group or by_all) or not {each.st_uid for each in (found, *inside)} <= trusted


def inlined(function: Callable[..., Any]) -> Any:
    """The function as a part of those that call it. A call hands on each array that it is given as
    seven words: what runs for each event and is called in one place is two to three times as quick
    so."""
    return njit(function, inline="always", **_COMPILER)


def _stamp(dispatcher: Any) -> None:
    """Tie what is kept of the function to all compiled sources.

    Numba ties it to the function's own file, and would go on using a function that has a called one
    of another file built in after that file has changed.
    """
    kept = dispatcher._cache  # noqa: SLF001  Numba has no public way; its version is pinned
    kept._source_stamp = _sources()  # noqa: SLF001
    kept._cache_file._source_stamp = _sources()  # noqa: SLF001


@cache
def _sources() -> str:
    """The digest of all compiled code: this module, and whatever stands in folders ``loops``."""
    here = Path(__file__)
    digest = hashlib.sha256(here.read_bytes())
    for path in sorted(here.parents[1].glob("**/loops/*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
