"""A web server of a test that gives one body: TLS, tags, a token, and all that can go wrong."""

from __future__ import annotations

import hashlib
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from examples.embedded.process import HOST, free_ports
from tests.certificates import Identity

TOKEN = "s3cr3t-t0k3n"


class Served:
    """The body at ``url``. ``status`` and ``headers`` replace what is answered; ``tagged``: with an
    ``ETag``, which ``salt`` changes; ``pause``: seconds between two bytes; ``answers``: the status
    of each answer."""

    def __init__(self, identity: Identity | None, trusted: str | None = None) -> None:
        self._port = free_ports(1)[0]
        self._identity = identity
        self._trusted = trusted
        self._server: ThreadingHTTPServer | None = None
        scheme = "http" if identity is None else "https"
        self.url = f"{scheme}://{HOST}:{self._port}/rules/all.yaml"
        self.body = b""
        self.status = 200
        self.headers: dict[str, str] = {}
        self.tagged = True
        self.salt = ""
        self.pause = 0.0
        self.cut = 0
        self.answers: list[int] = []

    def start(self) -> None:
        """Answer, from now on."""
        served = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                served._answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing on the terminal."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that does not trust the certificate hangs up."""

        self._server = Server((HOST, self._port), Handler)
        if self._identity is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(self._identity.certificate, self._identity.key)
            if self._trusted is not None:
                context.load_verify_locations(self._trusted)
                context.verify_mode = ssl.CERT_REQUIRED
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Answer no more."""
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()
        self._server = None

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        if self._server is None:
            request.close_connection = True
            return
        tag = f'"{hashlib.sha256(self.body + self.salt.encode()).hexdigest()[:16]}"'
        status, body = self.status, self.body
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            status, body = 401, b""
        elif self.tagged and request.headers.get("If-None-Match") == tag:
            status, body = 304, b""
        self.answers.append(status)
        request.send_response(status)
        for name, value in self.headers.items():
            request.send_header(name, value)
        if self.tagged:
            request.send_header("ETag", tag)
        if status != 304:
            request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if self.pause:
            for number in range(len(body)):
                request.wfile.write(body[number : number + 1])
                time.sleep(self.pause)
        elif self.cut:
            request.wfile.write(body[: -self.cut])
            request.close_connection = True
        else:
            request.wfile.write(body)
