"""What a process writes past its log comes out as lines of it."""

from __future__ import annotations

import json
import subprocess
import sys

_PROGRAM = """
import logging, socket, socketserver, sys, threading, traceback
from spark_cep.observability.logs import configure
from spark_cep.observability.standard_error import take_in_standard_error

failures = [KeyError("wrong"), EOFError("gone")]

class Server(socketserver.TCPServer):
    def finish_request(self, request, client_address):
        raise failures.pop()

configure("info", "json")
take_in_standard_error()
print("one,", "password=hunter2", file=sys.stderr)
sys.stderr.write("two lines\\nin ")
sys.stderr.write("pieces\\n")
thread = threading.Thread(target=lambda: 1 / 0, name="mine")
thread.start()
thread.join()
with Server(("127.0.0.1", 0), socketserver.BaseRequestHandler) as server:
    for _ in range(2):
        with socket.create_connection(server.server_address):
            server.handle_request()
sys.stdout.close()
logging.getLogger("after").warning("nobody can read this")
sys.stdout = sys.__stdout__ = None
"""


def test_nothing_but_json() -> None:
    """Lines as lines, exceptions of threads and servers in one each, but for those of
    clients that are gone; secrets are masked; a log that
    cannot be written does not call itself."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["event"] for line in lines} == {"driver_output"}
    assert [line["message"] for line in lines] == [
        "one, password=**********", "two lines", "in pieces", "thread mine ended with an exception",
        "a request to Server failed",
    ]  # fmt: skip
    assert lines[3]["exception"].endswith("ZeroDivisionError: division by zero")
    assert lines[4]["exception"].endswith("KeyError: 'wrong'")
    assert done.stderr == ""
