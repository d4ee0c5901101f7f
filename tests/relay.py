"""A TCP relay in front of a server, to cut it off: nobody listens, and open connections break."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

from examples.embedded.process import HOST, free_ports


class Relay:
    """Passes connections to its port on to a server's; a context manager."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.port = free_ports(1)[0]
        self._target = target
        self._listener: socket.socket | None = None
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()

    def connect(self) -> None:
        """Listen, from now on."""
        self._listener = socket.create_server((HOST, self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        """Listen no more, and break what is open."""
        with self._lock:
            if self._listener is not None:
                self._listener.shutdown(socket.SHUT_RDWR)
                self._listener.close()
            self._listener = None
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()
            self._open.clear()

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cut()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(self._target)
                with self._lock:
                    self._open += [near, far]
                for here, there in ((near, far), (far, near)):
                    threading.Thread(target=_pass_on, args=(here, there), daemon=True).start()


def _pass_on(here: socket.socket, there: socket.socket) -> None:
    with suppress(OSError):
        while data := here.recv(65_536):
            there.sendall(data)
    with suppress(OSError):
        there.shutdown(socket.SHUT_RDWR)
