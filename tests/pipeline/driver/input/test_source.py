"""What the driver tells, between its file, Spark's offset log and the tasks."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.cloudpickle import dumps
from pyspark.serializers import read_int, write_int, write_with_length
from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable

from spark_cep.pipeline.driver.control.answers import last_answer
from spark_cep.pipeline.driver.control.control_file import ControlFile, start_of, topics_of
from spark_cep.pipeline.driver.control.source_offset import Ends, SourceOffset
from spark_cep.pipeline.driver.input.batch_limit import RecordLimit
from spark_cep.pipeline.driver.input.pacing import Pacing
from spark_cep.pipeline.driver.input.source import DriverFiles, input_source, limit_reads
from spark_cep.pipeline.match.watermark import END
from spark_cep.pipeline.read.record_range import Range
from spark_cep.pipeline.state.key_group_labels import group_of
from spark_cep.pipeline.wire.control import ControlRecord
from spark_cep.pipeline.wire.packet_schemas import PACKET_SCHEMA, PacketKind

WAITED_FOR = ControlRecord((("t", 0),))
GROUPS = 3


def source_of(files: DriverFiles) -> type[DataSource]:
    """That of a query without settings, which packs nothing."""
    settings: Any = None
    pack: Any = iter
    return input_source("test", (settings, files, None, GROUPS), ({}, True, pack))


def files_of(path: Path) -> DriverFiles:
    """All of a run, whose control file is at ``path``."""
    return DriverFiles(path, path.with_name("limit.json"), path.with_name("answers.json"))


class Clock:
    """A clock that goes when told."""

    now = 100.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now


class Planned:
    """As InputOffsets, for a partition that ends at ``end``, and with a task for each record."""

    state_partitions = 2

    def __init__(self) -> None:
        self.end = self.known_end = 0

    @property
    def known(self) -> Ends:
        """As the real one."""
        return {("t", 0): max(self.end, self.known_end)}

    def initial(self) -> Ends:
        """As the real one."""
        return {("t", 0): 0}

    def latest(self, start: Ends, most: int | None) -> Ends:
        """As the real one."""
        return {("t", 0): self.end}

    def stop_at_present_ends(self) -> None:
        """As the real one."""

    def ranges(self, begins: Ends, ends: Ends) -> list[list[Range]]:
        """As the real one."""
        begin, end = begins["t", 0], ends["t", 0]
        return [[Range("t", 0, at, at + 1)] for at in range(begin, end)]


class Waited:
    """As Arrivals: what was waited for."""

    def __init__(self) -> None:
        self.ends: list[Ends] = []
        self.rests = 0

    def wait(self, ends: Ends, seconds: float, otherwise: Callable[[], bool]) -> None:
        """As the real one, but at once."""
        assert 0 < seconds <= 0.5, "Kafka is asked twice a second"
        assert not otherwise(), "nothing else is new"
        self.ends.append(ends)

    def rest(self) -> None:
        """As the real one."""
        self.rests += 1


class Source:
    """Spark's side, as Spark calls it."""

    def __init__(self, path: Path, aim: float = 0.0, of_one_stage: int | None = None) -> None:
        self.planned, self.files, self.waited = Planned(), files_of(path), Waited()
        self.clock = Clock()
        self.reader: Any = source_of(self.files)({}).streamReader(from_arrow_schema(PACKET_SCHEMA))
        self.reader.__dict__ |= {
            "_planned": (self.planned, self.files, None),
            "_pacing": Pacing(aim, self.clock),
            "_arrivals": self.waited,
        }
        path.parent.mkdir()
        limit_reads(self.files.limit, RecordLimit(None, of_one_stage))
        self.at = self.reader.initialOffset()

    def next(self) -> dict[str, Any]:
        """The offset of the next batch."""
        self.at = self.reader.latestOffset(self.at, ReadAllAvailable())
        return self.at

    def tasks(self, start: Any, end: Any) -> Sequence[Any]:
        """What its tasks are given."""
        return [each.value for each in self.reader.partitions(start, end)]

    def record(self, start: Any, end: Any) -> ControlRecord | None:
        """What key groups are told by a batch without records."""
        parts = self.reader.partitions(start, end)
        if not parts:
            return None
        (batch,) = [batch for part in parts for batch in self.reader.read(part)]
        rows = batch.to_pylist()
        assert [group_of(row["label"]) for row in rows] == list(range(GROUPS))
        assert {row["kind"] for row in rows} == {PacketKind.CONTROL}
        (packet,) = {row["packet"] for row in rows}
        return ControlRecord.decode(packet)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the driver writes."""
    return tmp_path / "run" / "control.json"


def test_a_new_record_is_a_new_offset(path: Path) -> None:
    """The same is not told twice, and what is told again from its offset is the same."""
    source, file = Source(path), ControlFile(path, "run-1", {"events": "id-1"})
    start = source.at
    assert source.next() == start
    file.write(WAITED_FOR)
    first = source.next()
    assert source.record(start, first) == WAITED_FOR
    assert topics_of(SourceOffset.from_json(first)) == {"events": "id-1"}
    assert source.next() == first
    assert source.record(first, first) is None
    file.write(ControlRecord((), 17))
    second = source.next()
    assert source.record(first, second) == ControlRecord((), 17)
    assert source.record(start, first) == WAITED_FOR


def test_another_run_is_a_new_offset(path: Path) -> None:
    """Also with the same record."""
    source, file = Source(path), ControlFile(path, "run-1", {"events": "id-1"})
    file.write(ControlRecord((), 17))
    first = source.next()
    ControlFile(path, "run-2", {"events": "id-1"}).write(ControlRecord((), 17))
    assert source.record(first, source.next()) == ControlRecord((), 17)


def test_nothing_is_read_behind_the_end_of_time(path: Path) -> None:
    """The batch that is told that the input has ended has no records: they would all be late."""
    source, file = Source(path), ControlFile(path, "run-1", {})
    file.write(WAITED_FOR)
    source.planned.end = 2
    source.reader.prepareForTriggerAvailableNow()
    read = source.next()
    file.write(ControlRecord((), END))
    source.planned.end = 3
    source.reader.prepareForTriggerAvailableNow()
    ended = source.next()
    assert source.record(read, ended) == ControlRecord((), END)
    assert SourceOffset.from_json(ended).input == {("t", 0): 2}
    assert source.next() == ended


def test_a_record_goes_with_the_first_task(path: Path) -> None:
    """It needs none of its own where there are records, and comes alone where there are none."""
    source, file = Source(path), ControlFile(path, "run-1", {})
    start = source.at
    file.write(WAITED_FOR)
    silent = source.next()
    source.planned.end = 2
    more = source.next()
    told = WAITED_FOR.encode()
    every = range(GROUPS)
    assert source.tasks(start, silent) == [(told, [], every)]
    ranges = [[Range("t", 0, 0, 1)], [Range("t", 0, 1, 2)]]
    assert source.tasks(silent, more) == [(None, each, every) for each in ranges]
    assert source.tasks(start, more) == [(told, ranges[0], every), (None, ranges[1], every)]


def test_each_task_of_one_stage_has_the_whole_batch(path: Path) -> None:
    """For the key groups of its state partition. A larger batch has two stages, and what a batch
    was planned with it has again."""
    source, file = Source(path, of_one_stage=2), ControlFile(path, "run-1", {})
    start = source.at
    file.write(WAITED_FOR)
    source.planned.end = 2
    small = source.next()
    told, ranges = WAITED_FOR.encode(), [Range("t", 0, 0, 1), Range("t", 0, 1, 2)]
    of_one_stage = [(told, ranges, range(0, GROUPS, 2)), (told, ranges, range(1, GROUPS, 2))]
    assert source.tasks(start, small) == of_one_stage
    source.planned.end = 5
    large = source.next()
    assert [task[1:] for task in source.tasks(small, large)] == [
        ([Range("t", 0, at, at + 1)], range(GROUPS)) for at in range(2, 5)
    ]
    assert source.next() == large, "with nothing new there is no other text"
    limit_reads(source.files.limit, RecordLimit(None, None))
    assert source.tasks(start, small) == of_one_stage


def test_where_the_job_begins_is_told_with_the_first_batch(path: Path) -> None:
    """With what else is told, until that batch is done: Spark's offset log keeps it."""
    source, file = Source(path), ControlFile(path, "run-1", {"events": "id-1"})
    start = source.at
    file.write(WAITED_FOR)
    file.start_at({("events", 0): 7})
    first = source.next()
    assert source.record(start, first) == WAITED_FOR
    assert start_of(SourceOffset.from_json(first)) == {("events", 0): 7}
    file.begun()
    file.write(ControlRecord((), 17))
    assert start_of(SourceOffset.from_json(source.next())) is None


