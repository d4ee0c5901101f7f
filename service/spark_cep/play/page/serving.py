"""Serves a page to its own names alone, until the process is interrupted."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvicorn
from fastapi import FastAPI
from nicegui import ui

from spark_cep.errors import ConfigurationError, StartError
from spark_cep.play.page.guard import LOCAL, Guard

_ALL_ADDRESSES: Final = ("0.0.0.0", "::", "")  # noqa: S104  named to be refused
_STYLE: Final = Path(__file__).with_name("style.css")
#: Tells Python which colours the browser shows, also where these are the system's.
_TELL_COLOURS: Final = """
<script>
  let told = null;
  const tellColours = () => {
    const dark = document.body.classList.contains("body--dark");
    if (dark !== told) emitEvent("play-dark", (told = dark));
  };
  window.addEventListener("load", () => {
    new MutationObserver(tellColours).observe(document.body, { attributeFilter: ["class"] });
    const wait = () => (window.socket?.connected ? tellColours() : setTimeout(wait, 50));
    wait();
  });
</script>
"""


@dataclass(frozen=True)
class ServedPage:
    """A page. ``build`` makes it for a browser tab; ``lifespan`` is what runs beside the server;
    ``style``: beside that which all pages share; ``most_bytes``: the longest body of a request."""

    title: str
    build: Callable[[], object]
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]]
    most_bytes: int
    style: str = ""


def serve_page(
    page: ServedPage, host: str, port: int, *, show: bool, ready: Callable[[str], None]
) -> None:
    """Serve the page until the process is interrupted. ``ready`` is called with its address.

    Raises ConfigurationError for no one address, StartError where the port cannot be had.
    """
    if host in _ALL_ADDRESSES:
        raise ConfigurationError(
            f"--host {host}: name the one address, or host name, by which the page is reached;"
            " requests for other names are not answered"
        )
    style = _STYLE.read_text("utf-8") + page.style

    @ui.page("/")
    def index() -> None:
        ui.add_css(style)
        ui.add_head_html(_TELL_COLOURS)
        page.build()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=page.lifespan)
    ui.run_with(app, title=page.title, dark=None, tailwind=False, show_welcome_message=False)
    config = uvicorn.Config(app, host=host, port=port, log_level="warning")
    try:
        listening = config.bind_socket()
    except SystemExit:
        raise StartError(f"port {port} of {host} cannot be had; give another with --port") from None
    with closing(listening):
        listening.listen()  # who comes before the server has started waits for it
        port = listening.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        names = [f"{name}:{port}" for name in (*LOCAL, shown)]
        config.app = Guard(app, names, page.most_bytes)
        address = f"http://{shown}:{port}/"
        ready(address)
        if show:
            webbrowser.open(address)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run([listening])
