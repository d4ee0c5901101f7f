"""A file system of a few megabytes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """One of ``size``, in memory, while the block runs; the test is skipped where nobody may mount
    it."""
    folder.mkdir()
    made = _command("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    if made.returncode:
        pytest.skip(f"a small file system needs the right to mount one: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        # Processes that were killed may hold it for a moment.
        unmounted = _command("umount", "--lazy", str(folder))
        assert unmounted.returncode == 0, unmounted.stderr


def _command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False)
