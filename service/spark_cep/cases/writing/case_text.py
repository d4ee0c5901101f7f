"""A case file made of events that were seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from spark_cep.cases.document.shape import NOTHING
from spark_cep.cases.document.values import duration_words, instant_text, plain
from spark_cep.durations import format_duration

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
    yield "cases:"
    yield f"  - case: {_flow(written.name)}"
    yield f"    rule: {_flow(written.rule)}"
    # Whole seconds, so that times from there are short.
    start = min((event.time for event in events), default=0) // _SECOND * _SECOND
    yield f"    start: {instant_text(start)}"
    if written.allowed_disorder_ms:
        yield f"    allowed_disorder: {format_duration(written.allowed_disorder_ms)}"
    yield "    events:"
    for event in events:
        yield from _event_lines(event, start, written.event_time)
    if written.clock is not None:
        yield f"      - clock: {_time(written.clock, start)}"
    yield f"    expect: {NOTHING}"


def _event_lines(event: CaseEvent, start: int, event_time: str | None) -> Iterator[str]:
    columns = {name: plain(value) for name, value in event.columns.items() if name != event_time}
    rest: dict[str, Any] = {"at": _time(event.time, start)}
    if event.input is not None:
        rest["input"] = event.input
    if event.of_type is not None:
        rest["of_type"] = event.of_type
    whole = _flow({"send": columns, **rest})
    if len(whole) <= _WIDE:
        yield f"      - {whole}"
        return
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
