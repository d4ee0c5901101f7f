"""What the driver writes of event time while a query runs."""

from __future__ import annotations

import errno
import json
import time
from pathlib import Path
from typing import Any

import pytest

from spark_cep.config import Settings
from spark_cep.errors import StartError
from spark_cep.pipeline.driver.checkpoint.clock_resets import ClockReset
from spark_cep.pipeline.driver.control.answers import KafkaAnswer, tell_answer
from spark_cep.pipeline.driver.input.source import DriverFiles
from spark_cep.pipeline.driver.observe.progress import BatchReport
from spark_cep.pipeline.driver.time_control import TimeControl
from spark_cep.pipeline.match.watermark import END
from spark_cep.pipeline.wire.control import ControlRecord
from spark_cep.pipeline.wire.reports import PartitionRead

FAST, SLOW = ("t", 0), ("t", 1)


class Run:
    """A time control with its file, and a clock that is moved by hand."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        monkeypatch.setattr(time, "monotonic_ns", lambda: int(self.now * 1e9))
        settings = Settings.model_validate(
            {
                "kafka": {"bootstrap_servers": "localhost:9092"},
                "inputs": {"t": {"topics": ["t"]}},
                "registry": {"url": "http://localhost"},
                "state": {"checkpoint": str(folder / "checkpoint")},
                "rules": {"folder": str(folder / "rules")},
                "time": {"allowed_disorder": "0 ms", "partition_idle_after": "1 minute"},
            }
        )
        files = DriverFiles.below(folder)
        self._file, self._answers = files.control, files.answers
        self.control = TimeControl(settings, files, "run")

    def listen(self, seconds: float) -> None:
        """Kafka answers twice a second that there is nothing, and the supervisor looks."""
        for _ in range(round(2 * seconds)):
            self.now += 0.5
            tell_answer(self._answers, KafkaAnswer(int(self.now * 1000), waits=True))
            assert self.control.look(), "there is news"
        assert not self.control.look()

    @property
    def record(self) -> ControlRecord:
        """The newest."""
        return ControlRecord.from_json(self._written["clock"])

    @property
    def rules(self) -> str | None:
        """What the newest says of rules."""
        return self._written.get("rules")

    @property
    def _written(self) -> dict[str, Any]:
        written: dict[str, Any] = json.loads(self._file.read_text("utf-8"))
        return written

    @property
    def reset(self) -> dict[str, int] | None:
        """What the newest says of a reset of the clock."""
        return self._written.get("reset")

    def batch(self, *read: tuple[str, int], number: int = 0) -> None:
        """A batch of no time."""
        self.control.batch_started()
        report = BatchReport(number, watermark=100, maxima=[(FAST, 500), (SLOW, 101)])
        report.partitions_read = [PartitionRead(*at, 0, 0) for at in read]
        self.control.batch_done(report)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run whose first record is written."""
    made = Run(tmp_path, monkeypatch)
    made.control.expect([FAST, SLOW])
    return made


def test_an_idle_partition_is_written_of(run: Run) -> None:
    """Only time in which Kafka answers counts."""
    assert run.record == ControlRecord((FAST, SLOW))
    run.control.query_started()
    run.batch(FAST, SLOW)
    run.now += 600
    run.listen(1)
    run.now += 600
    run.control.query_started()
    run.control.look()
    assert run.record.lower_bound is None
    run.listen(61.5)
    run.batch(FAST)
    assert run.record == ControlRecord((), 499)
    assert run.control.batch_started() == 499


def test_other_rules_keep_the_lower_bound(run: Run) -> None:
    """The record that brings a batch for them says what was said of time."""
    run.control.end_of_input()
    run.control.rules_changed("f")
    assert run.record == ControlRecord((), END)


@pytest.mark.parametrize("pending", [True, False])
def test_a_clock_to_be_set_back(run: Run, pending: bool) -> None:
    """While a batch of before is repeated, nothing is said of idle partitions, which would move the
    clock ahead again."""
    run.control.reset_clock(ClockReset(2, 50, pending=pending), planned=3)
    run.control.query_started()
    run.batch(FAST, SLOW, number=3)
    run.listen(62)
    assert run.record.lower_bound == (None if pending else 499)
    run.batch(FAST, number=4)
    run.listen(62)
    assert run.record.lower_bound == 499
    assert run.reset == {"number": 2, "to": 50}


def test_a_file_that_cannot_be_written(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start it is an error. Later the job goes on, and the record follows when it can be
    written, whoever asked for it."""

    def full(*_: Any) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    run.control.expect([FAST])
    with monkeypatch.context() as broken:
        broken.setattr(Path, "write_text", full)
        for call in (run.control.end_of_input, lambda: run.control.expect([FAST])):
            with pytest.raises(StartError, match=r"control\.json.* Too many open files"):
                call()
        run.control.rules_changed("f00d")
        run.batch(FAST)
        run.control.look()
        assert run.rules is None
    run.control.look()
    assert run.rules == "f00d"
