"""When, on what, with which versions, and how busy the machine was before."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyspark

from spark_cep import __version__
from supply_chain.java import find_java

_ROOT = Path(__file__).parents[1]


def circumstances(cores: tuple[int, ...], flink: str | None = None) -> dict[str, Any]:
    """What belongs to figures."""
    facts: dict[str, Any] = {
        "version": __version__,
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "processor": processor(),
        "cores": len(cores),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "java": java_version(find_java()),
        "spark": pyspark.__version__,
    }
    if flink is not None:
        facts["flink"] = flink
    return facts


def commit() -> str:
    """The commit that is measured, with ``+`` where files were changed since."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(_ROOT), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "service", "bench")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if changed else "")


def java_version(java: Path) -> str:
    """As the JVM tells it."""
    said = subprocess.run([str(java), "-version"], capture_output=True, text=True, check=True)
    found = re.search(r'version "([^"]+)"', said.stderr)
    return found.group(1) if found else said.stderr.strip()


def processor() -> str:
    """The processor's name."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1) if found else platform.machine()
