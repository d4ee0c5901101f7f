"""The process that Spark forks its Python workers from, with what they need already loaded.

A worker of Spark's own daemon begins with an empty interpreter: it imports the matcher, its numeric
libraries and compiled code for a second before its first row, and each collection of garbage, one
after each task (``pyspark.daemon``), walks through all of that for a tenth. Workers of this one
share it with their daemon, memory included, and no collection looks at it.

``python -m spark_cep.pipeline.spark.worker_daemon`` goes on as ``python -m pyspark.daemon``.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from importlib import import_module

from spark_cep.pipeline.spark.preloading import become_worker


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


if __name__ == "__main__":
    become_worker()
    daemon = import_module("pyspark.daemon")
    daemon.worker = ends_when_disconnected(daemon.worker)  # type: ignore[attr-defined]
    daemon.manager()
