"""The server of the page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from fastapi import FastAPI

from spark_cep.play.beginning import check_beginning, run_beginning
from spark_cep.play.files.given_files import MOST_BYTES
from spark_cep.play.page.page import Page, Workers
from spark_cep.play.page.serving import ServedPage, serve_page
from spark_cep.play.trial import Trial
from spark_cep.play.worker import Worker

SECONDS_OF_CHECK: Final = 5.0
SECONDS_OF_RUN: Final = 10.0
#: What stands around files in a request.
_AROUND: Final = 1 << 20


def serve(
    host: str, port: int, trials: Sequence[Trial], *, show: bool, ready: Callable[[str], None]
) -> None:
    """Serve the page until the process is interrupted. ``ready`` is called with its address.

    Raises what :func:`~spark_cep.play.page.serving.serve_page` does.
    """
    workers = Workers(
        Worker(SECONDS_OF_CHECK, check_beginning), Worker(SECONDS_OF_RUN, run_beginning)
    )

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

    page = ServedPage(
        "spark-cep play", lambda: Page(trials, workers), lifespan, MOST_BYTES + _AROUND
    )
    serve_page(page, host, port, show=show, ready=ready)
