"""A control group with a limit of memory, as a container has one. Linux alone, and root."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

_ROOT = Path("/sys/fs/cgroup")


class _Files(NamedTuple):
    """The names of a version's files, and those of the numbers in ``memory.stat`` that the kernel
    cannot take back without swap: memory of processes, and shared memory."""

    limit: str
    kills: str
    kept: tuple[str, ...]


_VERSION_1 = _Files("memory.limit_in_bytes", "memory.oom_control", ("total_rss", "total_shmem"))
_VERSION_2 = _Files("memory.max", "memory.events", ("anon", "shmem"))


class MemoryLimit:
    """A group of processes with ``limit`` bytes of memory; those that they start are in it, too.
    PermissionError or OSError where none can be made."""

    def __init__(self, limit: int, root: Path = _ROOT) -> None:
        first = (root / "memory").is_dir()
        self._files = _VERSION_1 if first else _VERSION_2
        self._folder = (root / "memory" if first else root) / "spark-cep-bench"
        self._folder.mkdir(exist_ok=True)
        (self._folder / self._files.limit).write_text(str(limit), "utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Its processes may need a moment to end.
        with suppress(OSError):
            self._folder.rmdir()

    def take(self, pid: int) -> None:
        """Put a process into the group."""
        (self._folder / "cgroup.procs").write_text(str(pid), "utf-8")

    @property
    def kept(self) -> int:
        """Bytes that the kernel cannot take back now; files in its cache are not among them."""
        told = self._numbers("memory.stat")
        return sum(told[name] for name in self._files.kept)

    @property
    def kills(self) -> int:
        """The number of processes that the kernel has killed at the limit."""
        return self._numbers(self._files.kills)["oom_kill"]

    def _numbers(self, name: str) -> dict[str, int]:
        lines = (self._folder / name).read_text("utf-8").splitlines()
        return {key: int(value) for key, _, value in (line.partition(" ") for line in lines)}
