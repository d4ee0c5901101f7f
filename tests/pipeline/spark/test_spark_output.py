"""Lines of Spark's processes as lines of the service's log."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest
import structlog

import spark_cep.pipeline.spark
from spark_cep.observability.logs import bound, configure, configured
from spark_cep.pipeline.spark import spark_output
from spark_cep.pipeline.spark.spark_output import as_text, take_in, tell


@contextmanager
def _taken_in() -> Iterator[int]:
    """Where a process is to write."""
    read, write = os.pipe()
    take_in(read)
    try:
        yield write
    finally:
        os.close(write)


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    """What is logged, at ``info``; logging is as it was afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    configure("info", "json", stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


def _lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("line", "memory"),
    [
        ("Terminating due to java.lang.OutOfMemoryError: Java heap space", "Java heap space"),
        ("Terminating due to java.lang.OutOfMemoryError: Metaspace", "Metaspace"),
        ("# There is insufficient memory for the Java Runtime Environment to", "the machine's"),
        ("# Native memory allocation (mmap) failed to map 65536 bytes.", "the machine's"),
        ("java.lang.OutOfMemoryError: Cannot reserve 8 bytes of direct buffer memory", None),
    ],
)
def test_which_memory_java_ran_out_of(
    line: str, memory: str | None, out: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Java says in its last words, on standard output; a line of another kind is none."""
    monkeypatch.setattr(spark_output, "_memory", [])
    monkeypatch.setattr(spark_output, "_told_of_memory", threading.Event())
    with _taken_in() as descriptor:
        os.write(descriptor, f"{line}\n".encode())
    found = spark_output.memory_that_ran_out(10 if memory else 0.2)
    assert found == memory


def test_a_line_of_log4j_keeps_what_it_says(out: io.StringIO) -> None:
    """Level, logger, text, trace; query and batch under our names; secrets masked."""
    said = {
        "timestamp": "2026-01-01T00:00:00.000Z",
        "level": "error",
        "logger": "org.apache.spark.X",
        "message": "Query failed, password=hunter2",
        "thread": "stream execution",
        "exception": "java.lang.Error: no\n\tat a.b",
        "mdc": {"query_id": "q-1", "batch_id": "7", "task_name": "t"},
    }
    tell(json.dumps(said))
    (line,) = _lines(out)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "spark_log",
        "level": "error",
        "logger": "org.apache.spark.X",
        "message": "Query failed, password=**********",
        "thread": "stream execution",
        "exception": "java.lang.Error: no\n\tat a.b",
        "query": "q-1",
        "batch": 7,
    }


@pytest.mark.parametrize("text", ["{not JSON", '{"a": 1}', "[1]", "plain %s text"])
def test_other_text_is_a_warning(out: io.StringIO, text: str) -> None:
    """Nobody knows what it is, so it is seen."""
    tell(text)
    (line,) = _lines(out)
    assert (line["event"], line["level"], line["message"]) == ("spark_output", "warning", text)


def test_what_spark_always_writes_is_not_seen(out: io.StringIO) -> None:
    """It tells nothing."""
    tell("Starting Streaming TransformWithStateInPandas Python worker.")
    assert _lines(out) == []


def test_output_of_a_process_is_taken_in(out: io.StringIO) -> None:
    """Both streams, with the run that is bound, until the last writer has ended."""
    assert configured()
    code = "import os, sys; print('one'); sys.stdout.flush(); os.write(2, b'two \\xff\\n\\n')"
    with bound(run="r-1"), _taken_in() as pipe:
        subprocess.run([sys.executable, "-c", code], stdout=pipe, stderr=pipe, check=True)
    deadline = time.monotonic() + 30
    while out.getvalue().count("\n") < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert [(line["message"], line["run"]) for line in _lines(out)] == [
        ("one", "r-1"),
        ("two \ufffd", "r-1"),
    ]


def test_text_where_there_is_no_log() -> None:
    """For people: level, logger, text and trace; nothing of what Spark always writes."""
    said = {"level": "error", "logger": "a.B", "message": "no", "exception": "E: x\n\tat a.b"}
    assert as_text(json.dumps(said)) == "error: a.B: no\nE: x\n\tat a.b"
    assert as_text("killed") == "killed"
    assert as_text("Starting Streaming TransformWithStateInPandas Python worker.") == ""


def test_text_goes_to_standard_error() -> None:
    """A command without a log of its own shows what Spark's processes write there, masked."""
    code = (
        "import subprocess, sys, time\n"
        "import os\n"
        "from spark_cep.pipeline.spark.spark_output import take_in\n"
        "read, pipe = os.pipe()\n"
        "take_in(read)\n"
        "subprocess.run([sys.executable, '-c', 'print(\"password=hunter2\")'], stdout=pipe)\n"
        "os.close(pipe)\n"
        "time.sleep(1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == ""
    assert done.stderr.startswith("password=***")


_PROGRAM = """
import org.apache.logging.log4j.*;

public class Says {
    public static void main(String[] arguments) {
        try (var context = CloseableThreadContext.put("batch_id", "3")) {
            LogManager.getLogger("org.apache.spark.Says").warn(
                "line \\"one\\"\\nline two", new IllegalStateException("why"));
            LogManager.getLogger("org.apache.spark.Says").info("not said");
        }
    }
}
"""


@pytest.mark.java
def test_log4j_writes_such_lines(out: io.StringIO, tmp_path: Path) -> None:
    """One line for an event with its trace, by Spark's own libraries and our configuration."""
    program = tmp_path / "Says.java"
    program.write_text(_PROGRAM, "utf-8")
    jars = Path(pyspark.__file__).parent / "jars"
    config = Path(spark_cep.pipeline.spark.__file__).parent / "log4j2.properties"
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else "java"
    done = subprocess.run(
        [java, f"-Dlog4j2.configurationFile=file:{config}", "-cp", f"{jars}/*", str(program)],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    (raw,) = done.stderr.splitlines()
    assert json.loads(raw)["timestamp"].endswith("Z")
    tell(raw)
    (line,) = _lines(out)
    assert line["event"] == "spark_log"
    assert (line["level"], line["logger"]) == ("warning", "org.apache.spark.Says")
    assert line["message"] == 'line "one"\nline two'
    assert line["exception"].startswith("java.lang.IllegalStateException: why\n\tat Says.main")
    assert line["batch"] == 3
