"""The broker and the registry of the demo: started side by side, stopped side by side.

Guarantee: when :func:`servers` is left, in whatever way and however early, neither runs any more. A
start that is under way when the user interrupts is brought to an end first: its process is killed
as soon as it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from examples.demo.interruption import Interruption
from examples.embedded import EmbeddedBroker, EmbeddedRegistry
from examples.embedded.process import tail
from spark_cep.errors import StartError

_LOOK_SECONDS = 0.05
_TAIL_LINES = 15


@dataclass(frozen=True)
class Servers:
    """What the job needs around it."""

    broker: EmbeddedBroker
    registry: EmbeddedRegistry

    def check(self) -> None:
        """Raise StartError, with the end of its log, when one of them has ended."""
        for name, server in (("the Kafka broker", self.broker), ("the registry", self.registry)):
            if server.pid is None:
                raise StartError(
                    f"{name} ended; the end of {server.log}:\n{tail(server.log, _TAIL_LINES)}"
                )


@contextmanager
def servers(folder: Path, jars: Path, interruption: Interruption) -> Iterator[Servers]:
    """Both servers, up and answering, for as long as the block runs."""
    both = Servers(
        EmbeddedBroker(folder / "broker", jars), EmbeddedRegistry(folder / "registry", jars)
    )
    threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="demo-servers")
    in_order = False
    starting: list[Future[object]] = []
    try:
        starting = [threads.submit(both.broker.start), threads.submit(both.registry.start)]
        _wait_for(starting, interruption)
        yield both
        in_order = True
    finally:
        if in_order and not interruption.requested:
            _together(both.broker.stop, both.registry.stop)
        while True:
            _together(both.broker.kill, both.registry.kill)
            if not wait(starting, timeout=_LOOK_SECONDS).not_done:
                break
        threads.shutdown()


def _wait_for(starting: list[Future[object]], interruption: Interruption) -> None:
    """Until all are done; the first failure ends the wait."""
    while pending := [future for future in starting if not future.done()]:
        for future in set(starting) - set(pending):
            future.result()
        interruption.sleep(_LOOK_SECONDS)
    for future in starting:
        future.result()


def _together(*tasks: Callable[[], None]) -> None:
    with ThreadPoolExecutor(max_workers=len(tasks)) as threads:
        for done in [threads.submit(task) for task in tasks]:
            done.result()
