"""Prometheus' own tool, where it is installed: below ``.work/tools/bin``, or on the path."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_INSTALLED = Path(__file__).parents[1] / ".work" / "tools" / "bin" / "promtool"


def promtool(*arguments: str, given: str = "") -> str:
    """What promtool says of ``given``, which is nothing when all is well; skips the test where
    there is none."""
    found = str(_INSTALLED) if _INSTALLED.exists() else shutil.which("promtool")
    if found is None:
        pytest.skip(f"promtool is needed, neither at {_INSTALLED} nor on the path")
    done = subprocess.run(
        [found, *arguments], input=given, capture_output=True, text=True, timeout=60, check=False
    )
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    return told
