"""``spark-cep tail``: the results of a job as they come."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from io import UnsupportedOperation
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from spark_cep.cli.terminal import ConfigFile, ResultsFrom, note, out
from spark_cep.config import load

if TYPE_CHECKING:
    from spark_cep.pipeline.driver.commands.output_stream import Arrival, OutputStream

_POLL_SECONDS: Final = 0.2


class OutputKind(Enum):
    """The kinds of output, one a topic."""

    MATCH = "match"
    MATCH_ROW = "match-row"
    TIMEOUT = "timeout"
    LATE = "late"
    DEAD_LETTER = "dead-letter"
    SHADOW = "shadow"


def tail(
    config: ConfigFile,
    kinds: Annotated[
        list[OutputKind] | None,
        typer.Option("--kind", help="Show only this kind of output; can be repeated."),
    ] = None,
    rules: Annotated[
        list[str] | None,
        typer.Option(
            "--rule",
            "-r",
            metavar="ID",
            help="Show only results and dead letters of this rule; can be repeated.",
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", "-k", help="Show only records with this Kafka key.")
    ] = None,
    start: ResultsFrom = "now",
    follow: Annotated[
        bool,
        typer.Option(
            "--follow/--no-follow", help="Wait for further records, or stop at the present end."
        ),
    ] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line.")
    ] = False,
) -> None:
    """Show matches, timeouts, late events and dead letters as they are written, decoded. Only
    committed records are read. Ctrl-C ends the command. Read-only; the job may be running."""
    from spark_cep.cli.job.tail_text import begin_of, json_line, text_line
    from spark_cep.pipeline.driver.commands.output_stream import output_stream

    begin = begin_of(start)
    chosen = {each.value.replace("-", "_") for each in kinds or OutputKind}
    wanted = _Filter(frozenset(rules or ()), key)
    colour = out.is_terminal and not out.no_color
    shown: Callable[[Arrival], str] = (
        json_line if as_json else lambda arrival: text_line(arrival, colour=colour)
    )
    with output_stream(load(config), chosen, begin) as stream, _ended_by_the_reader():
        if stream.missing:
            note(f"waiting for topics that do not exist yet: {', '.join(stream.missing)}")
        while not _reader_is_gone():
            # In this order: what is read at the end is shown.
            last = not follow and stream.at_end
            _show(stream, wanted, shown)
            if last:
                return


@dataclass(frozen=True, slots=True)
class _Filter:
    """The records to show."""

    rules: frozenset[str]
    key: str | None

    def passes(self, arrival: Arrival) -> bool:
        if self.key is not None and arrival.key != self.key:
            return False
        return not self.rules or _rule(arrival.value) in self.rules


def _rule(value: Any) -> str | None:
    return value.get("rule_id") if isinstance(value, dict) else None


def _show(stream: OutputStream, wanted: _Filter, shown: Callable[[Arrival], str]) -> None:
    """Print what came."""
    lines = [shown(each) + "\n" for each in stream.poll(_POLL_SECONDS) if wanted.passes(each)]
    if lines:
        sys.stdout.write("".join(lines))
        sys.stdout.flush()


@contextmanager
def _ended_by_the_reader() -> Iterator[None]:
    """End the block quietly at Ctrl-C, and when nobody reads the output any more."""
    try:
        yield
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:
        # The interpreter's own end would write what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _reader_is_gone() -> bool:
    """Tell whether the pipe that the output goes to is closed: without output, nothing else tells
    it."""
    with suppress(OSError, UnsupportedOperation, ValueError):
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(flags & (select.POLLERR | select.POLLHUP) for _, flags in poll.poll(0))
    return False
