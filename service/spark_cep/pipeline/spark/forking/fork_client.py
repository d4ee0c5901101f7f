"""The interpreter that Spark is given: ``fork_client.py SOCKET -m MODULE …`` runs the module in a
process that the fork server forks (:mod:`~spark_cep.pipeline.spark.forking.fork_server`), with this
process's standard streams, environment and folder, and ends as that one does. Whatever else is
asked, and where no server answers, becomes a plain interpreter.

Started with ``-I -S``, so that it begins in milliseconds; it imports nothing of ours.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from typing import NoReturn

#: A process id, and an exit code, on their way from the server.
NUMBER_BYTES = 4
_STREAMS = (0, 1, 2)
#: Java closes the standard input at once.
_CLOSED_WITHIN_MILLISECONDS = 1000
#: The time that a process has to end by itself when Java ends it.
_ENDING_MILLISECONDS = 500


def main(address: str, arguments: list[str]) -> NoReturn:
    """Become ``python ARGUMENTS``."""
    if arguments[:1] == ["-m"]:
        with socket.socket(socket.AF_UNIX) as server:
            # First, since a signal may come as soon as there is a process.
            _end_for_java_alone(server)
            if _forked(server, address, arguments[1:]):
                # Without a code the server has ended, and with it the job.
                code = server.recv(NUMBER_BYTES, socket.MSG_WAITALL)
                os._exit(int.from_bytes(code, "big") if code else 1)
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606


def _forked(server: socket.socket, address: str, command: list[str]) -> bool:
    # Not pathlib's, which takes longer to import than all else here.
    folder = os.getcwd()  # noqa: PTH109
    request = json.dumps([command, dict(os.environ), folder]).encode()
    try:
        server.connect(address)
        socket.send_fds(server, [len(request).to_bytes(NUMBER_BYTES, "big")], _STREAMS)
        server.sendall(request)
        return bool(server.recv(NUMBER_BYTES, socket.MSG_WAITALL))
    except OSError:
        return False


def _end_for_java_alone(server: socket.socket) -> None:
    """Java ends a process with SIGTERM and closes its standard input. SIGTERM by itself was sent to
    all processes of the job, whose driver ends the rest."""
    standard_input, answer = select.poll(), select.poll()
    standard_input.register(0, 0)
    answer.register(server, select.POLLIN)

    def told(*_: object) -> None:
        closed = standard_input.poll(_CLOSED_WITHIN_MILLISECONDS)
        if closed and not answer.poll(_ENDING_MILLISECONDS):
            # The server kills the process that has not ended.
            os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, told)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
