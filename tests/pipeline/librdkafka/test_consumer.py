"""Clients that read single partitions."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, which is Linux's")

# In a process of its own: clients of other tests, some of them in threads that a test has given
# up, begin and end when they like.
_PROGRAM = """
import time
from contextlib import suppress
from pathlib import Path

from spark_cep.pipeline.read import ranges


def clients():
    # Each has one thread of this name. One that has ended may be listed a moment longer.
    found = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):
            found.append((task / "comm").read_text().strip())
    return found.count("rdk:main")


def wait_for(count):
    # A thread takes its name a moment after it begins, so the number has to stay.
    ends, times = time.monotonic() + 60, 0
    while times < 10 and time.monotonic() < ends:
        times = times + 1 if clients() == count else 0
        time.sleep(0.01)
    assert times == 10, clients()


for number in range(4):
    client = ranges._client((("bootstrap.servers", f"localhost:{number + 1}"),))
    client.begin("t", 0, 0).end()
    del client
    wait_for(1)
ranges._client.cache_clear()
wait_for(0)
"""


def test_a_client_ends_when_another_one_takes_its_place() -> None:
    """With its threads, whatever partition it had begun with."""
    subprocess.run([sys.executable, "-c", _PROGRAM], check=True, timeout=120)
