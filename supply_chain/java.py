"""The ``java`` that tests, demo, benchmarks and downloads run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from supply_chain.errors import DependencyError

OLDEST_JAVA: Final = 17


def find_java(environ: Mapping[str, str] = os.environ) -> Path:
    """The ``java`` of JAVA_HOME, or else of PATH; raise DependencyError when none is new enough."""
    home = environ.get("JAVA_HOME")
    place = f"JAVA_HOME={home}" if home else "PATH"
    path = str(Path(home) / "bin") if home else environ.get("PATH", "")
    java = shutil.which("java", path=path)
    if java is None:
        raise DependencyError(
            f"no java was found by {place}: install Java {OLDEST_JAVA} or newer, or set JAVA_HOME"
        )
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    if found is None:
        raise DependencyError(
            f"{java} (by {place}) does not tell its version: {answer.stderr.strip()}"
        )
    if int(found.group(1)) < OLDEST_JAVA:
        raise DependencyError(
            f"{java} (by {place}) is Java {found.group(1)}; needed is {OLDEST_JAVA} or newer"
        )
    return Path(java)
