"""The server of the page."""

from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Final

import uvicorn
from fastapi import FastAPI
from nicegui import ui

from spark_cep.errors import ConfigurationError, StartError
from spark_cep.play.beginning import check_beginning, run_beginning
from spark_cep.play.files.given_files import MOST_BYTES
from spark_cep.play.page.guard import LOCAL, Guard
from spark_cep.play.page.page import Page, Workers
from spark_cep.play.trial import Trial
from spark_cep.play.worker import Worker

SECONDS_OF_CHECK: Final = 5.0
SECONDS_OF_RUN: Final = 10.0
_ALL_ADDRESSES: Final = ("0.0.0.0", "::", "")  # noqa: S104  named to be refused
#: What stands around files in a request.
_AROUND: Final = 1 << 20
_HERE: Final = Path(__file__).parent
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


def serve(
    host: str, port: int, trials: Sequence[Trial], *, show: bool, ready: Callable[[str], None]
) -> None:
    """Serve the page until the process is interrupted. ``ready`` is called with its address.

    Raises ConfigurationError for no one address, StartError where the port cannot be had.
    """
    if host in _ALL_ADDRESSES:
        raise ConfigurationError(
            f"--host {host}: name the one address, or host name, by which the page is reached;"
            " requests for other names are not answered"
        )
    workers = Workers(
        Worker(SECONDS_OF_CHECK, check_beginning), Worker(SECONDS_OF_RUN, run_beginning)
    )
    style = (_HERE / "style.css").read_text("utf-8")

    @ui.page("/")
    def index() -> None:
        ui.add_css(style)
        ui.add_head_html(_TELL_COLOURS)
        Page(trials, workers)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        beginning = [
            asyncio.create_task(each.begin()) for each in (workers.checking, workers.running)
        ]
        try:
            yield
        finally:
            for each in beginning:
                each.cancel()
            workers.checking.close()
            workers.running.close()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    ui.run_with(app, title="spark-cep play", dark=None, tailwind=False, show_welcome_message=False)
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
        config.app = Guard(app, names, MOST_BYTES + _AROUND)
        address = f"http://{shown}:{port}/"
        ready(address)
        if show:
            webbrowser.open(address)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run([listening])
