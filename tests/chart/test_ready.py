"""The script of ``helm test``, against a real page."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.chart.files import CHART

SCRIPT = CHART / "files" / "ready.py"


class _Page(BaseHTTPRequestHandler):
    """503 as often as ``refusals`` says, then 200."""

    refusals = 0

    def do_GET(self) -> None:
        kind = type(self)
        code = 503 if kind.refusals > 0 else 200
        kind.refusals -= 1
        self.send_response(code)
        self.end_headers()
        self.wfile.write(b'{"status": "ready"}')

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def page() -> Iterator[str]:
    """The address of a page."""
    server = HTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/readyz"
    server.shutdown()
    thread.join()
    server.server_close()


def _ask(url: str, seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT.read_text("utf-8"), url, str(seconds)],
        check=False,
        capture_output=True,
        text=True,
    )


def test_waits_until_it_is_ready(page: str) -> None:
    """A page that says no at first, and then yes."""
    _Page.refusals = 1
    done = _ask(page, 30)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f'{page} 200 {{"status": "ready"}}\n'


def test_fails_when_it_never_is(page: str) -> None:
    """The last answer is told."""
    _Page.refusals = 1000
    done = _ask(page, 1)
    assert done.returncode == 1
    assert done.stderr == f"{page} was not ready within 1 s: HTTP Error 503: Service Unavailable\n"
