"""A registry behind TLS and a login, as a proxy in front of it makes it."""

from __future__ import annotations

import base64
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.certificates import Identity

_PASSED_ON = ("Content-Type", "Accept")


@contextmanager
def guarded_registry(registry: str, identity: Identity, login: tuple[str, str]) -> Iterator[str]:
    """The URL at which ``registry`` answers under TLS those who log in; 401 for the rest."""
    wanted = "Basic " + base64.b64encode(":".join(login).encode()).decode()
    behind = urlsplit(registry)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.headers.get("Authorization") != wanted:
                self._answer(401, b'{"error_code": 401, "message": "Unauthorized"}')
                return
            request = urllib.request.Request(  # noqa: S310 - our own server
                f"{behind.scheme}://{behind.netloc}{self.path}",
                data=body or None,
                headers={k: v for k, v in self.headers.items() if k in _PASSED_ON},
                method=self.command,
            )
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                    self._answer(answer.status, answer.read())
            except urllib.error.HTTPError as error:
                with error:
                    self._answer(error.code, error.read())

        do_POST = do_GET

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on the terminal."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that does not trust the certificate hangs up."""

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(identity.certificate, identity.key)
    server = Server(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}{behind.path}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
