"""Health of the service, and the small HTTP server that shows it.

``/livez``: the process does its work: no failure, and progress within the limit while progress is
expected. ``/readyz``: the query runs, and waits for nobody. ``/metrics``: Prometheus. ``/rules``:
the running rules. No answer waits for Kafka, Spark or the registry: each reads what was noted last,
so that a slow broker never makes an orchestrator kill the job. ``access`` decides who may read the
pages.

::

    starting ──ready()──▶ ready ──stopping()──▶ stopping
        └────────failed(reason)┴──────────────▶ failed
"""

from __future__ import annotations

import json
import socket
import socketserver
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.exposition import choose_encoder

from spark_cep.errors import StartError
from spark_cep.observability.access import Access
from spark_cep.observability.logs import logger

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_log = logger(__name__)
_REQUEST_SECONDS: Final = 10.0
"""From its connection on, a client has so long to ask and to take the answer."""
_MOST_CONNECTIONS: Final = 64
"""Each has a thread. One more ends the one that has been open for longest, so that clients that
keep theirs open lock nobody out."""


class LifePhase(Enum):
    """The states of the service's life."""

    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer to "alive?" or "ready?", with its reason."""

    ok: bool
    reason: str


class Health:
    """The last known state of the service. Safe to call from any thread.

    ``clock`` gives seconds and never goes back; only differences count. ``pages``: where they are,
    for the log.
    """

    def __init__(
        self,
        stall_limit_ms: int,
        clock: Callable[[], float] = time.monotonic,
        pages: str | None = None,
    ) -> None:
        self._pages: Final = pages
        self._limit: Final = stall_limit_ms / 1000
        self._clock: Final = clock
        self._lock: Final = threading.Lock()
        self._phase = LifePhase.STARTING
        self._failure = ""
        self._awaited: dict[str, str] = {}
        self._expected = False
        self._progress = clock()

    @property
    def phase(self) -> LifePhase:
        """The state of the service's life."""
        with self._lock:
            return self._phase

    def ready(self) -> None:
        """The query runs: rules are compiled, Spark is up. From now on progress is expected."""
        with self._lock:
            if self._phase is not LifePhase.STARTING:
                return
            self._phase = LifePhase.READY
            self._expected = True
            self._progress = self._clock()
        _log.info("ready", pages=self._pages)

    def progressed(self) -> None:
        """A batch ended, or the query reported that there was nothing to do."""
        with self._lock:
            self._progress = self._clock()

    def expect_progress(self, *, expected: bool) -> None:
        """Note whether batches should come: not while the query is rebuilt or deliberately held."""
        with self._lock:
            self._expected = expected
            self._progress = self._clock()

    def waiting(self, awaited: str, by: str = "question") -> None:
        """The job waits for ``awaited``, as "Kafka at …", and can do nothing else: alive, not
        ready. An empty ``awaited`` ends the wait that the same ``by`` began, and no other."""
        with self._lock:
            if awaited:
                self._awaited[by] = awaited
            else:
                self._awaited.pop(by, None)
            self._progress = self._clock()

    def stopping(self) -> None:
        """The service winds down: alive, but no longer ready."""
        with self._lock:
            if self._phase is not LifePhase.FAILED:
                self._phase = LifePhase.STOPPING
            self._expected = False

    def failed(self, reason: str) -> None:
        """The query is gone and will not come back in this process."""
        with self._lock:
            self._phase = LifePhase.FAILED
            self._failure = reason

    def live(self) -> Verdict:
        """Tell whether the process should go on."""
        with self._lock:
            if self._phase is LifePhase.FAILED:
                return Verdict(ok=False, reason=f"failed: {self._failure}")
            silent = self._clock() - self._progress
            if self._expected and not self._awaited and silent > self._limit:
                return Verdict(
                    ok=False,
                    reason=f"no progress for {silent:.0f} s, the limit is {self._limit:g} s",
                )
            return Verdict(ok=True, reason=self._describe())

    def readiness(self) -> Verdict:
        """Tell whether the service does its work."""
        with self._lock:
            ok = self._phase is LifePhase.READY and not self._awaited
            return Verdict(ok=ok, reason=self._describe())

    def _describe(self) -> str:
        reason = f"waits for {next(iter(self._awaited.values()))}" if self._awaited else ""
        if self._phase is LifePhase.FAILED:
            reason = self._failure
        return f"{self._phase.value}: {reason}" if reason else self._phase.value


