"""The command, whose JVM holds a heap nearly full of live objects while a file is there.

In a process of its own: ``python -c 'from tests.e2e.heap_ballast import run; run()' FLAG``,
then the command's words. No input makes such a heap, since what a batch holds is bounded.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from spark_cep.cli.main import app

#: Above what the alert compares with, and with room for the job to go on.
_SHARE = 0.965
_BYTES = 500_000


def run() -> None:
    """Run the command of this process's words."""
    flag = Path(sys.argv.pop(1))
    threading.Thread(target=_hold, args=(flag,), daemon=True).start()
    app()


def _hold(flag: Path) -> None:
    while not flag.exists():
        time.sleep(0.1)
    gateway: Any = SparkContext._gateway
    jvm = gateway.jvm
    runtime = jvm.java.lang.Runtime.getRuntime()
    most = runtime.maxMemory()
    held = jvm.java.util.ArrayList()
    while flag.exists():
        # What is garbage counts as used until it is collected; then there is more to add.
        if runtime.totalMemory() - runtime.freeMemory() < _SHARE * most:
            held.add(gateway.new_array(jvm.byte, _BYTES))
        else:
            time.sleep(0.05)
    held.clear()
    jvm.java.lang.System.gc()
