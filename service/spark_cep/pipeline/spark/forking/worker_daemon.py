"""The process that Spark forks its Python workers from, with what they need already loaded.

A worker of Spark's own daemon begins with an empty interpreter: it imports the matcher, its numeric
libraries and compiled code for a second before its first row, and each collection of garbage, one
after each task (``pyspark.daemon``), walks through all of that for a tenth. Workers of this one
share it with their daemon, memory included, and no collection looks at it.

``python -m spark_cep.pipeline.spark.forking.worker_daemon`` goes on as
``python -m pyspark.daemon``.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Final

from spark_cep.pipeline.spark.forking.preloading import become_worker

#: The module of workers that run tasks.
_TASKS: Final = "pyspark.worker"


def ends_when_disconnected(
    worker: Callable[[socket.socket, bool], int],
) -> Callable[[socket.socket, bool], int]:
    """``pyspark.daemon.worker``, which ends without a trace where Java has closed the connection:
    that is how a task is stopped, and Java says why."""

    def run(sock: socket.socket, authenticated: bool) -> int:
        try:
            return worker(sock, authenticated)
        except ConnectionError:
            return 1

    return run


def leave_signals_as_they_are() -> None:
    """Keep Spark's own code from hearing signals that are left to the driver: it would end this
    process or a worker. This one ends when Java closes its standard input."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
        # What is blocked is not delivered, whatever the handler; workers inherit it.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])


def end_all_workers() -> None:
    """End the daemon of this worker with all its workers, without the process that writes their
    output: Spark starts another daemon, and the tasks again."""
    sys.stderr.write("the process that writes the output of the workers has ended: they end, too\n")
    sys.stderr.flush()
    # The daemon leads a group of its own.
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    leave_signals_as_they_are()
    become_worker()
    # Daemons of other modules plan the input, and write nothing.
    if sys.argv[1:] == [_TASKS]:
        import_module("spark_cep.pipeline.deliver.delivery_process").start(end_all_workers)
    daemon = import_module("pyspark.daemon")
    daemon.worker = ends_when_disconnected(daemon.worker)  # type: ignore[attr-defined]
    daemon.manager()
