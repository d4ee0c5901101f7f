"""Control records between the driver's file and Spark's offset log."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.cloudpickle import dumps
from pyspark.serializers import read_int, write_int, write_with_length
from pyspark.sql.types import BinaryType, StructField, StructType

from service.pipeline.driver.control_source import ControlFile, ControlSource
from service.pipeline.wire.control import ControlRecord

WAITED_FOR = ControlRecord((("t", 0),))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the driver writes."""
    return tmp_path / "run" / "control.json"


def reader_of(path: Path) -> Any:
    """Spark's side."""
    source = ControlSource({"file": str(path)})
    return source.simpleStreamReader(None)  # type: ignore[arg-type]


def records(rows: Any) -> list[ControlRecord]:
    """What key groups get of it."""
    return [ControlRecord.decode(packet) for (packet,) in rows]


def test_a_new_record_is_a_new_offset(path: Path) -> None:
    """The same is not read twice, and what is read again from its offset is the same."""
    reader, file = reader_of(path), ControlFile(path, "run-1", {"events": "id-1"})
    start = reader.initialOffset()
    assert reader.read(start)[1] == start
    file.write(WAITED_FOR)
    rows, first = reader.read(start)
    assert records(rows) == [ControlRecord((("t", 0),))]
    assert reader.read(first)[1] == first
    file.write(ControlRecord((), 17))
    rows, second = reader.read(first)
    assert records(rows) == [ControlRecord((), 17)]
    assert second["number"] == first["number"] + 1
    assert records(reader.readBetweenOffsets(start, first)) == [ControlRecord((("t", 0),))]


def test_another_run_is_a_new_offset(path: Path) -> None:
    """Also with the same record."""
    reader, file = reader_of(path), ControlFile(path, "run-1", {"events": "id-1"})
    file.write(ControlRecord((), 17))
    _, offset = reader.read(reader.initialOffset())
    ControlFile(path, "run-2", {"events": "id-1"}).write(ControlRecord((), 17))
    rows, _ = reader.read(offset)
    assert records(rows) == [ControlRecord((), 17)]


def test_where_the_job_begins_is_told_with_the_first_batch(path: Path) -> None:
    """With what else is told, until that batch is done: Spark's offset log keeps it."""
    reader, file = reader_of(path), ControlFile(path, "run-1", {"events": "id-1"})
    file.write(WAITED_FOR)
    file.start_at({"events": {"0": 7}})
    rows, offset = reader.read(reader.initialOffset())
    assert records(rows) == [WAITED_FOR]
    assert json.loads(offset["statement"])["start"] == {"events": {"0": 7}}
    file.begun()
    file.write(ControlRecord((), 17))
    assert "start" not in json.loads(reader.read(offset)[1]["statement"])


def test_time_stands_still_in_a_bounded_run(path: Path) -> None:
    """Or it would have no end."""
    reader, file = reader_of(path), ControlFile(path, "run-1", {"events": "id-1"})
    file.write(WAITED_FOR)
    reader.prepareForTriggerAvailableNow()
    _, offset = reader.read(reader.initialOffset())
    file.write(ControlRecord((), 17))
    assert reader.read(offset)[1] == offset
    file.rules("other rules")
    assert reader.read(offset)[1] == offset


def test_a_query_that_stops_leaves_no_trace(path: Path) -> None:
    """Spark closes the connection of its runner, which fails to answer: not worth a line."""
    runner = "pyspark.sql.streaming.python_streaming_source_runner"
    schema = StructType([StructField("packet", BinaryType())]).json()
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
            write_with_length(dumps(ControlSource({"file": str(path)})), stream)
            write_with_length(schema.encode(), stream)
            write_int(1, stream)
            stream.flush()
            assert read_int(stream) == 0, "the reader is there"
            # Closed at once, with nothing more to be sent: the runner's answer fails.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        _, told = process.communicate(timeout=60)
    assert told.decode() == ""
