"""``spark-cep run`` as a process of its own."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from examples.embedded import ChildProcess

_ROOT = Path(__file__).parents[1]


class Command(ChildProcess):
    """The command with settings ``document``, that are written to ``folder``, as are its log and
    what it has in temporary files."""

    def __init__(
        self,
        folder: Path,
        document: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        config = folder / "config.yaml"
        config.write_text(yaml.safe_dump(dict(document)), "utf-8")
        self.scratch = folder / "scratch"
        self.scratch.mkdir(exist_ok=True)
        super().__init__(
            "the job",
            [sys.executable, "-m", "service.cli.main", "run", "--config", str(config)],
            folder / "job.log",
            folder=_ROOT,
            environment={
                "PYTHONPATH": str(_ROOT),
                "TMPDIR": str(self.scratch),
                "SPARK_LOCAL_DIRS": str(self.scratch),
                **(environment or {}),
            },
        )

    def terminate(self, seconds: float) -> int | None:
        """SIGTERM to the driver alone; its exit code, or ``None`` when it had to be killed."""
        pid = self.pid
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while self.running and time.monotonic() < deadline:
            time.sleep(0.1)
        code = self.exit_code
        self.kill()
        return code
