"""``spark-cep run`` as a process of its own."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from examples.embedded import ChildProcess

_ROOT = Path(__file__).parents[1]
#: A benchmark measures the checkout that it is in, wherever the package is installed from.
PYTHON_PATH = os.pathsep.join([str(_ROOT), str(_ROOT / "service")])


class Command(ChildProcess):
    """The command with settings ``document``, that are written to ``folder``, as is its log. Its
    temporary files are where users have them: a long path leaves no room for sockets."""

    def __init__(
        self,
        folder: Path,
        document: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        config = folder / "config.yaml"
        config.write_text(yaml.safe_dump(dict(document)), "utf-8")
        self._scratch = TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True)
        super().__init__(
            "the job",
            [sys.executable, "-m", "spark_cep.cli.main", "run", "--config", str(config)],
            folder / "job.log",
            folder=_ROOT,
            environment={
                "PYTHONPATH": PYTHON_PATH,
                "TMPDIR": self._scratch.name,
                "SPARK_LOCAL_DIRS": self._scratch.name,
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
