"""The output of one state partition and batch, as the writer of a task sees it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from spark_cep.pipeline.librdkafka.messages import Messages


class WriteOutcome(StrEnum):
    """The fate of a partition's records."""

    COMMITTED = "committed"
    #: The batch was run again; its records had been committed the first time.
    BEFORE = "written_before"
    NOTHING = "nothing"


class Output(Protocol):
    """One state partition's records of one batch. After an error only ``abandon`` may follow."""

    def write(self, messages: Messages) -> None:
        """Hand records on; they may wait in memory, within librdkafka's bound. Raises OutputError
        when one is refused."""

    def finish(self) -> WriteOutcome:
        """Wait until the brokers have everything. Raises OutputError when they have not."""

    def abandon(self) -> None:
        """Give up what was not finished."""


@dataclass(frozen=True, slots=True)
class WrittenBatch:
    """Batch ``number`` of ``query`` (Spark's id), decoded with the schemas of ``schema_ids`` (as
    ranges); ``offsets``: digest of where it ends in its sources."""

    query: str
    number: int
    schema_ids: str
    offsets: str


class Delivery(Protocol):
    """The delivery of output. Travels to the tasks."""

    def output(self, partition: int, batch: WrittenBatch, first: bool) -> Output:
        """For one task. ``first``: the batch is the first one since the query was started, so
        it may have been tried before."""
