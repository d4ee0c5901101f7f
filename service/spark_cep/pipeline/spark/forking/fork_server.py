"""A process that Spark's Python processes are forked from, with what they need already loaded.

Spark starts several for each query, one after the other and with a lock held: the daemon of the
workers, and those in which it plans a Python data source and a stateful operator. Each would import
PySpark again, and the daemon all that tasks need, for more than a second. This server is forked
from the driver, which loads all of it while Java starts, and shares its memory. Spark is given a
script as its interpreter (:mod:`~spark_cep.pipeline.spark.forking.fork_client`) that hands the
command over.

A process is forked while it has one thread: what holds a lock in another would hold it for ever.
"""

from __future__ import annotations

import atexit
import io
import json
import multiprocessing
import os
import runpy
import selectors
import shlex
import signal
import socket
import sys
from contextlib import suppress
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import NamedTuple

from setproctitle import setproctitle

from spark_cep.observability import logs
from spark_cep.pipeline.spark.forking import fork_client
from spark_cep.pipeline.spark.forking.preloading import become_worker

_SOCKET, _INTERPRETER = "fork.sock", "python"
_STREAMS = 3
#: A request that is not whole by then is dropped.
_REQUEST_SECONDS = 5.0
_KILLED = 128
_SPARKS_DAEMON, _OUR_DAEMON = (
    "pyspark.daemon",
    "spark_cep.pipeline.spark.forking.worker_daemon",
)


def leave_signals_to_driver() -> None:
    """Ignore Ctrl-C and SIGTERM, which whoever stops the job may send to all of its processes: the
    driver, which needs the others until its batch is done, ends them. To be called in a process
    that the driver starts; what that starts inherits it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def may_fork() -> bool:
    """Return whether this process has one thread, those of libraries counted; False where the
    system does not tell."""
    try:
        return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208  names alone
    except OSError:
        return False


class ForkServer:
    """The server, in a process of its own, until :meth:`close` or the end of this one.

    Args:
        folder: Where the socket and the script are; short enough for the path of a socket.
    """

    _process: ForkProcess | None = None

    def __init__(self, folder: Path) -> None:
        address = folder / _SOCKET
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(address))
        address.chmod(0o600)
        # Who asks early waits until it is started.
        self._listening.listen(socket.SOMAXCONN)
        self.interpreter = folder / _INTERPRETER
        """What Spark is to start instead of ``python``."""
        command = [sys.executable, "-I", "-S", fork_client.__file__, str(address)]
        self.interpreter.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', "utf-8")
        self.interpreter.chmod(0o700)

    def start(self, output: int) -> None:
        """Fork the process, with the file descriptor ``output`` as its standard output and error.
        Where this one has threads there is no server."""
        if may_fork():
            self._process = ForkProcess(target=_serve, args=(self._listening, output), daemon=True)
            self._process.start()
            # Python's own end of child processes sends SIGTERM, and waits.
            atexit.register(self.close)
        self._listening.close()

    def close(self) -> None:
        """End the server; what it has forked goes on."""
        self._listening.close()
        if self._process is None:
            return
        self._process.kill()
        self._process.join()


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
        # Python's own is another, since multiprocessing closes it.
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  for good
        os.environ.clear()
        os.environ.update(self.environment)
        os.chdir(self.folder)
        entries = self.environment.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:0] = [entry for entry in entries if entry and entry not in sys.path]
        module, *arguments = self.command
        if module == _SPARKS_DAEMON:
            # What plans is started so, whatever daemon is set for tasks.
            module = _OUR_DAEMON
        setproctitle(shlex.join(["python", "-m", *self.command]))
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)


class _ForkServer:
    """Forks a process for each request, until the process that it was forked from has ended."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._clients: dict[int, socket.socket] = {}
        self._woken, self._waking = socket.socketpair()
        for each in (self._woken, self._waking):
            each.setblocking(False)
        driver = multiprocessing.parent_process()
        assert driver is not None
        self._driver = driver.sentinel
        self._selector = selectors.DefaultSelector()
        for file in (self._driver, self._listening, self._woken):
            self._selector.register(file, selectors.EVENT_READ)

    def let_go(self) -> None:
        """Close what belongs to the driver: the Java process ends when all have let go of its
        standard input."""
        own = {self._selector.fileno(), self._waking.fileno(), *self._selector.get_map()}
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208  names alone
            if descriptor >= _STREAMS and descriptor not in own:
                # Not closed: whatever has it in memory would close what comes in its place.
                os.dup2(nothing, descriptor)

    def run(self) -> _Request:
        """Serve; returns in each forked process, with what that is to run."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waking.fileno())
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == self._driver:
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
                        exit_code = code if code >= 0 else _KILLED - code
                        client.sendall(exit_code.to_bytes(fork_client.NUMBER_BYTES, "big"))
                    client.close()

    def _abandon(self, child: int) -> None:
        """The process that stands for ``child`` has been killed: so is ``child``."""
        client = self._clients.pop(child, None)
        if client is not None:
            self._selector.unregister(client)
            client.close()
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


def _serve(listening: socket.socket, output: int) -> None:
    """Serve at a socket that listens, in a process that has just been forked from the driver."""
    setproctitle("spark-cep: fork server")
    leave_signals_to_driver()
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        os.dup2(output, number)
        assert isinstance(stream, io.TextIOWrapper)
        stream.reconfigure(write_through=True)
    logs.leave()
    become_worker()
    server = _ForkServer(listening)
    server.let_go()
    server.run().run()
