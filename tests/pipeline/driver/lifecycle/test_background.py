"""A thread beside the batches: it waits, is woken, and is not waited for without end."""

from __future__ import annotations

import threading

import pytest

from spark_cep.pipeline.driver.lifecycle import background
from spark_cep.pipeline.driver.lifecycle.background import Background


def test_a_wake_ends_a_wait_and_a_stop_the_work() -> None:
    """Each ends the wait at once; after a stop there is no other."""
    rounds: list[bool] = []
    turn = threading.Semaphore(0)

    def work() -> None:
        while True:
            rounds.append(thread.wait(60))
            turn.release()
            if not rounds[-1]:
                return

    thread = Background("test", work, "run")
    thread.start()
    thread.wake()
    assert turn.acquire(timeout=10)
    assert thread.stop()
    assert (rounds, thread.stopped) == ([True, False], True)


def test_work_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop says so, and goes on."""
    monkeypatch.setattr(background, "_STOP_SECONDS", 0.01)
    release = threading.Event()

    def hang() -> None:
        release.wait(60)

    thread = Background("test", hang, "run")
    thread.start()
    assert not thread.stop()
    release.set()


def test_one_that_never_began_has_ended() -> None:
    """A run may end before it has started its threads."""
    assert Background("test", lambda: None, "run").stop()
