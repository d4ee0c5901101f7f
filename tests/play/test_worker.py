"""The process that does the page's work: results, errors, and an end for what is too slow."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from spark_cep.errors import ConfigurationError, Problem, RuleSetError
from spark_cep.play.worker import TooSlowError, Worker


def process() -> int:
    """The number of the process."""
    return os.getpid()


def refuse(text: str) -> None:
    """Raise an error whose pickle would lose its problems."""
    raise RuleSetError([Problem(text, "rule.yaml", allowed="less")])


def fail() -> None:
    """Fail by a defect."""
    raise ZeroDivisionError("seven")


def test_one_process_does_the_work_and_another_follows_it(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """What is too slow ends the process; errors do not."""

    async def use() -> None:
        worker = Worker(3.0, process)
        try:
            await worker.begin()
            first = await worker.call(process)
            assert first not in (os.getpid(), 0)
            with pytest.raises(ConfigurationError, match=r"it is wrong\n.*help: less"):
                await worker.call(refuse, "it is wrong")
            with pytest.raises(ConfigurationError, match="ZeroDivisionError: seven"):
                await worker.call(fail)
            assert await worker.call(process) == first
            began = time.monotonic()
            with pytest.raises(TooSlowError, match="ended after 3 s"):
                await worker.call(time.sleep, 60)
            assert time.monotonic() - began < 20
            assert await worker.call(process) != first
            with pytest.raises(TooSlowError, match="ended by itself"):
                await worker.call(os._exit, 1)
        finally:
            worker.close()

    asyncio.run(use())
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_results_come_one_after_the_other() -> None:
    """Of two callers each gets its own."""

    async def use() -> list[int]:
        worker = Worker(10.0, process)
        try:
            return list(await asyncio.gather(*(worker.call(abs, -n) for n in range(5))))
        finally:
            worker.close()

    assert asyncio.run(use()) == [0, 1, 2, 3, 4]
