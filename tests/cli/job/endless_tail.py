"""``spark-cep tail`` over a stream that never ends and needs no broker, as a process of its own."""

from __future__ import annotations

import itertools
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from spark_cep.cli.main import main
from spark_cep.pipeline.driver.commands import output_stream
from spark_cep.pipeline.driver.commands.output_stream import Arrival


class EndlessStream:
    """``most`` records, then none."""

    missing = ()
    at_end = False

    def __init__(self, most: float) -> None:
        self._most = most
        self._numbers = itertools.count()

    def poll(self, _seconds: float) -> list[Arrival]:
        """One more record, after a while."""
        time.sleep(0.02)
        number = next(self._numbers)
        if number >= self._most:
            return []
        return [Arrival("late", "late", 0, number, "k", {}, {"n": number})]


if __name__ == "__main__":
    # A shell's background jobs, tests among them, ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    stream = EndlessStream(float(sys.argv.pop()))

    @contextmanager
    def endless(*_: Any) -> Iterator[EndlessStream]:
        """Stand for the stream of a broker."""
        yield stream

    output_stream.output_stream = endless  # type: ignore[assignment]  # as far as tail uses it
    main()
