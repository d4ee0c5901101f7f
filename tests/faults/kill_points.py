"""The command, which kills itself and its JVM when it comes to a point of a batch.

In a process of its own: ``python -c 'from tests.faults.kill_points import run; run()' POINT TIMES
FLAG …``, then the command's words. It dies when it comes to the point for that time. Points in
Spark's workers are armed by the file ``FLAG``, which the driver makes before the batch (or, with
``TIMES`` 0, a test at any time); workers have the environment of the command.

At ``HELD`` nothing dies: the worker that finds the flag takes it away, and is stopped as by SIGSTOP
until it is told to go on.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

from spark_cep.cli.main import app
from spark_cep.pipeline.deliver.exactly_once import ExactlyOnce, ExactlyOnceOutput
from spark_cep.pipeline.deliver.output import WriteOutcome, WrittenBatch
from spark_cep.pipeline.driver import dataflow
from spark_cep.pipeline.driver.rules.rule_log import RuleLog
from spark_cep.pipeline.driver.rules.rule_status import RuleStatus
from spark_cep.pipeline.driver.rules.rule_topics import RuleTopics
from spark_cep.pipeline.driver.rules.rules_at_start import RulesAtStart
from spark_cep.pipeline.driver.supervisor import Supervisor
from spark_cep.pipeline.driver.time_control import TimeControl
from spark_cep.pipeline.match.match import Matching
from spark_cep.pipeline.tasks.match_operator import MatchOperator
from spark_cep.pipeline.tasks.pack_batch import PackBatch

_LEADER, _FLAG, _HELD = "TESTS_KILL_LEADER", "TESTS_KILL_FLAG", "TESTS_HELD"
_FLUSH_SECONDS = 10.0

#: The class with the method, its name, and whether the kill comes before it.
_OF_DRIVER: dict[str, tuple[type, str, bool]] = {
    "before rules/N": (RuleLog, "write", True),
    "after rules/N": (RuleLog, "write", False),
    "after the decisions": (RuleTopics, "decided", False),
    "before the tasks": (Supervisor, "_before_batch", False),
    "after all output": (Supervisor, "_after_batch", False),
    "after Spark's commit": (RuleStatus, "committed", False),
    "in a restart": (RulesAtStart, "decide", True),
    "after the query is told of a change": (TimeControl, "rules_changed", False),
}
#: Of these one run comes to the first alone.
ONCE = ("in a restart",)


class _Pack(PackBatch):
    def __call__(self, records: Iterator[Any], key_groups: range) -> Iterator[pa.RecordBatch]:
        _die_if_armed()
        yield from super().__call__(records, key_groups)


class _Match(MatchOperator):
    def handleInputRows(self, *given: Any) -> Iterator[Any]:  # noqa: N802  Spark's name
        _die_if_armed()
        return super().handleInputRows(*given)


class _Write(MatchOperator):
    def handleInputRows(self, *given: Any) -> Iterator[Any]:  # noqa: N802  Spark's name
        yield from super().handleInputRows(*given)
        if self._task is not None and not self._task.left:
            _die_if_armed()


class _OpenOutput(ExactlyOnceOutput):
    """Comes to its point when the brokers have the records of the transaction, and not its end."""

    def finish(self) -> WriteOutcome:
        if self._open is not None:
            self._open.producer.flush(_FLUSH_SECONDS)
            _at_open_transaction()
        return super().finish()


class _OpenDelivery(ExactlyOnce):
    def output(self, partition: int, batch: WrittenBatch, first: bool) -> ExactlyOnceOutput:
        return _OpenOutput(self, partition, batch, first)


class _WriteOpen(MatchOperator):
    def __init__(self, matching: Matching, delivery: ExactlyOnce, partitions: int) -> None:
        super().__init__(matching, _OpenDelivery(**vars(delivery)), partitions)


#: What the plan is made of instead of its first base, and the module that makes it.
OF_WORKERS: dict[str, tuple[ModuleType, type]] = {
    "while packing": (dataflow, _Pack),
    "while matching": (dataflow, _Match),
    "in a transaction": (dataflow, _WriteOpen),
    "after some output": (dataflow, _Write),
}
POINTS = (*_OF_DRIVER, *OF_WORKERS)
#: A worker with an open transaction is stopped.
HELD = "held in a transaction"


def program(point: str, times: int, flag: Path) -> tuple[str, ...]:
    """What Python runs for the command to come to a point."""
    code = "from tests.faults.kill_points import run; run()"
    return ("-c", code, point, str(times), str(flag))


def run() -> None:
    """Run the command of this process's words."""
    point, times, flag = sys.argv[1:4]
    sys.argv[1:4] = []
    # Workers import what is patched.
    root = str(Path(__file__).parents[2])
    os.environ |= {_LEADER: str(os.getpgrp()), _FLAG: flag, "PYTHONPATH": root}
    if point in _OF_DRIVER:
        of, name, before = _OF_DRIVER[point]
        _patch(of, name, int(times), _die, before=before)
    else:
        if point == HELD:
            os.environ[_HELD] = "1"
            point = "in a transaction"
        _patch(Supervisor, "_before_batch", int(times), Path(flag).touch, before=True)
        module, dying = OF_WORKERS[point]
        setattr(module, dying.__bases__[0].__name__, dying)
    app()


def _patch(of: type, name: str, times: int, act: Callable[[], None], *, before: bool) -> None:
    """Have ``act`` called with the call of a method for that time."""
    method = getattr(of, name)
    left = times

    def patched(*given: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if before and left == 0:
            act()
        result = method(*given, **named)
        if not before and left == 0:
            act()
        return result

    setattr(of, name, patched)


def _die() -> None:
    os.killpg(int(os.environ[_LEADER]), signal.SIGKILL)


def _at_open_transaction() -> None:
    if _HELD not in os.environ:
        _die_if_armed()
        return
    with suppress(FileNotFoundError):
        # One of several workers.
        Path(os.environ[_FLAG]).unlink()
        os.kill(os.getpid(), signal.SIGSTOP)


def _die_if_armed() -> None:
    if Path(os.environ[_FLAG]).exists():
        _die()