class HealthServer:
    """The HTTP server, on threads of its own. ``rules`` must be quick: it is called per request."""

    def __init__(
        self,
        host: str,
        port: int,
        health: Health,
        registry: CollectorRegistry,
        rules: Callable[[], Any] = list,
        access: Access = Access(),  # noqa: B008  immutable
    ) -> None:
        app = access.guarded(application(health, registry, rules))
        try:
            self._server = _Server(host, port, app, access.tls)
        except OSError as error:
            raise StartError(
                f"observability: cannot listen on {host}:{port}: {error.strerror or error}"
            ) from None
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="health", daemon=True
        )

    @property
    def port(self) -> int:
        """The port that it listens on, also when it was asked for any (0)."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop answering and free the port; harmless when it never started."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


def application(
    health: Health, registry: CollectorRegistry, rules: Callable[[], Any]
) -> WSGIApplication:
    """The WSGI application with the four pages."""
    metrics = make_wsgi_app(registry)
    pages: dict[str, Callable[[], tuple[str, Any]]] = {
        "/livez": lambda: _verdict(health.live()),
        "/readyz": lambda: _verdict(health.readiness()),
        "/rules": lambda: ("200 OK", rules()),
    }

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "/")
        method = environ["REQUEST_METHOD"]
        extra: list[tuple[str, str]] = []
        content: Any
        if method not in ("GET", "HEAD"):
            status, content = "405 Method Not Allowed", {"error": "only GET and HEAD"}
            extra.append(("Allow", "GET, HEAD"))
        elif path == "/metrics":
            asked = {"REQUEST_METHOD": "GET", "HTTP_ACCEPT": _accept(environ)}
            body = b"".join(metrics({**environ, **asked}, start_response))
            return [b"" if method == "HEAD" else body]
        elif path in pages:
            status, content = pages[path]()
        else:
            status = "404 Not Found"
            content = {"error": "no such page", "pages": ["/metrics", *pages]}
        body = json.dumps(content).encode() + b"\n"
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            *extra,
        ]
        start_response(status, headers)
        return [b"" if method == "HEAD" else body]

    return answer


def _accept(environ: WSGIEnvironment) -> str:
    """Return the forms that the client takes; none where they cannot be read, which means all."""
    accept: str = environ.get("HTTP_ACCEPT", "")
    try:
        choose_encoder(accept)
    except (TypeError, ValueError):
        return ""
    return accept


def _verdict(verdict: Verdict) -> tuple[str, dict[str, Any]]:
    status = "200 OK" if verdict.ok else "503 Service Unavailable"
    return status, {"ok": verdict.ok, "reason": verdict.reason}


class _Handler(WSGIRequestHandler):
    # An answer leaves in one piece: an end of the process between two sends would cut it.
    wbufsize = -1

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Probes and scrapes are not worth a line each."""


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    block_on_close = False
    # Beyond the default of 5, a client that finds no room tries again after a second.
    request_queue_size = _MOST_CONNECTIONS

    def __init__(
        self, host: str, port: int, app: WSGIApplication, tls: ssl.SSLContext | None
    ) -> None:
        self._tls = tls
        self._lock = threading.Lock()
        #: Open connections, the one opened first at the front, and until when they may be.
        self._open: dict[socket.socket, float] = {}
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)
        self.set_app(app)

    def server_bind(self) -> None:
        """Bind without asking the name service for our own name, which can take long."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection on a thread, in place of the oldest where there are too many."""
        with self._lock:
            if len(self._open) >= _MOST_CONNECTIONS:
                self._cut_off(next(iter(self._open)))
            self._open[request] = time.monotonic() + _REQUEST_SECONDS
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Cut off clients that take longer than a request may. Called many times a second."""
        now = time.monotonic()
        with self._lock:
            for connection in [each for each, until in self._open.items() if until <= now]:
                self._cut_off(connection)

    def shutdown_request(self, request: Any) -> None:
        """The connection is done with."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def _cut_off(self, connection: socket.socket) -> None:
        """Shut a connection down; the thread that waits for it then ends, and closes it."""
        del self._open[connection]
        with suppress(OSError):
            # TLS would first say goodbye.
            socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def get_request(self) -> tuple[socket.socket, Any]:
        """The next connection; under TLS its handshake is left to the thread that serves it, so
        that a client that does not finish it holds up nobody."""
        connection, address = super().get_request()
        if self._tls is not None:
            connection = self._tls.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        return connection, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A broken connection or handshake is the client's affair, and no traceback."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)
