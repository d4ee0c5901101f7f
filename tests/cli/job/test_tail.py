"""``spark-cep tail``: its lines, where it begins, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spark_cep.cli.job.tail_text import begin_of, json_line, text_line
from spark_cep.errors import ConfigurationError
from spark_cep.pipeline.driver.commands.output_stream import Arrival
from spark_cep.pipeline.driver.kafka.cluster import BEGINNING, END

ROOT = Path(__file__).parents[3]
NINE = datetime(2025, 3, 3, 9, tzinfo=UTC)
MATCH: dict[str, Any] = {
    "rule_id": "brute-force",
    "key": "ann",
    "time": NINE,
    "measures": {"failures": 3},
    "steps": [{"step": "fail", "events": [{"time": NINE, "payload": b"\x00\x01"}]}],
}


def arrival(kind: str = "match", value: Any = MATCH, **more: Any) -> Arrival:
    """One record."""
    return Arrival(kind, "cep.out", 1, 7, "ann", more.pop("headers", {}), value, **more)


def test_lines_for_people() -> None:
    """Time of the result, kind, rule, key, story; colour only where it is wanted."""
    plain = "2025-03-03 09:00:00  match        brute-force     ann      fail 09:00:00   failures=3"
    assert text_line(arrival(), colour=False) == plain
    assert text_line(arrival(shadow=True), colour=False) == plain.replace("match ", "shadow match ")
    coloured = text_line(arrival(), colour=True)
    assert coloured.startswith("2025-03-03 09:00:00  \x1b[32mmatch")
    assert coloured.endswith("\x1b[0m")
    row = {
        "rule_id": "r", "key": None, "row": 2, "variable": "A", "time": NINE, "columns": {"x": 1},
    }  # fmt: skip
    assert text_line(arrival("match row", row), colour=False) == (
        "2025-03-03 09:00:00  match row    r               -        row 2, A 09:00:00   x=1"
    )


def test_results_in_json() -> None:
    """Their times are text, and their lines are the same."""
    nine, later = "2025-03-03T09:00:00.000Z", "2025-03-03T09:00:05.250Z"
    steps = [{"step": "fail", "events": [{"time": nine}]}]
    found = MATCH | {"time": nine, "steps": steps}
    assert text_line(arrival(value=found), colour=False) == text_line(arrival(), colour=False)
    waited = text_line(arrival(value=found | {"time": later}), colour=False)
    assert waited.startswith("2025-03-03 09:00:05  match        brute-force     ann")
    assert "fail 09:00:00, nothing more by 09:00:05.250" in waited
    timeout = found | {"deadline": later, "already_matched": False}
    line = text_line(arrival("timeout", timeout), colour=False)
    assert line.startswith("2025-03-03 09:00:05  timeout ")
    assert "not complete by 09:00:05.250" in line
    dead = {"topic": "t", "partition": 0, "offset": 8, "reason": "undecodable", "detail": "why"}
    line = text_line(arrival("dead letter", dead | {"failed_at": nine}), colour=False)
    assert line.startswith("2025-03-03 09:00:00  dead letter  t ")
    assert line.endswith("undecodable (partition 0, offset 8): why")


def test_what_is_no_result() -> None:
    """Bytes that nobody can read, records of another schema, texts that would move the cursor."""
    place = "cep.out, partition 1, offset 7"
    unread = text_line(arrival(value=None, undecoded="why not"), colour=False)
    assert unread == f"{'':19}  match        {place}: why not"
    other = text_line(arrival(value={"x": b"\xff"}), colour=False)
    assert other == f'{"":19}  match        {place}: {{"x": "/w=="}}'
    assert "\x1b" not in text_line(arrival(value=MATCH | {"key": "\x1b[2J"}), colour=False)
    assert text_line(arrival("late", [1]), colour=False).endswith(f"{place}: [1]")


def test_lines_for_programs() -> None:
    """All of the record; times, bytes, and of late events what the headers say."""
    found = json.loads(json_line(arrival()))
    assert found.pop("value") == MATCH | {
        "time": "2025-03-03T09:00:00.000+00:00",
        "steps": [
            {
                "step": "fail",
                "events": [{"time": "2025-03-03T09:00:00.000+00:00", "payload": "AAE="}],
            }
        ],
    }
    assert found == {
        "kind": "match", "shadow": False, "topic": "cep.out", "partition": 1, "offset": 7,
        "key": "ann",
    }  # fmt: skip
    headers = {"spark-cep-event-time": "5", "spark-cep-watermark": "9", "other": "x"}
    late = json.loads(json_line(arrival("dead letter", None, headers=headers, undecoded="why")))
    assert (late["kind"], late["undecoded"]) == ("dead_letter", "why")
    assert (late["event_time"], late["watermark"]) == ("5", "9")


def test_where_it_begins() -> None:
    """Names, times with and without a zone, durations back from now; anything else is refused."""
    assert (begin_of("beginning"), begin_of("now")) == (BEGINNING, END)
    assert begin_of("1970-01-01T00:00:01Z") == begin_of("1970-01-01T01:00:01+01:00") == 1_000
    assert begin_of("1970-01-02") == 86_400_000
    assert abs(begin_of("10 minutes") - (time.time() - 600) * 1000) < 60_000
    with pytest.raises(ConfigurationError, match="--from soon: allowed are `beginning`, `now`"):
        begin_of("soon")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Settings that nothing is connected by."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "kafka: {bootstrap_servers: 'b:1'}\ninputs: {i: {topics: [t]}}\nstate: {checkpoint: c}\n",
        "utf-8",
    )
    return file


def endless(config: Path, most: str) -> subprocess.Popen[str]:
    """The command over a stream that goes on behind ``most`` records."""
    words = ["-m", "tests.cli.job.endless_tail", "tail", "--config", str(config), "--json", most]
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("most", ["inf", "1"])
def test_it_ends_with_its_reader(config: Path, most: str) -> None:
    """When the pipe is closed, also while nothing more comes, without a word."""
    with endless(config, most) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["value"] == {"n": 0}
        process.stdout.close()
        assert process.wait(20) == 0
        assert process.stderr.read() == ""


def test_it_ends_with_ctrl_c(config: Path) -> None:
    """That is how one stops it: exit code 0, and no word."""
    with endless(config, "1") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr.read() == ""
