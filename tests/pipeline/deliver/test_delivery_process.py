"""The process that writes the output of an executor's tasks: one for all workers, errors as they
are raised there, and nothing left open by a worker that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from spark_cep.config.kafka import Kafka
from spark_cep.errors import OutputError, TakenOverError
from spark_cep.pipeline.deliver.commit_markers import CommitMarkers
from spark_cep.pipeline.deliver.delivery_process import WritesTask, start, task_output
from spark_cep.pipeline.deliver.exactly_once import ExactlyOnce
from spark_cep.pipeline.deliver.output import Delivery, Output, WriteOutcome, WrittenBatch
from spark_cep.pipeline.librdkafka.messages import Messages
from spark_cep.pipeline.wire.packet_schemas import PacketKind
from spark_cep.pipeline.wire.packets import OutputRecords
from spark_cep.pipeline.wire.reports import Count, Report
from tests.kafka_access import KafkaAccess
from tests.pipeline.librdkafka.records import records_of

SECONDS = 30.0


def in_daemon(case: Callable[..., None], *given: object) -> None:
    """Run a case in a process of one thread, as the daemon of Spark's workers is."""
    code = f"from {__name__} import {case.__name__} as case; case({', '.join(map(repr, given))})"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def worker(act: Callable[[], None]) -> int:
    """Fork a worker that acts and ends; its exit code is 0 where nothing was raised."""
    child = os.fork()
    if child:
        return child
    try:
        act()
    except BaseException as error:  # noqa: BLE001
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def ends_well(child: int) -> None:
    """Wait for a worker."""
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def packet(text: str, topic: str = "out") -> tuple[int, bytes]:
    """A packet of one record."""
    return PacketKind.RECORDS, OutputRecords(((topic, None, text.encode(), []),)).encode()


def ended(process: int) -> bool:
    """Return whether a process has ended, waited for or not."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text("utf-8")
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


@dataclass(frozen=True)
class Noted(Delivery):
    """Notes in a file what is done, and by which process. Records raise errors of their names."""

    notes: str

    def output(self, partition: int, batch: WrittenBatch, first: bool) -> Output:
        """Return the output of one task."""
        return NotedOutput(self, f"{partition} {batch.number} {first}")

    def note(self, what: str) -> None:
        """Add a line."""
        with Path(self.notes).open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()} {what}\n")


@dataclass
class NotedOutput:
    """The output of one task."""

    delivery: Noted
    task: str

    def write(self, messages: Messages) -> None:
        """Note the records."""
        for _, _, value, _ in records_of(messages):
            text = (value or b"").decode()
            if text == "taken over":
                raise TakenOverError("by another")
            if text == "broken":
                raise ZeroDivisionError("division by zero")
            self.delivery.note(f"{self.task} {text}")

    def finish(self) -> WriteOutcome:
        """Note it."""
        self.delivery.note(f"{self.task} finished")
        return WriteOutcome.COMMITTED

    def abandon(self) -> None:
        """Note it."""
        self.delivery.note(f"{self.task} abandoned")


def batch(number: int) -> WrittenBatch:
    """Return a batch of the query."""
    return WrittenBatch("query", number, "", "f00d")


def lines(notes: str) -> list[str]:
    """What was noted, without processes."""
    return [line.partition(" ")[2] for line in Path(notes).read_text("utf-8").splitlines()]


def tasks_of_two_workers(notes: str) -> None:
    """Both are written by the delivery process, which reports its memory."""
    process = start()

    def two_tasks(partition: int) -> None:
        for number in (1, 2):
            task = task_output(Noted(notes), partition, batch(number), again=number == 2)
            report = b"report"
            assert task.written([packet("a"), (PacketKind.REPORT, report)]) == [report]
            own = Report.decode(task.finished())
            assert own.counts[Count.WRITTEN, "out"] == 1
            assert own.processes[0].process == process

    for partition in (0, 1):
        ends_well(worker(lambda partition=partition: two_tasks(partition)))  # type: ignore[misc]
    found = Path(notes).read_text("utf-8").splitlines()
    assert {int(line.split()[0]) for line in found} == {process}
    assert lines(notes) == [
        f"{partition} {number} {number == 2} {what}"
        for partition in (0, 1)
        for number in (1, 2)
        for what in ("a", "finished")
    ]


def errors_reach_the_worker(notes: str) -> None:
    """By their kinds; what other libraries raise is an OutputError. The next task is written."""
    start()

    def tasks() -> None:
        for text, kind, message in (
            ("taken over", TakenOverError, "by another"),
            ("broken", OutputError, "ZeroDivisionError: division by zero"),
        ):
            task = task_output(Noted(notes), 0, batch(1), again=False)
            task.written([packet("a"), packet(text), packet("not written")])
            with pytest.raises(kind, match=message) as raised:
                task.finished()
            assert type(raised.value) is kind
            task.abandon()
        task = task_output(Noted(notes), 0, batch(2), again=False)
        task.written([packet("b")])
        task.finished()

    ends_well(worker(tasks))
    once = ["0 1 False a", "0 1 False abandoned"]
    assert lines(notes) == [*once, *once, "0 2 False b", "0 2 False finished"]


def a_worker_that_ends(notes: str) -> None:
    """What it has not finished is undone, and what it has given up."""
    start()
    wrote, written = os.pipe()

    def stays() -> None:
        task = task_output(Noted(notes), 0, batch(1), again=False)
        task.written([packet("a")])
        task.abandon()
        task = task_output(Noted(notes), 0, batch(2), again=False)
        task.written([packet("b" * 100_000)])
        os.write(written, b"x")
        time.sleep(SECONDS)

    child = worker(stays)
    os.read(wrote, 1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    deadline = time.monotonic() + SECONDS
    while "0 2 False abandoned" not in lines(notes):
        assert time.monotonic() < deadline, lines(notes)
        time.sleep(0.01)
    assert lines(notes)[:2] == ["0 1 False a", "0 1 False abandoned"]


def tell(task: WritesTask) -> None:
    """Write and finish."""
    task.written([packet("c" * 1000)])
    task.finished()


def the_delivery_process_ends(notes: str) -> None:
    """A worker's task fails, and says what has ended."""
    process = start()

    def stays() -> None:
        task_output(Noted(notes), 0, batch(1), again=False).finished()
        task = task_output(Noted(notes), 0, batch(2), again=False)
        os.kill(process, signal.SIGKILL)
        for _ in range(1000):
            with pytest.raises(OutputError, match=r"spark-cep: delivery\) has ended"):
                tell(task)
        task.abandon()

    ends_well(worker(stays))