def test_time_stands_still_in_a_bounded_run(path: Path) -> None:
    """Or it would have no end."""
    source, file = Source(path), ControlFile(path, "run-1", {"events": "id-1"})
    file.write(WAITED_FOR)
    source.reader.prepareForTriggerAvailableNow()
    first = source.next()
    file.write(ControlRecord((), 17))
    assert source.next() == first
    file.rules("other rules")
    assert source.next() == first


def test_without_news_it_waits_for_records(path: Path) -> None:
    """And says that Kafka has answered; a batch that begins needs no waiting."""
    source, file = Source(path), ControlFile(path, "run-1", {})
    file.write(WAITED_FOR)
    first = source.next()
    assert (source.waited.ends, source.waited.rests) == ([], 1)
    begun = last_answer(source.files.answers)
    assert begun is not None
    assert not begun.waits
    assert source.next() == first
    assert source.waited.ends == [{("t", 0): 0}]
    waits = last_answer(source.files.answers)
    assert waits is not None
    assert waits.waits
    assert waits.at >= begun.at


def test_what_waits_begins_when_it_is_due(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark is told nothing new before. It asks again at least twice a second, and each time
    Kafka is asked, too."""
    source, file = Source(path, aim=5.0), ControlFile(path, "run-1", {})
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        source.clock.now += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    file.write(WAITED_FOR)
    first = source.next()
    source.clock.now += 1.25
    source.planned.end = 1
    asked = 0
    while source.next() == first:
        asked += 1
        source.planned.end += 1
    assert slept == [0.5, 0.5, 0.5, 0.5, 0.5]
    assert source.clock.now == 100.0 + 5.0 - 1.25
    assert SourceOffset.from_json(source.at).input == {("t", 0): 1 + asked}


def test_a_full_batch_begins_at_once(path: Path) -> None:
    """Waiting longer could not make it larger. So does the next one, with what is left of a longer
    wait."""
    source, file = Source(path, aim=60.0), ControlFile(path, "run-1", {})
    file.write(WAITED_FOR)
    source.next()
    source.clock.now += 0.5
    source.planned.end, source.planned.known_end = 10, 11
    assert SourceOffset.from_json(source.next()).input == {("t", 0): 10}
    source.clock.now += 0.5
    source.planned.end = 11
    assert SourceOffset.from_json(source.next()).input == {("t", 0): 11}


def test_a_bounded_run_waits_for_nothing(path: Path) -> None:
    """Whatever the aim is."""
    source, file = Source(path, aim=60.0), ControlFile(path, "run-1", {})
    file.write(WAITED_FOR)
    source.reader.prepareForTriggerAvailableNow()
    source.planned.end = 1
    first = source.next()
    source.planned.end = 2
    assert source.next() != first
    assert source.next() == source.at
    assert source.waited.ends == []


def test_a_query_that_stops_leaves_no_trace(path: Path) -> None:
    """Spark closes the connection of its runner, which fails to answer: not worth a line."""
    runner = "pyspark.sql.streaming.python_streaming_source_runner"
    source = source_of(files_of(path))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = {"PYTHON_WORKER_FACTORY_PORT": str(server.getsockname()[1])}
        secret = {"PYTHON_WORKER_FACTORY_SECRET": "secret"}
        process = subprocess.Popen(
            [sys.executable, "-m", runner], env=os.environ | port | secret, stderr=subprocess.PIPE
        )
        connection, _ = server.accept()
        with connection, connection.makefile("rwb") as stream:
            stream.read(read_int(stream))
            write_with_length(b"ok", stream)
            stream.flush()
            assert read_int(stream) == process.pid
            write_with_length(b"%d.%d" % sys.version_info[:2], stream)
            write_with_length(str(path.parent).encode(), stream)
            write_int(0, stream)
            write_with_length(dumps(source({})), stream)
            write_with_length(from_arrow_schema(PACKET_SCHEMA).json().encode(), stream)
            write_int(1, stream)
            stream.flush()
            assert read_int(stream) == 0, "the reader is there"
            # Closed at once, with nothing more to be sent: the runner's answer fails.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        _, told = process.communicate(timeout=60)
    assert told.decode() == ""
