"""The lines of ``spark-cep tail``, and the time that it begins at."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime
from typing import Any, Final

from spark_cep.cli.job.result_line import line, moment
from spark_cep.codecs.output.outputs import EVENT_TIME_HEADER, WATERMARK_HEADER
from spark_cep.durations import DurationError, parse_duration
from spark_cep.errors import ConfigurationError, printable, shortened
from spark_cep.pipeline.driver.commands.output_stream import Arrival
from spark_cep.pipeline.driver.kafka.cluster import BEGINNING, END

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
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ConfigurationError(
            f"--from {printable(text)}: allowed are `beginning`, `now`, a time as"
            " 2026-01-31T12:00:00Z, or a duration as '10 minutes'"
        ) from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return round(found.timestamp() * 1000)


def text_line(arrival: Arrival, *, colour: bool) -> str:
    """A line for people: the time of the result, its kind, rule, key and story."""
    try:
        said = line(arrival)
        at = f"{moment(arrival).astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    except (LookupError, TypeError, ValueError, AttributeError):
        # Of another schema than results have: anybody may write to the topic.
        at, text = " " * 19, f"{arrival.kind:<11}  {_other(arrival)}"
    else:
        text = said.text()
    shown = printable(f"shadow {text}" if arrival.shadow else text)
    if colour and arrival.kind in _COLOURS:
        shown = f"{_COLOURS[arrival.kind]}{shown}{_END_OF_COLOUR}"
    return f"{at}  {shown}"


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
