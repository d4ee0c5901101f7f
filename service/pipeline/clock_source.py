"""A Spark source of clock statements: what the driver says about time, in the offset log.

The driver writes its newest :class:`ClockStatement` to a file; the source offers it as a new
offset, so Spark runs a batch for it even when Kafka is silent, and the statement itself is the
offset: a batch that is replayed after a crash sees the statement it saw before.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from service.packing import pack
from service.pipeline.watermark import ClockStatement

FORMAT = "spark_cep_clock"
_NOTHING = {"number": 0, "statement": ""}


class ClockSource(DataSource):
    """``spark.readStream.format("spark_cep_clock").option("file", …)``; one binary column."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> str:
        """One packed statement a row."""
        return "packet BINARY"

    def simpleStreamReader(  # noqa: N802
        self,
        schema: StructType,  # noqa: ARG002  Spark's interface
    ) -> SimpleDataSourceStreamReader:
        """The reader that Spark runs beside the driver."""
        return _Reader(Path(self.options["file"]))


class _Reader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, file: Path) -> None:
        self._file = file
        self._last: str | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        return dict(_NOTHING)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        self._last = self._statement()

    def _statement(self) -> str:
        return self._file.read_text("utf-8") if self._file.exists() else ""

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[bytes]], dict[str, Any]]:
        statement = self._statement()
        if self._last is not None:
            statement = _only_pauses(self._last, statement)
        if statement in ("", start["statement"]):
            return iter(()), start
        end = {"number": start["number"] + 1, "statement": statement}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(  # noqa: N802  Spark's name
        self,
        start: dict[str, Any],  # noqa: ARG002  Spark's interface
        end: dict[str, Any],
    ) -> Iterator[tuple[bytes]]:
        # A list iterator, not a generator: Spark copies it.
        return iter([(pack(json.loads(end["statement"])["clock"]),)])


def _only_pauses(last: str, newest: str) -> str:
    """What was stated last before a bounded run, with the newest pauses: the clock stands still
    in it, or it would have no end."""
    if not last or not newest:
        return last
    stated, paused = json.loads(last), json.loads(newest)["clock"]["paused"]
    if stated["clock"]["paused"] == paused:
        return last
    # Its partitions were waited for, and are read.
    stated["clock"] |= {"paused": paused, "partitions": []}
    return json.dumps(stated, sort_keys=True)


class ClockFile:
    """The driver's side: where it writes the newest statement."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._floor: int | None = None
        self._paused: tuple[str, ...] = ()
        self._writing = threading.Lock()

    def pause(self, fingerprints: Iterable[str], run: str) -> None:
        """State that these plans are paused too, until the end of the run."""
        with self._writing:
            self._paused = tuple(sorted({*self._paused, *fingerprints}))
            # The batch before has read the partitions; its floor may still wait to be read.
            self._write(ClockStatement((), self._floor), run)

    def write(self, statement: ClockStatement, run: str) -> None:
        """Replace the statement. ``run`` makes the first one of each run of the service a new
        offset, so that a batch runs at start and tells the driver the state of the clock; it also
        ends all pauses."""
        with self._writing:
            self._floor = statement.floor
            self._write(statement, run)

    def _write(self, statement: ClockStatement, run: str) -> None:
        statement = replace(statement, paused=self._paused)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_suffix(".new")
        text = json.dumps({"clock": statement.as_json(), "run": run}, sort_keys=True)
        fresh.write_text(text, "utf-8")
        fresh.replace(self._file)
