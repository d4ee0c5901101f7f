"""Clients that read single partitions."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from spark_cep.pipeline.read import ranges

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, which is Linux's")


def _clients() -> int:
    """Clients of this process: each has one thread of this name. One that has ended may be listed
    a moment longer."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):
            found.append((task / "comm").read_text().strip())
    return found.count("rdk:main")


def test_a_client_ends_when_another_one_takes_its_place() -> None:
    """With its threads, whatever partition it had begun with."""
    ranges._client.cache_clear()
    before = _clients()
    for number in range(4):
        client = ranges._client((("bootstrap.servers", f"localhost:{number + 1}"),))
        client.begin("t", 0, 0)
        client.end()
        del client
    ends = time.monotonic() + 10
    while _clients() > before + 1 and time.monotonic() < ends:
        time.sleep(0.01)
    assert _clients() <= before + 1
    ranges._client.cache_clear()
    while _clients() > before and time.monotonic() < ends:
        time.sleep(0.01)
    assert _clients() <= before