def all_others_end(pids: str) -> None:
    """The delivery process does, too, and not before."""
    process = start()
    Path(pids).write_text(f"{process} {worker(lambda: time.sleep(1))}", "utf-8")


@pytest.mark.parametrize(
    "case",
    [tasks_of_two_workers, errors_reach_the_worker, a_worker_that_ends, the_delivery_process_ends],
)
def test_delivery_process(case: Callable[[str], None], tmp_path: Path) -> None:
    """Each in a daemon of its own."""
    notes = tmp_path / "notes"
    notes.touch()  # a case may read before the first line is noted
    in_daemon(case, str(notes))


def test_it_ends_with_the_last_process_that_could_ask(tmp_path: Path) -> None:
    """Also where the daemon was killed."""
    file = tmp_path / "pids"
    in_daemon(all_others_end, str(file))
    process, child = map(int, file.read_text("utf-8").split())
    for each in (child, process):
        deadline = time.monotonic() + SECONDS
        while not ended(each):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def writers(bootstrap: str, prefix: str) -> None:
    """Batches of a state partition by two workers in turn: one producer has written them all."""
    settings = Kafka(bootstrap_servers=bootstrap)
    once = ExactlyOnce(
        settings.producer_config(), settings.consumer_config(prefix), prefix, "run", 60_000
    )
    start()

    def write(number: int) -> None:
        task = task_output(once, 0, batch(number), again=number == 0)
        task.written([packet("x", f"{prefix}.out")])
        counts = Report.decode(task.finished()).counts
        assert counts[Count.TRANSACTIONS, "committed"] == 1
        # Readers see a marker a moment after the commit.
        markers = CommitMarkers(once.consumer_config, once.markers_topic)
        deadline = time.monotonic() + SECONDS
        while (marker := markers.read(0)) is None or marker.batch < number:
            assert time.monotonic() < deadline
        print(marker.writer, flush=True)
        markers.close()

    for number in range(3):
        ends_well(worker(lambda number=number: write(number)))  # type: ignore[misc]


@pytest.mark.kafka
def test_a_producer_serves_all_workers(kafka: KafkaAccess, tmp_path: Path) -> None:
    """Else every second batch would start one."""
    prefix = f"delivery-{tmp_path.name}"
    kafka.create_topics({f"{prefix}.out": 1, f"{prefix}.commit-markers": 1})
    code = f"from {__name__} import writers; writers({kafka.bootstrap!r}, {prefix!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=120, stdout=subprocess.PIPE, text=True
    )
    first, *others = done.stdout.split()
    assert others == [first, first]
