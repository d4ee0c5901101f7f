"""Sockets between the JVM and its Python workers."""

from __future__ import annotations

import socket
from pathlib import Path
from tempfile import TemporaryDirectory

from service.pipeline.session import may_have_sockets

_NAME_OF_SPARK = ".00000000-0000-0000-0000-000000000000.sock"


def _can_be_bound(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        try:
            one.bind(str(folder / _NAME_OF_SPARK))
        except OSError:
            return False
    (folder / _NAME_OF_SPARK).unlink()
    return True


def test_sockets_are_only_used_where_their_paths_are_short_enough() -> None:
    """Whatever we allow can be bound, and a usual folder is allowed."""
    found = {}
    with TemporaryDirectory(dir="/tmp") as base:
        for length in range(20, 120):
            folder = Path(base) / ("x" * (length - len(base) - 1))
            folder.mkdir()
            found[length] = (may_have_sockets(folder), _can_be_bound(folder))
    assert all(can for may, can in found.values() if may)
    assert found[55] == (True, True)
    assert found[100] == (False, False)
