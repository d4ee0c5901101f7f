"""The Java process that Spark runs in: its launch, and its end with the Python workers that belong
to it.

PySpark's own launch keeps the process to itself until Java answers, and leaves it behind as a child
that ends by itself soon after us. Here it can be killed at any time, and whoever waits for our
process alone, or starts the next one at once, does not meet it any more. The workers' daemon ends
with the Java process, and its workers with the daemon.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

from spark_cep.errors import JavaEndedError, SparkCepError, StartError
from spark_cep.pipeline.spark.forking.fork_server import (
    ForkServer,
    leave_signals_to_driver,
)
from spark_cep.pipeline.spark.forking.preloading import load
from spark_cep.pipeline.spark.java import check_java, check_version
from spark_cep.pipeline.spark.private_api import gateway
from spark_cep.pipeline.spark.spark_output import memory_that_ran_out, take_in

_CLOSING_SECONDS = 4.0
_LOOK_SECONDS = 0.02
_ENDING_SECONDS = 2.0
#: Of ExitOnOutOfMemoryError; of Java without memory for itself; its abort.
_PERHAPS_MEMORY: Final = (3, 1, -signal.SIGABRT)
_launched: Final[list[subprocess.Popen[bytes]]] = []
_answered: Final[list[subprocess.Popen[bytes]]] = []
_servers: Final[list[ForkServer]] = []
#: Where Spark looks for the interpreter of its Python processes, in workers and in the driver.
_INTERPRETERS: Final = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")


class LaunchedJvm:
    """The Java process, launched with ``conf`` as its arguments, which everybody on the machine can
    read.

    Its Python processes come from a fork server in the folder ``forks``, if that is given: call
    :meth:`fork` then, before the first thread of this process.
    """

    def __init__(self, conf: Mapping[str, str], forks: Path | None = None) -> None:
        check_java()
        command = [f"{os.environ['SPARK_HOME']}/bin/spark-submit"]
        for name, text in conf.items():
            command += ["--conf", f"{name}={text}"]
        command += shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        self._folder = tempfile.TemporaryDirectory(prefix="spark-cep-gateway-")
        self._answer = Path(self._folder.name) / "answer"
        environment = {
            "SPARK_CONNECT_MODE": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._answer),
            # Its Python processes import nothing from the folder where the service was started.
            "PYTHONSAFEPATH": "1",
        }
        self._server = None if forks is None else ForkServer(forks)
        if self._server is not None:
            _servers.append(self._server)
            os.environ.update(dict.fromkeys(_INTERPRETERS, str(self._server.interpreter)))
        self._read, self._output = os.pipe()
        self._process = subprocess.Popen(
            command,
            # It ends when this pipe does.
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=self._output,
            env=os.environ | environment,
            preexec_fn=leave_signals_to_driver,  # noqa: PLW1509  as PySpark does
        )
        _launched.append(self._process)

    def fork(self) -> None:
        """Load what its Python processes need, and start the fork server, if there is to be one."""
        if self._server is not None:
            load()
            self._server.start(self._output)

    def gateway(self) -> Any:
        """The gateway to it, once it answers; to be called once. StartError when it ends
        instead."""
        take_in(self._read)
        os.close(self._output)
        with self._folder:
            while not self._answer.exists():
                if self._process.poll() is not None:
                    check_version()
                    raise StartError(f"as it started, Java {_told(self._process.returncode)}")
                time.sleep(_LOOK_SECONDS)
            with self._answer.open("rb") as lines:
                port = read_int(lines)  # type: ignore[no-untyped-call]
                secret = UTF8Deserializer().loads(lines)  # type: ignore[no-untyped-call]
        return _connected(self._process, port, secret)


def _connected(process: subprocess.Popen[bytes], port: int, secret: str) -> Any:
    # PySpark's way to a Java process that somebody else launched.
    given = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ.update(given)
    try:
        connection: Any = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for name in given:
            del os.environ[name]
    connection.proc = process
    _answered.append(process)
    return connection


def raise_if_jvm_ended(error: Exception) -> None:
    """Raise JavaEndedError, from ``error``, if the Java process has ended by itself after it had
    answered; to be called before :func:`end_jvm`."""
    if not _answered:
        return
    process = _answered[-1]
    # Its connections break a moment before it has ended.
    with suppress(subprocess.TimeoutExpired):
        process.wait(0.2 if isinstance(error, SparkCepError) else _ENDING_SECONDS)
    if process.returncode is not None:
        raise JavaEndedError(f"the Java process {_told(process.returncode)}") from error


def _told(code: int) -> str:
    """Describe the end of a process by its exit code, as Popen gives it."""
    memory = memory_that_ran_out(_ENDING_SECONDS if code in _PERHAPS_MEMORY else 0)
    if memory is not None:
        return f"ran out of memory: {memory} (exit code {code})"
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    more = ", as the kernel does when memory is short" if -code == signal.SIGKILL else ""
    return f"was killed by {name}{more}"


def end_jvm(seconds: float = _CLOSING_SECONDS) -> None:
    """Close the Java process, and return when it is gone; it is killed after ``seconds``, and at
    once when it has only been launched. No Spark in this process afterwards."""
    _end_java(seconds)
    while _servers:
        _servers.pop().close()


def _end_java(seconds: float) -> None:
    connection = gateway()
    process = _process()
    if process is None or process.poll() is not None:
        return
    if connection is None or process.stdin is None:
        process.kill()
        process.wait()
        return
    connection.shutdown()
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def kill_jvm() -> None:
    """Kill the Java process, for a process that ends in the same moment."""
    process = _process()
    if process is not None:
        with suppress(OSError):
            process.kill()


def _process() -> subprocess.Popen[bytes] | None:
    return _launched[-1] if _launched else None
