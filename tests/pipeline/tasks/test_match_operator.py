"""A task of the match stage, as Spark calls it: one key group after the other, then its end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from spark_cep.errors import StateError
from spark_cep.pipeline.deliver.output import WriteOutcome, WrittenBatch
from spark_cep.pipeline.librdkafka.messages import Messages
from spark_cep.pipeline.state.key_group_labels import label
from spark_cep.pipeline.tasks import match_operator
from spark_cep.pipeline.tasks.frames import reports_in
from spark_cep.pipeline.tasks.match_operator import MatchOperator
from spark_cep.pipeline.wire.packet_schemas import PacketKind
from spark_cep.pipeline.wire.reports import Count, Report
from spark_cep.pipeline.wire.task_properties import TaskProperties

PROPERTIES = TaskProperties(0, None, offsets="f00d", query="query", batch=7, known_schemas="1-3")


class Output:
    """Output that notes what is done with it."""

    done: list[object]

    def __init__(self) -> None:
        self.done = []

    def output(self, partition: int, batch: WrittenBatch, first: bool) -> Output:
        """Itself, whatever the task."""
        self.done.append((partition, batch, first))
        return self

    def write(self, messages: Messages) -> None:
        """Not called: the matcher below finds nothing."""
        raise NotImplementedError

    def finish(self) -> WriteOutcome:
        """The output is committed."""
        self.done.append("finish")
        return WriteOutcome.COMMITTED

    def abandon(self) -> None:
        """The output is undone."""
        self.done.append("abandon")


class Matcher:
    """A matcher that reports each key group."""

    options = SimpleNamespace(key_groups=8)

    def processor(self, rules: str) -> Matcher:
        """Itself, whatever the rules."""
        return self

    def open(self, *state: object) -> None:
        """Nothing is kept."""

    def process(self, group: int, packets: Any, *_: object) -> Iterator[tuple[int, bytes]]:
        """A report with the number of the key group."""
        for kind, _packet in packets:
            if kind == PacketKind.CONTROL:
                raise ValueError("a rule crashes")
        yield PacketKind.REPORT, Report(live={("rule", group): 1}).encode()


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch) -> Output:
    """The output of the first attempt at state partition 1 of 2."""
    task = SimpleNamespace(partitionId=lambda: 1, attemptNumber=lambda: 0)
    monkeypatch.setattr(match_operator, "TaskContext", SimpleNamespace(get=lambda: task))
    monkeypatch.setattr(match_operator, "properties_of_task", lambda: PROPERTIES)
    monkeypatch.setattr(match_operator, "pickled", lambda value: value)
    monkeypatch.setattr(match_operator, "unpickled", lambda value: value)
    return Output()


def operator(output: Output) -> Any:
    """The operator, with its state opened."""
    matching: Any = Matcher()
    made: Any = MatchOperator(matching, output, 2)
    made._group_state = None
    made._entry_state = SimpleNamespace(leave_open=lambda: None)
    return made


def given(operator: Any, group: int, kind: int = PacketKind.EVENT_TIMES) -> list[Any]:
    """Frames out for one key group."""
    frame = pd.DataFrame({"kind": [int(kind)], "packet": [b"x"]})
    return list(operator.handleInputRows((label(group),), iter([frame]), None))


def test_the_last_key_group_commits(output: Output) -> None:
    """One transaction for all; the reports of all come with it."""
    task = operator(output)
    assert [given(task, group) for group in (3, 1, 7)] == [[], [], []]
    (frame,) = given(task, 5)
    assert output.done == [(1, WrittenBatch("query", 7, "1-3", "f00d"), False), "finish"]
    reports = [Report.decode(each) for each in reports_in(b"".join(frame["report"]))]
    assert [version for each in reports for _, version in each.live] == [3, 1, 7, 5]
    assert reports[-1].counts[Count.TRANSACTIONS, "committed"] == 1
    task.close()
    assert output.done[1:] == ["finish"]


def test_a_failure_undoes_the_output(output: Output) -> None:
    """Also of the key groups before."""
    task = operator(output)
    given(task, 1)
    with pytest.raises(ValueError, match="a rule crashes"):
        given(task, 3, PacketKind.CONTROL)
    assert output.done[1:] == ["abandon"]


def test_a_batch_without_a_key_group_fails(output: Output) -> None:
    """Its output would not be committed, and Spark would not know."""
    task = operator(output)
    given(task, 1)
    given(task, 7)
    with pytest.raises(StateError, match=r"batch 7 has nothing for key groups \[3, 5\]"):
        task.close()
    assert output.done[1:] == ["abandon"]


def test_a_task_without_rows(output: Output) -> None:
    """Nothing is begun."""
    operator(output).close()
    assert output.done == []


@pytest.mark.parametrize(
    "module", ["spark_cep.pipeline.tasks.match_operator", "spark_cep.pipeline.driver.input.source"]
)
def test_the_processes_in_which_spark_plans_load_little(module: str) -> None:
    """Spark starts three of them with each query, one after the other; compiled code and settings
    take each a second."""
    look = f"import sys, {module}; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    loaded = set(told.stdout.split())
    assert module in loaded
    assert not {"numba", "pydantic", "spark_cep.columns"} & loaded
