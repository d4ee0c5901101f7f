"""A Spark source of clock statements: what the driver says about time, in the offset log.

The driver writes its newest :class:`ClockStatement` to a file; the source offers it as a new
offset, so Spark runs a batch for it even when Kafka is silent, and the statement itself is the
offset: a batch that is replayed after a crash sees the statement it saw before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from service.matcher.snapshot import pack
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
        statement = self._statement() if self._last is None else self._last
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


class ClockFile:
    """The driver's side: where it writes the newest statement."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def write(self, statement: ClockStatement, run: str) -> None:
        """Replace the statement. ``run`` makes the first one of each run of the service a new
        offset, so that a batch runs at start and tells the driver the state of the clock."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_suffix(".new")
        text = json.dumps({"clock": statement.as_json(), "run": run}, sort_keys=True)
        fresh.write_text(text, "utf-8")
        fresh.replace(self._file)
