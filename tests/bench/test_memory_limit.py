"""The control group of a job whose memory is measured, in folders like those of the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.memory_limit import MemoryLimit


@pytest.mark.parametrize(
    ("folder", "limit", "stat", "kills"),
    [
        (
            "memory/spark-cep-bench", "memory.limit_in_bytes",
            "cache 7\nrss 1\ntotal_cache 7\ntotal_rss 40\ntotal_shmem 2", "memory.oom_control",
        ),
        ("spark-cep-bench", "memory.max", "anon 40\nfile 7\nshmem 2", "memory.events"),
    ],
    ids=["version 1", "version 2"],
)  # fmt: skip
def test_group(folder: str, limit: str, stat: str, kills: str, tmp_path: Path) -> None:
    """Both versions of the kernel's interface: the limit, the processes, and what they keep."""
    (tmp_path / folder).parent.mkdir(exist_ok=True)
    with MemoryLimit(1 << 20, tmp_path) as group:
        group.take(12)
        (tmp_path / folder / "memory.stat").write_text(stat, "utf-8")
        (tmp_path / folder / kills).write_text("under_oom 0\noom_kill 3\n", "utf-8")
        assert (group.kept, group.kills) == (42, 3)
        assert (tmp_path / folder / limit).read_text("utf-8") == "1048576"
        assert (tmp_path / folder / "cgroup.procs").read_text("utf-8") == "12"
