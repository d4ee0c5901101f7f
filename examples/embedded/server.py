"""What the embedded servers share: one child process, prepared once, started as often as needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from examples.embedded.process import ChildProcess


class EmbeddedServer(ABC):
    """A server below ``folder``; a context manager that starts and stops it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder.resolve()
        self._name = name
        self._process: ChildProcess | None = None

    @property
    def log(self) -> Path:
        """What the server wrote to its console, over all of its starts."""
        return self.folder / f"{self._name}.log"

    @property
    def pid(self) -> int | None:
        """The running server's process id; None when it does not run."""
        return self._process.pid if self._process is not None else None

    def start(self) -> Self:
        """Start the server (prepare its folder the first time) and wait until it serves."""
        if self._process is None:
            self._process = self._prepare()
        self._process.start(self._ready)
        return self

    def stop(self) -> None:
        """Shut down in good order."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()

    def restart(self) -> Self:
        """Start again with the same data and ports, after a kill as after a stop."""
        self.stop()
        return self.start()

    def pause(self) -> None:
        """Freeze the server: connections stay open, nothing answers."""
        if self._process is not None:
            self._process.pause()

    def resume(self) -> None:
        """Let a paused server go on."""
        if self._process is not None:
            self._process.resume()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @abstractmethod
    def _prepare(self) -> ChildProcess:
        """Make the folder ready and say what to run."""

    @abstractmethod
    def _ready(self) -> bool:
        """Whether the server serves."""
