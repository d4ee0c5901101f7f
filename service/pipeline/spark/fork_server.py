"""A process that Spark's Python processes are forked from, with what they need already loaded.

Spark starts several for each query, one after the other and with a lock held: the daemon of the
workers, and those in which it plans a Python data source and a stateful operator. Each would import
PySpark again, and the daemon all that tasks need, for more than a second. This server is started
together with Java and imports all of it while Java starts. Spark is given a script as its
interpreter (:mod:`~service.pipeline.spark.fork_client`) that hands the command over.

The idea is that of :mod:`multiprocessing.forkserver`, whose children run functions of the process
that asks, not commands of another one.
"""

from __future__ import annotations

import json
import os
import runpy
import selectors
import shlex
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from service.pipeline.spark import fork_client
from service.pipeline.spark.preloading import load

_SOCKET, _INTERPRETER = "fork.sock", "python"
_STREAMS = 3
#: A request that is not whole by then is dropped.
_REQUEST_SECONDS = 5.0
_CLOSING_SECONDS = 2.0
_KILLED = 128
_SPARKS_DAEMON, _OUR_DAEMON = "pyspark.daemon", "service.pipeline.spark.worker_daemon"


def leave_interrupts_to_driver() -> None:
    """Ctrl-C is for the driver, which ends the rest: for a process that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class ForkServer:
    """The server, in a process of its own, until :meth:`close` or the end of this one.

    Args:
        folder: Where the socket and the script are; short enough for the path of a socket.
    """

    def __init__(self, folder: Path) -> None:
        address = folder / _SOCKET
        self._process: subprocess.Popen[bytes] | None = None
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(address))
        address.chmod(0o600)
        # Who asks early waits until everything is loaded.
        self._listening.listen(socket.SOMAXCONN)
        self.interpreter = folder / _INTERPRETER
        """What Spark is to start instead of ``python``."""
        command = [sys.executable, "-I", "-S", fork_client.__file__, str(address)]
        self.interpreter.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', "utf-8")
        self.interpreter.chmod(0o700)

    def start(self, output: int) -> None:
        """Start the process, with the file descriptor ``output`` as its standard output and
        error."""
        descriptor = self._listening.fileno()
        self._process = subprocess.Popen(
            # -P: a pandas.py in the folder where the service was started is not the library.
            [sys.executable, "-u", "-P", "-m", __name__, str(descriptor)],
            # It ends when this pipe does.
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            pass_fds=[descriptor],
            # As Spark has it in its own Python processes.
            env={"PYTHONHASHSEED": "0", **os.environ},
            preexec_fn=leave_interrupts_to_driver,  # noqa: PLW1509
        )
        self._listening.close()

    def close(self) -> None:
        """End the server; what it has forked goes on."""
        self._listening.close()
        if self._process is None or self._process.stdin is None:
            return
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_CLOSING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _Request(NamedTuple):
    command: list[str]
    environment: dict[str, str]
    folder: str
    streams: list[int]

    @classmethod
    def read(cls, connection: socket.socket) -> _Request:
        """Raises OSError and ValueError when it is not one."""
        connection.settimeout(_REQUEST_SECONDS)
        header, streams, _, _ = socket.recv_fds(connection, fork_client.NUMBER_BYTES, _STREAMS)
        with connection.makefile("rb") as file:
            command, environment, folder = json.loads(file.read(int.from_bytes(header, "big")))
        connection.settimeout(None)
        return cls(command, environment, folder, streams)

    def run(self) -> None:
        """Go on as ``python -m COMMAND``, in a process that has just been forked."""
        for number, stream in enumerate(self.streams):
            os.dup2(stream, number)
            os.close(stream)
        os.environ.clear()
        os.environ.update(self.environment)
        os.chdir(self.folder)
        entries = self.environment.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:0] = [entry for entry in entries if entry and entry not in sys.path]
        module, *arguments = self.command
        if module == _SPARKS_DAEMON:
            # What plans is started so, whatever daemon is set for tasks.
            module = _OUR_DAEMON
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)


class _Server:
    """Forks a process for each request, until its standard input ends."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._clients: dict[int, socket.socket] = {}
        self._woken, self._waking = socket.socketpair()
        for each in (self._woken, self._waking):
            each.setblocking(False)
        self._selector = selectors.DefaultSelector()
        for file in (sys.stdin.fileno(), self._listening, self._woken):
            self._selector.register(file, selectors.EVENT_READ)

    def run(self) -> _Request:
        """Serve; returns in each forked process, with what that is to run."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waking.fileno())
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == sys.stdin.fileno():
                    os._exit(0)
                elif key.fileobj is self._listening:
                    request = self._accept()
                    if request is not None:
                        return request
                elif key.fileobj is self._woken:
                    self._reap()
                else:
                    self._abandon(key.data)

    def _accept(self) -> _Request | None:
        client, _ = self._listening.accept()
        try:
            request = _Request.read(client)
        except (OSError, ValueError):
            client.close()
            return None
        child = os.fork()
        if not child:
            self._leave(client)
            return request
        for stream in request.streams:
            os.close(stream)
        with suppress(OSError):
            client.sendall(child.to_bytes(fork_client.NUMBER_BYTES, "big"))
        self._clients[child] = client
        self._selector.register(client, selectors.EVENT_READ, child)
        return None

    def _leave(self, client: socket.socket) -> None:
        """Close what belongs to the server, in a process that it has forked."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for each in (self._listening, self._woken, self._waking, client, *self._clients.values()):
            each.close()

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            self._woken.recv(4096)
        with suppress(ChildProcessError):
            while True:
                child, status = os.waitpid(-1, os.WNOHANG)
                if not child:
                    return
                code = os.waitstatus_to_exitcode(status)
                client = self._clients.pop(child, None)
                if client is not None:
                    self._selector.unregister(client)
                    with suppress(OSError):
                        told = code if code >= 0 else _KILLED - code
                        client.sendall(told.to_bytes(fork_client.NUMBER_BYTES, "big"))
                    client.close()

    def _abandon(self, child: int) -> None:
        """The process that stands for ``child`` has been killed: so is ``child``."""
        client = self._clients.pop(child, None)
        if client is not None:
            self._selector.unregister(client)
            client.close()
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)


def main(descriptor: int) -> None:
    """Load, then serve at a socket that listens."""
    load()
    _Server(socket.socket(fileno=descriptor)).run().run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
