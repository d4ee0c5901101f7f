"""Clients that are slow, or many: the pages answer all the same."""

from __future__ import annotations

import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from spark_cep.config import Observability
from spark_cep.observability import health as module
from spark_cep.observability.access import access_to
from spark_cep.observability.health import Health, HealthServer
from spark_cep.observability.metrics import Metrics
from tests.certificates import Authority

Start = Callable[..., HealthServer]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts servers, and stops them all."""
    with ExitStack() as running:

        def begin(rules: Callable[[], list[str]] = list, **settings: str) -> HealthServer:
            access = access_to(Observability.model_validate(settings))
            health, registry = Health(60_000), Metrics().registry
            server = HealthServer("127.0.0.1", 0, health, registry, rules, access)
            server.start()
            running.callback(server.stop)
            return server

        yield begin


def connected(server: HealthServer) -> socket.socket:
    """A connection that has said nothing yet."""
    return socket.create_connection(("127.0.0.1", server.port), timeout=10)


def threads_of_requests() -> int:
    """How many requests are being served."""
    return sum("process_request" in thread.name for thread in threading.enumerate())


def answers(server: HealthServer) -> bool:
    """Whether a page is served."""
    url = f"http://127.0.0.1:{server.port}/livez"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return bool(answer.status == 200)


def closed_after(connection: socket.socket, byte: bytes, seconds: float) -> float:
    """After how long the other side closes a connection on which one byte after the other is sent;
    at most ``seconds``."""
    began = time.monotonic()
    connection.settimeout(0.05)
    while time.monotonic() - began < seconds:
        try:
            connection.sendall(byte)
            if connection.recv(1) == b"":
                break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - began


def test_each_byte_does_not_begin_the_time_again(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request has one deadline, however busily it is sent."""
    monkeypatch.setattr(module, "_REQUEST_SECONDS", 1.0)
    server = start()
    with connected(server) as client:
        client.sendall(b"GET /livez HTTP/1.1\r\nX: ")
        assert 0.5 < closed_after(client, b"x", 5) < 3
    assert answers(server)


def test_a_handshake_has_the_same_deadline(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A client that never speaks TLS is cut off too."""
    monkeypatch.setattr(module, "_REQUEST_SECONDS", 1.0)
    pages = Authority(tmp_path).identity("pages")
    server = start(ssl_certificate_file=str(pages.certificate), ssl_key_file=str(pages.key))
    with connected(server) as client:
        assert 0.5 < closed_after(client, b"", 5) < 3


def test_who_does_not_take_the_answer(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread ends, though it stood in the middle of writing."""
    monkeypatch.setattr(module, "_REQUEST_SECONDS", 1.0)
    server = start(rules=lambda: ["more than the system keeps for a connection"] * 1_000_000)
    with connected(server) as client:
        client.sendall(b"GET /rules HTTP/1.1\r\n\r\n")
        client.recv(1)
        assert threads_of_requests() == 1
        until = time.monotonic() + 10
        while threads_of_requests() and time.monotonic() < until:
            time.sleep(0.05)
        assert threads_of_requests() == 0


def test_many_clients_that_stay(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """They take a bounded number of threads, and a probe is answered while they hold theirs."""
    monkeypatch.setattr(module, "_MOST_CONNECTIONS", 8)
    server = start()
    with ExitStack() as open_ones:
        clients = [open_ones.enter_context(connected(server)) for _ in range(40)]
        for client in clients:
            with suppress(OSError):  # some are cut off by now
                client.sendall(b"GET /livez HTTP/1.1\r\nX: ")
        assert answers(server)
        time.sleep(0.5)
        assert threads_of_requests() <= 8
