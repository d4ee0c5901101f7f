"""The server of the page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from fastapi import FastAPI

from spark_cep.play.page.serving import ServedPage, serve_page
from spark_cep.watch.job_watch import JobWatch
from spark_cep.watch.page.page import Changes, WatchPage
from spark_cep.watch.readers import Readers

_MOST_BYTES: Final = 1 << 20
_STYLE: Final = Path(__file__).with_name("style.css")


def serve(
    host: str,
    port: int,
    watch: JobWatch,
    readers: Readers,
    changes: Changes | None,
    *,
    show: bool,
    ready: Callable[[str], None],
) -> None:
    """Serve the page until the process is interrupted. ``ready`` is called with its address.

    Raises what :func:`~spark_cep.play.page.serving.serve_page` does.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        readers.start()
        try:
            yield
        finally:
            await asyncio.to_thread(readers.close)

    page = ServedPage(
        "spark-cep watch",
        lambda: WatchPage(watch, readers, changes),
        lifespan,
        _MOST_BYTES,
        _STYLE.read_text("utf-8"),
    )
    serve_page(page, host, port, show=show, ready=ready)
