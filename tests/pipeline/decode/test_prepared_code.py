"""All compiled code is made beforehand: in the image nothing can be added to it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[3]
#: Rules with conditions, keys and measures of every kind over random events, and stored state.
_PROGRAM = """
from numba.core.caching import IndexDataCacheFile
from service.codecs.compiled_code import prepare

prepare()

def refuse(*_):
    raise OSError("a function is compiled that was not prepared")

IndexDataCacheFile.save = refuse

from tests.pipeline.state.test_buckets import test_batches_after_one_another
from tests.testkit.test_as_the_job import test_the_same_is_found

test_the_same_is_found()
test_batches_after_one_another()
"""


def test_nothing_is_compiled_later() -> None:
    """Neither for decoding, conditions and keys nor for matching and state."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(_ROOT)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
