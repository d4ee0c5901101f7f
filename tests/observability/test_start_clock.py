"""What a start says of itself."""

from __future__ import annotations

import io
import json
import time

import pytest

from spark_cep.observability.logs import configure
from spark_cep.observability.start_clock import Phase, StartClock, of_this_process


@pytest.fixture
def log() -> io.StringIO:
    """What is logged."""
    stream = io.StringIO()
    configure("info", "json", stream)
    return stream


def test_phases_add_up_to_the_whole(log: io.StringIO) -> None:
    """Each phase is as long as it took; one that comes again is added; what was done meanwhile
    stands apart."""
    now = iter([1.0, 1.5, 2.0, 2.25, 4.25])
    clock = StartClock(0.0, lambda: next(now))
    clock.done(Phase.IMPORTS)
    clock.meanwhile("session")
    clock.done(Phase.QUERY)
    clock.done(Phase.QUERY)
    clock.done(Phase.COMMIT)
    line = json.loads(log.getvalue())
    assert (line["event"], line["seconds"]) == ("started", 4.25)
    assert line["phases"] == {"imports": 1.0, "query": 1.25, "commit": 2.0}
    assert line["meanwhile"] == {"session": 1.5}
    assert sum(line["phases"].values()) == line["seconds"]


def test_only_the_first_batch_is_a_start(log: io.StringIO) -> None:
    """Later batches say nothing."""
    clock = StartClock()
    for _ in range(3):
        clock.done(Phase.BATCH)
        clock.done(Phase.COMMIT)
    assert len(log.getvalue().splitlines()) == 1


def test_a_process_is_as_old_as_the_system_says(log: io.StringIO) -> None:
    """This one is older than its tests."""
    before = time.monotonic()
    clock = of_this_process()
    time.sleep(0.02)
    clock.done(Phase.COMMIT)
    assert json.loads(log.getvalue())["seconds"] > time.monotonic() - before
