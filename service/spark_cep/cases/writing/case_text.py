"""A case file made of events that were seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from spark_cep.cases.document.shape import NOTHING
from spark_cep.cases.document.values import duration_words, plain
from spark_cep.durations import format_duration
from spark_cep.event_times import instant_text

_WIDE: Final = 100
_SECOND: Final = 1_000_000


@dataclass(frozen=True)
class CaseEvent:
    """An event that was seen: its time in microseconds since 1970, input, record type, and the
    columns that are not NULL."""

    time: int
    input: str | None
    of_type: str | None
    columns: Mapping[str, Any]


@dataclass(frozen=True)
class CaseHeader:
    """The contents of a case file besides its events. ``clock``: where the clock goes behind the
    last event, in microseconds since 1970."""

    name: str
    comment: str
    rules: str
    rule: str
    schemas: str | Mapping[str, str] | None
    event_time: str | None
    allowed_disorder_ms: int
    clock: int | None


def case_text(written: CaseHeader, events: Sequence[CaseEvent]) -> str:
    """The text of a case file with one case that expects nothing yet."""
    return "\n".join(_lines(written, events)) + "\n"


def _lines(written: CaseHeader, events: Sequence[CaseEvent]) -> Iterator[str]:
    yield from (f"# {line}" for line in written.comment.split("\n"))
    yield f"rules: {_flow(written.rules)}"
    if written.schemas:
        yield f"schemas: {_flow(written.schemas)}"
    if written.event_time is not None:
        yield f"event_time: {_flow(written.event_time)}"
    # Whole seconds, so that times from there are short.
    start = min((event.time for event in events), default=0) // _SECOND * _SECOND
    head = {"case": written.name, "rule": written.rule}
    if written.allowed_disorder_ms:
        disorder = {"allowed_disorder": format_duration(written.allowed_disorder_ms)}
    else:
        disorder = {}
    steps = [_step(event, start, written.event_time) for event in events]
    if written.clock is not None:
        steps.append({"clock": _time(written.clock, start)})
    yield from case_lines({**head, "start": start, **disorder}, steps)


def case_lines(head: Mapping[str, Any], steps: Sequence[Mapping[str, Any] | str]) -> Iterator[str]:
    """The lines of a list `cases` with one case that expects nothing yet. ``head``: its keys but
    for `events` and `expect`; `start` in microseconds since 1970. ``steps``: its events and what
    happens between them, as a case has them."""
    yield "cases:"
    before = "  - "
    for name, value in head.items():
        yield f"{before}{name}: {instant_text(value) if name == 'start' else _flow(value)}"
        before = "    "
    yield "    events:"
    for step in steps:
        yield from _step_lines(step)
    yield f"    expect: {NOTHING}"


def _step(event: CaseEvent, start: int, event_time: str | None) -> Mapping[str, Any]:
    columns = {name: plain(value) for name, value in event.columns.items() if name != event_time}
    step: dict[str, Any] = {"send": columns, "at": _time(event.time, start)}
    if event.input is not None:
        step["input"] = event.input
    if event.of_type is not None:
        step["of_type"] = event.of_type
    return step


def _step_lines(step: Mapping[str, Any] | str) -> Iterator[str]:
    whole = _flow(step)
    if isinstance(step, str) or "send" not in step or len(whole) <= _WIDE:
        short = not isinstance(step, str) and "send" not in step
        yield f"      - {whole[1:-1] if short else whole}"
        return
    columns, rest = step["send"], {name: step[name] for name in step if name != "send"}
    yield "      - send:"
    yield from (f"          {_flow(name)}: {_flow(value)}" for name, value in columns.items())
    yield from (f"        {name}: {_flow(value)}" for name, value in rest.items())


def _time(micros: int, start: int) -> str:
    since = micros - start
    # A duration has whole milliseconds.
    return instant_text(micros) if since % 1_000 else duration_words(since)


def _flow(value: Any) -> str:
    text = yaml.safe_dump(
        value, default_flow_style=True, allow_unicode=True, sort_keys=False, width=1 << 20
    )
    return text.removesuffix("\n").removesuffix("\n...")
