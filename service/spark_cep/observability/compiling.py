"""Log lines around code that may have to be compiled first, which takes up to five minutes.

Apart from the log, since Python workers compile too, and have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from spark_cep.columns.compilation import compilation_noticed
from spark_cep.observability.logs import logger

_log = logger(__name__)


@contextmanager
def compilation_logged() -> Iterator[None]:
    """Log when compiling in the block begins to take long, and when it has ended."""
    with compilation_noticed(
        lambda: _log.info("compiling"),
        lambda seconds: _log.info("compiled", seconds=round(seconds, 1)),
    ):
        yield
