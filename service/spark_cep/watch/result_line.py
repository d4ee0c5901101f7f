"""Output records as lines for people, for ``spark-cep tail`` and the demo: values in, texts out.

A line has four parts: what it is, the rule (or topic), the key, and the story. Times are event
times, of the day in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from spark_cep.codecs.output.outputs import EVENT_TIME_HEADER, TOPIC_HEADER, WATERMARK_HEADER
from spark_cep.durations import format_duration

_ISO_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ](\d\d:\d\d:\d\d)(\.\d+)?(Z|\+00:00)?")


class ResultLine(NamedTuple):
    """One output record for people."""

    kind: str
    origin: str
    key: str
    story: str

    def text(self) -> str:
        """The whole line, in columns."""
        return f"{self.kind:<11}  {self.origin:<14}  {self.key:<7}  {self.story}"


class ShownRecord(Protocol):
    """An output record: its ``kind`` (match, match row, timeout, late, dead letter), Kafka's key as
    text, the decoded value, and headers as texts. Times in the value are datetimes, milliseconds
    since 1970, or text in ISO 8601 as results in JSON have it."""

    @property
    def kind(self) -> str:
        """The kind."""

    @property
    def key(self) -> str | None:
        """The key."""

    @property
    def value(self) -> Mapping[str, Any]:
        """The value."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers."""


def line(record: ShownRecord) -> ResultLine:
    """The line of an output record."""
    value = record.value
    if record.kind == "late":
        time = int(record.headers[EVENT_TIME_HEADER])
        behind = int(record.headers[WATERMARK_HEADER]) - time
        story = f"{clock(time)} came {_rounded(behind)} after the watermark: {content(value)}"
        return ResultLine("late", record.headers[TOPIC_HEADER], record.key or "-", story)
    if record.kind == "dead letter":
        place = f"partition {value['partition']}, offset {value['offset']}"
        story = f"{value['reason']} ({place}): {value['detail']}"
        return ResultLine("dead letter", value["topic"], record.key or "-", story)
    if record.kind == "match row":
        variable = value["variable"] or "no variable"
        story = f"row {value['row']}, {variable} {clock(value['time'])}"
        return ResultLine(
            "match row", value["rule_id"], value["key"] or "-", _with(story, value["columns"])
        )
    parts = [_step(step) for step in value["steps"]]
    if record.kind == "timeout":
        had = ", had matched before" if value["already_matched"] else ""
        parts.append(f"not complete by {clock(value['deadline'])}{had}")
    elif _datetime(value["time"]) > _last(value["steps"]):
        parts.append(f"nothing more by {clock(value['time'])}")
    story = _with(", ".join(parts), value["measures"])
    return ResultLine(record.kind, value["rule_id"], value["key"] or "-", story)


def moment(record: ShownRecord) -> datetime | None:
    """The time of an output record: that at which it was decided, in event time; of a dead letter
    that at which it was written, if it was."""
    if record.kind == "late":
        return _datetime(int(record.headers[EVENT_TIME_HEADER]))
    name = {"timeout": "deadline", "dead letter": "failed_at"}.get(record.kind, "time")
    found = record.value.get(name) if record.kind == "dead letter" else record.value[name]
    return None if found is None else _datetime(found)


def _datetime(time: datetime | int | str) -> datetime:
    if isinstance(time, datetime):
        return time
    if isinstance(time, str):
        return datetime.fromisoformat(time)
    return datetime.fromtimestamp(time / 1000, UTC)


def _with(story: str, values: Mapping[str, Any] | None) -> str:
    return f"{story}   {measures(values)}" if values else story


def clock(time: datetime | int | str) -> str:
    """A time of day; fractions of a second only where there are some."""
    time = _datetime(time)
    text = time.astimezone(UTC).strftime("%H:%M:%S")
    millis = time.microsecond // 1000
    return f"{text}.{millis:03d}" if millis else text


def measures(values: Mapping[str, Any]) -> str:
    """Measures as ``name=value``, in the order of their names' arrival."""
    return " ".join(f"{name}={_value(value)}" for name, value in values.items())


def _step(step: Mapping[str, Any]) -> str:
    times = [event["time"] for event in step["events"]]
    if len(times) == 1:
        return f"{step['step']} {clock(times[0])}"
    return f"{len(times)} × {step['step']} {clock(times[0])} to {clock(times[-1])}"


def _last(steps: Sequence[Mapping[str, Any]]) -> datetime:
    return max(_datetime(event["time"]) for step in steps for event in step["events"])


def content(value: Mapping[str, Any]) -> str:
    """The plain values of an event as ``name=value``."""
    return " ".join(
        f"{name}={_value(each)}"
        for name, each in value.items()
        if each is not None and each != "" and not isinstance(each, dict | list | datetime)
    )


def _value(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str) and (found := _ISO_TIME.fullmatch(value)):
        fraction = (found[2] or "").rstrip("0").rstrip(".")
        return found[1] + fraction
    return str(value)


def _rounded(ms: int) -> str:
    return format_duration(max(1_000, round(ms / 1000) * 1000))
