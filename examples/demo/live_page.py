"""The page of ``spark-cep watch`` beside the demo: the very command that a user would run."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from examples.embedded import ChildProcess
from examples.embedded.process import HOST, free_ports

_GRACE_SECONDS = 2.0


class LivePage:
    """``spark-cep watch --config FILE``, which may change rules, on a port of this machine."""

    def __init__(self, config: Path, folder: Path) -> None:
        (port,) = free_ports(1)
        self.address = f"http://{HOST}:{port}/"
        command = [str(Path(sys.executable).with_name("spark-cep")), "watch"]
        command += ["--config", str(config), "--port", str(port), "--no-browser"]
        command += ["--allow-changes", "--from", "beginning"]
        temporary = folder / "tmp"
        temporary.mkdir(parents=True)
        self._child = ChildProcess(
            "the live page",
            command,
            folder / "page.log",
            folder=folder,
            environment={"TMPDIR": str(temporary), "SPARK_LOCAL_DIRS": str(temporary)},
        )

    @property
    def log(self) -> Path:
        """The output of the command."""
        return self._child.log

    @property
    def running(self) -> bool:
        """Whether the command runs."""
        return self._child.running

    def start(self) -> None:
        """Start the command; it does not answer yet when this returns."""
        self._child.start(lambda: True)

    def stop(self) -> None:
        """End the command."""
        self._child.stop(_GRACE_SECONDS)


def is_installed() -> bool:
    """Whether the packages of the page are there."""
    return importlib.util.find_spec("nicegui") is not None
