"""All compiled code is made beforehand: in the image nothing can be added to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[3]
_PLUGIN = "tests.pipeline.nothing_is_compiled"
#: Conditions, keys and measures of every kind over random events; batches over stored state.
_TESTS = (
    "tests/testkit/test_as_the_job.py",
    "tests/pipeline/match/test_key_group.py",
    "tests/pipeline/state/test_buckets.py",
)


@pytest.mark.slow
def test_nothing_is_compiled_later() -> None:
    """Neither for decoding, conditions and keys nor for matching and state."""
    options = ["-q", "-p", "no:cacheprovider", "-p", _PLUGIN, "-m", "not slow"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *_TESTS],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
