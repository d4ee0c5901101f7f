"""The lines of ``spark-cep tail``, and the time that it begins at."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime
from typing import Any, Final

from spark_cep.codecs.output.outputs import EVENT_TIME_HEADER, WATERMARK_HEADER
from spark_cep.durations import DurationError, parse_duration
from spark_cep.errors import ConfigurationError, printable, shortened
from spark_cep.event_times import instant_us
from spark_cep.pipeline.driver.commands.output_stream import Arrival
from spark_cep.pipeline.driver.kafka.cluster import BEGINNING, END
from spark_cep.watch.result_line import ShownRecord, line, moment

_COLOURS: Final = {
    "match": "\x1b[32m",
    "match row": "\x1b[32m",
    "timeout": "\x1b[33m",
    "late": "\x1b[35m",
    "dead letter": "\x1b[31m",
}
_END_OF_COLOUR: Final = "\x1b[0m"
_MOST_OF_VALUE: Final = 500


def begin_of(text: str) -> int:
    """The place of ``--from``: BEGINNING, END, or milliseconds since 1970."""
    named = {"beginning": BEGINNING, "now": END}.get(text)
    if named is not None:
        return named
    try:
        return round(time.time() * 1000) - parse_duration(text)
    except DurationError:
        pass
    try:
        return instant_us(text) // 1_000
    except ValueError:
        raise ConfigurationError(
            f"--from {printable(text)}: allowed are `beginning`, `now`, a time as"
            " 2026-01-31T12:00:00Z, or a duration as '10 minutes'"
        ) from None


def text_line(arrival: Arrival, *, colour: bool) -> str:
    """A line for people; where the record is no result, where it stands and what it holds."""
    try:
        return result_text(arrival, colour=colour, shadow=arrival.shadow)
    except (LookupError, TypeError, ValueError, AttributeError):
        # Of another schema than results have: anybody may write to the topic.
        return _coloured(f"{arrival.kind:<11}  {_other(arrival)}", arrival.kind, "", colour=colour)


def result_text(record: ShownRecord, *, colour: bool, shadow: bool = False) -> str:
    """A line for people: the time of the result, its kind, rule, key and story."""
    text = line(record).text()
    at = moment(record)
    shown = "" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    return _coloured(f"shadow {text}" if shadow else text, record.kind, shown, colour=colour)


def _coloured(text: str, kind: str, at: str, *, colour: bool) -> str:
    shown = printable(text)
    if colour and kind in _COLOURS:
        shown = f"{_COLOURS[kind]}{shown}{_END_OF_COLOUR}"
    return f"{at:<19}  {shown}"


def _other(arrival: Arrival) -> str:
    place = f"{arrival.topic}, partition {arrival.partition}, offset {arrival.offset}"
    if arrival.undecoded is not None:
        return f"{place}: {arrival.undecoded}"
    return f"{place}: {shortened(json.dumps(arrival.value, default=_plain), _MOST_OF_VALUE)}"


def json_line(arrival: Arrival) -> str:
    """A line for programs: all that the record holds, times in ISO 8601, bytes in Base64."""
    document: dict[str, Any] = {
        "kind": arrival.kind.replace(" ", "_"),
        "shadow": arrival.shadow,
        "topic": arrival.topic,
        "partition": arrival.partition,
        "offset": arrival.offset,
        "key": arrival.key,
        "value": arrival.value,
    }
    if arrival.undecoded is not None:
        document["undecoded"] = arrival.undecoded
    for name, header in (("event_time", EVENT_TIME_HEADER), ("watermark", WATERMARK_HEADER)):
        if header in arrival.headers:
            document[name] = arrival.headers[header]
    return json.dumps(document, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    return str(value)
