"""A process of each executor that writes the output of its tasks, and has their producers.

Spark gives a task to whichever Python worker is free, and a transactional producer, which takes
50 to 130 ms to start, belongs to one process: kept in workers, every second one would start anew.
This process is forked from the daemon of the workers before the first of them. A worker asks for a
connection by sending one end of a socket pair, and tells over the other what it has to write.
"""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from struct import Struct
from threading import Thread
from typing import TYPE_CHECKING, Final, Protocol

from setproctitle import setproctitle

from spark_cep.errors import OutputError, SparkCepError
from spark_cep.pipeline.deliver.task_output import TaskOutput
from spark_cep.pipeline.spark.memory import memory_of_task
from spark_cep.pipeline.spark.private_api import pickled, unpickled
from spark_cep.pipeline.wire.packet_schemas import PacketKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from io import BufferedReader

    from spark_cep.pipeline.deliver.output import Delivery, WrittenBatch

TITLE: Final = "spark-cep: delivery"

#: Before each message: its kind, and its bytes. A packet has its own kind.
_HEADER: Final = Struct(">iI")
_BEGIN, _FINISH, _ABANDON = -1, -2, -3
_REPORT, _ERROR = 0, 1

#: The way to the process: a byte with one end of a socket pair is a request for a connection.
_requests: socket.socket | None = None


def _do_nothing() -> None:
    """Let the worker raise its error, and no more."""


#: Called by a worker that finds the process ended.
_ended: Callable[[], None] = _do_nothing


class WritesTask(Protocol):
    """The output of one task, wherever it is written."""

    def written(self, packets: Iterable[tuple[int, bytes]]) -> list[bytes]:
        """Hand on packets, and return the reports among them."""

    def finished(self) -> bytes:
        """Commit, and return the report."""

    def abandon(self) -> None:
        """Undo what is not finished."""


def start(ended: Callable[[], None] = _do_nothing) -> int:
    """Fork the process, for the processes that this one forks from now on, and return its id. This
    one has one thread. ``ended`` is called by a worker that finds the process ended."""
    global _requests, _ended
    (_requests, requested), _ended = socket.socketpair(), ended
    process = os.fork()
    if process:
        requested.close()
        return process
    _requests.close()
    try:
        setproctitle(TITLE)
        # Spark reads from the daemon's output where the daemon listens, and ends it by its input.
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        _serve(requested)
    finally:
        os._exit(0)


def task_output(
    delivery: Delivery, partition: int, batch: WrittenBatch, *, again: bool
) -> WritesTask:
    """Return the output of a task (:class:`TaskOutput`), written by the delivery process of this
    worker, or here, where the worker comes from a daemon without one."""
    if _requests is None:
        return TaskOutput(delivery, partition, batch, again=again)
    return _SentOutput(_connection(_requests), (delivery, partition, batch, again))


class _Connection:
    """A connection of a worker to the delivery process."""

    def __init__(self, requests: socket.socket) -> None:
        own, other = socket.socketpair()
        with other, _ending():
            socket.send_fds(requests, [b"c"], [other.fileno()])
        self._socket = own
        self._sent = own.makefile("wb")
        self._answers = own.makefile("rb")

    def send(self, kind: int, content: bytes = b"") -> None:
        """Send a message, at the latest with the next answer that is asked for."""
        with _ending():
            self._sent.write(_HEADER.pack(kind, len(content)))
            self._sent.write(content)

    def flush(self) -> None:
        """Send what waits."""
        with _ending():
            self._sent.flush()

    def answer(self) -> bytes:
        """Return the report about the task. Raises what writing raised."""
        self.flush()
        with _ending():
            message = _message(self._answers)
            if message is None:
                raise ConnectionError
        kind, content = message
        if kind == _ERROR:
            raise unpickled(content)
        return content


@cache
def _connection(requests: socket.socket) -> _Connection:
    """The connection of this worker, which has one task at a time."""
    return _Connection(requests)


