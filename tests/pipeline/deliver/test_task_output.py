"""A task's packets, the records that are handed on, and its report."""

from __future__ import annotations

import numpy as np
import pytest

from spark_cep.columns.vectors import Bytes
from spark_cep.pipeline.deliver.output import WriteOutcome, WrittenBatch
from spark_cep.pipeline.deliver.task_output import TaskOutput
from spark_cep.pipeline.librdkafka.messages import Messages
from spark_cep.pipeline.wire.packet_schemas import PacketKind
from spark_cep.pipeline.wire.packets import (
    EventTimes,
    OutputRecords,
    Record,
    ResultColumns,
)
from spark_cep.pipeline.wire.reports import Count, Report
from tests.pipeline.librdkafka.records import records_of

RECORDS = OutputRecords((("late", b"k", b"vv", [("h", None)]), ("late", None, None, [])))
RESULTS = ResultColumns(
    "m",
    [[("h", b"x")]],
    np.array([0, 0]),
    np.array([0, -1]),
    *(Bytes.of(each) for each in ([b"k"], [b"1", b"2"], [b"v", b"www"])),
)
EARLIER = Report(live={("abc", 1): 1}).encode()


class Memory:
    """Output that keeps what it is given."""

    def __init__(self, written: WriteOutcome = WriteOutcome.COMMITTED) -> None:
        self.written = written
        self.records: list[Record] = []
        self.abandoned = False
        self.asked: tuple[int, WrittenBatch, bool] | None = None

    def output(self, *task: int | WrittenBatch | bool) -> Memory:
        """Itself, whatever the task."""
        self.asked = task  # type: ignore[assignment]
        return self

    def write(self, messages: Messages) -> None:
        """Keep them."""
        self.records += records_of(messages)

    def finish(self) -> WriteOutcome:
        """As told."""
        return self.written

    def abandon(self) -> None:
        """Note it."""
        self.abandoned = True


def written(memory: Memory, *packets: tuple[int, bytes]) -> list[bytes]:
    """The reports of one task."""
    task = TaskOutput(memory, 3, WrittenBatch("query", 7, "", "f00d"), again=True)
    return [*task.written(packets), task.finished()]


def test_records_are_written_and_counted() -> None:
    """By topic, with the bytes of keys and values; reports of others are passed on as they are."""
    memory = Memory()
    earlier, own = written(
        memory,
        (PacketKind.RECORDS, RECORDS.encode()),
        (PacketKind.REPORT, EARLIER),
        (PacketKind.RESULTS, RESULTS.encode()),
    )
    assert earlier == EARLIER
    assert memory.records == [*RECORDS.records, *records_of(Messages.of_results(RESULTS))]
    assert memory.asked == (3, WrittenBatch("query", 7, "", "f00d"), True)
    counts = Report.decode(own).counts
    assert counts.pop((Count.BUSY_US, "sink")) >= 0
    assert counts == {
        (Count.WRITTEN, "late"): 2,
        (Count.WRITTEN_BYTES, "late"): 3,
        (Count.WRITTEN, "m"): 2,
        (Count.WRITTEN_BYTES, "m"): 5,
        (Count.TRANSACTIONS, "committed"): 1,
    }


def test_a_task_without_records_reports_its_time_alone() -> None:
    """No transaction was made."""
    (own,) = written(Memory(WriteOutcome.NOTHING))
    assert set(Report.decode(own).counts) == {(Count.BUSY_US, "sink")}


def test_a_packet_for_others_is_refused() -> None:
    """It is not taken for records."""
    with pytest.raises(ValueError, match="kind EVENT_TIMES is not for a writer"):
        written(Memory(), (PacketKind.EVENT_TIMES, EventTimes(()).encode()))


def test_output_that_is_given_up() -> None:
    """It is undone."""
    memory = Memory()
    TaskOutput(memory, 3, WrittenBatch("query", 7, "", "f00d"), again=False).abandon()
    assert memory.abandoned
