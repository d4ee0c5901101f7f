"""The Python process in which Spark runs the driver's side of a Python data source."""

from __future__ import annotations

import sys
from types import TracebackType


def no_trace_of_a_stop() -> None:
    """End this process without a trace when Spark has closed the connection to it.

    A query that ends closes the connection, sometimes while the runner
    (``pyspark.sql.streaming.python_streaming_source_runner``) still writes to it. Its traceback
    says no more than that the query has ended. Call this where the reader is made: that is the
    first code of a data source that runs in the process."""
    sys.excepthook = _unless_disconnected


def _unless_disconnected(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if not issubclass(kind, ConnectionError):
        sys.__excepthook__(kind, error, trace)