@contextmanager
def _ending() -> Iterator[None]:
    """Raise OutputError where the process does not answer any more."""
    try:
        yield
    except OSError as error:
        _ended()
        raise OutputError(
            f"the process that writes the output of this executor ({TITLE}) has ended: whether the"
            " batch was written is read from its commit markers when it runs again"
        ) from error


@dataclass
class _SentOutput:
    """The output of a task, sent to the delivery process. ``task``: arguments of
    :class:`TaskOutput`."""

    connection: _Connection
    task: tuple[Delivery, int, WrittenBatch, bool]

    def __post_init__(self) -> None:
        self.connection.send(_BEGIN, pickled(self.task))

    def written(self, packets: Iterable[tuple[int, bytes]]) -> list[bytes]:
        """Send the packets with records, and return the reports among them. An error of writing
        is raised by :meth:`finished`."""
        reports = []
        for kind, packet in packets:
            if kind == PacketKind.REPORT:
                reports.append(packet)
            else:
                self.connection.send(kind, packet)
        return reports

    def finished(self) -> bytes:
        """Have everything committed, and return the report about it. Raises what
        :class:`TaskOutput` raises."""
        self.connection.send(_FINISH)
        return self.connection.answer()

    def abandon(self) -> None:
        """Have what is not finished undone."""
        with suppress(OutputError):
            self.connection.send(_ABANDON)
            self.connection.flush()


def _serve(requested: socket.socket) -> None:
    """Answer each worker in a thread, until there is no process left that could ask."""
    while True:
        _, connections, _, _ = socket.recv_fds(requested, 1, 1)
        if not connections:
            return
        connection = socket.socket(fileno=connections[0])
        Thread(target=_answer, args=(connection,), daemon=True).start()


def _answer(connection: socket.socket) -> None:
    """Write the tasks of one worker, one after the other, until it ends."""
    tasks = _Tasks()
    with connection, connection.makefile("rb") as messages, suppress(OSError):
        while (message := _message(messages)) is not None:
            answer = tasks.take(*message)
            if answer is not None:
                kind, content = answer
                connection.sendall(_HEADER.pack(kind, len(content)) + content)
    tasks.abandon()


class _Tasks:
    """Tasks of one worker in the delivery process."""

    def __init__(self) -> None:
        self._output: TaskOutput | None = None
        self._error: Exception | None = None

    def take(self, kind: int, content: bytes) -> tuple[int, bytes] | None:
        """Do what a message says; the answer, if one is waited for. After an error nothing of the
        task is done, and the error is the answer."""
        if kind == _BEGIN:
            self.abandon()
            self._error = None
        elif kind == _ABANDON:
            self.abandon()
            return None
        report = b""
        try:
            if self._error is None:
                report = self._done(kind, content)
        except Exception as error:  # noqa: BLE001  the worker raises it
            self.abandon()
            self._error = error
        if kind != _FINISH:
            return None
        return (_REPORT, report) if self._error is None else (_ERROR, _packed(self._error))

    def abandon(self) -> None:
        """Undo what is not finished."""
        output, self._output = self._output, None
        if output is not None:
            output.abandon()

    def _done(self, kind: int, content: bytes) -> bytes:
        if kind == _BEGIN:
            delivery, partition, batch, again = unpickled(content)
            self._output = TaskOutput(delivery, partition, batch, again=again)
            return b""
        assert self._output is not None
        if kind != _FINISH:
            self._output.written([(kind, content)])
            return b""
        report = self._output.finished(memory_of_task())
        self._output = None
        return report


def _packed(error: Exception) -> bytes:
    """An error as it travels: those of other libraries may not."""
    if not isinstance(error, SparkCepError):
        error = OutputError(f"{type(error).__name__}: {error}")
    return pickled(error)


def _message(file: BufferedReader) -> tuple[int, bytes] | None:
    """The next message; None behind the last one."""
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    kind, size = _HEADER.unpack(header)
    content = file.read(size)
    return (kind, content) if len(content) == size else None
