"""A Spark source of control records: what the driver says about time, in the offset log.

The driver writes its newest :class:`ControlRecord` to a file; the source offers it as a new offset,
so Spark runs a batch for it even when Kafka is silent, and the record itself is the offset: a batch
that is replayed after a crash sees the record it saw before. The offset's keys are in checkpoints,
so they keep their names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import BinaryType, StructType

from service.pipeline.driver.told_files import tell
from service.pipeline.spark.source_runner import no_trace_of_a_stop
from service.pipeline.wire.control import ControlRecord

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT = "spark_cep_control"
_NOTHING = {"number": 0, "statement": ""}
#: Of a statement: where the job begins to read.
START = "start"


@lru_cache(maxsize=1)
def register(spark: SparkSession) -> None:
    """Make the source known to a session, once: Spark warns of a second time."""
    spark.dataSource.register(ControlSource)


class ControlSource(DataSource):
    """``spark.readStream.format("spark_cep_control").option("file", …)``; one binary column."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> StructType:
        """One packet a row."""
        return StructType().add("packet", BinaryType())

    def simpleStreamReader(  # noqa: N802
        self,
        schema: StructType,  # noqa: ARG002  Spark's interface
    ) -> SimpleDataSourceStreamReader:
        """The reader that Spark runs in a process of its own."""
        no_trace_of_a_stop()
        return _Reader(Path(self.options["file"]))


class _Reader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, file: Path) -> None:
        self._file = file
        self._last: str | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        return dict(_NOTHING)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        self._last = self._newest()

    def _newest(self) -> str:
        return self._file.read_text("utf-8") if self._file.exists() else ""

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[bytes]], dict[str, Any]]:
        # The clock stands still in a bounded run, or it would have no end.
        newest = self._newest() if self._last is None else self._last
        if newest in ("", start["statement"]):
            return iter(()), start
        end = {"number": start["number"] + 1, "statement": newest}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(  # noqa: N802  Spark's name
        self,
        start: dict[str, Any],  # noqa: ARG002  Spark's interface
        end: dict[str, Any],
    ) -> Iterator[tuple[bytes]]:
        # A list iterator, not a generator: Spark copies it.
        record = ControlRecord.from_json(json.loads(end["statement"])["clock"])
        return iter([(record.encode(),)])


class ControlFile:
    """The driver's side: where it writes the newest record. ``run`` makes the first one of each run
    of the service a new offset, so that a batch runs at start and tells the driver the state of the
    clock. ``topics``: Kafka's ids of the topics that the
    run reads, by name; they stay in the offset log for the next start."""

    def __init__(self, file: Path, run: str, topics: Mapping[str, str]) -> None:
        self._file = file
        self._run = run
        self._topics = dict(topics)
        self._start: Mapping[str, Any] | None = None
        self._lower_bound: int | None = None
        self._record = ControlRecord(())
        self._rules: str | None = None
        self._unwritten: str | None = None

    def start_at(self, offsets: Mapping[str, Any]) -> None:
        """The job begins at these offsets of the input: they are told until :meth:`begun`, so that
        they are in the offset log of its first batch. Raises as :meth:`write`."""
        self._start = offsets
        self._write(self._record)

    def begun(self) -> None:
        """The first batch is done."""
        self._start = None

    def rules(self, fingerprint: str) -> None:
        """There are other rules for the next batch: a new record, so that it comes at once. Raises
        as :meth:`write`."""
        self._rules = fingerprint
        # The batch before has read the partitions; its lower bound may still wait to be read.
        self._write(ControlRecord((), self._lower_bound))

    def write(self, record: ControlRecord) -> None:
        """Replace the record. Raises StartError when the file cannot be written;
        :meth:`flush` tries again."""
        self._lower_bound = record.lower_bound
        self._record = record
        self._write(record)

    def _write(self, record: ControlRecord) -> None:
        told: dict[str, Any] = {"clock": record.as_json(), "run": self._run, "topics": self._topics}
        if self._rules is not None:
            told["rules"] = self._rules
        if self._start is not None:
            told[START] = self._start
        self._unwritten = json.dumps(told, sort_keys=True)
        self.flush()

    def flush(self) -> None:
        """Write the newest record, if it could not be written yet. Raises as :meth:`write`."""
        if self._unwritten is None:
            return
        tell(self._file, self._unwritten, "what time it is")
        self._unwritten = None
