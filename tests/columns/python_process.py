"""Code that runs in a Python of its own, which imports and compiles anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def told_by(code: str, folder: Path, **environment: str) -> str:
    """Return what the code prints, run in ``folder`` with these variables beside the others; it
    must not fail."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
