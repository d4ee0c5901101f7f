"""The first events of files, or the newest of a topic, as ``spark-cep init`` looks at them: read on
production's own way."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from spark_cep.cases.writing.case_text import CaseEvent
from spark_cep.cases.writing.tapping import tapped_events
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.config import KAFKA_TIMESTAMP, Settings
from spark_cep.errors import ConfigurationError
from spark_cep.model import Coordinates
from spark_cep.pattern.tree import Rule, Step
from spark_cep.pattern.types import TIMESTAMP, SqlType
from spark_cep.recorded.declared import shown_times
from spark_cep.recorded.events import RecordedEvents, Window
from spark_cep.recorded.opening import open_events
from spark_cep.recorded.recording import Chunk, Recording
from spark_cep.recorded.topics import TopicSlice, open_topics

#: Records that are looked at.
_MOST: Final = 5_000
_OTHERS: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Sample:
    """Events of one record type, in the order of time. ``schema``: of all that the input has, as a
    JSON document; ``of_type``: the record type's name, where there are several; ``event_time``:
    its column with the unit."""

    input: str
    schema: Any
    of_type: str | None
    event_time: tuple[str, str]
    columns: Mapping[str, SqlType]
    events: tuple[CaseEvent, ...]
    recorded: RecordedEvents


def input_name(text: str) -> str:
    """A name for the input of a file or topic: small letters, digits, single underscores."""
    name = _OTHERS.sub("_", text.lower()).strip("_")
    return name if name[:1].isalpha() else f"events_{name}".rstrip("_")


def sample_of_files(
    files: Sequence[str], schemas: Sequence[str], event_times: Sequence[str]
) -> Sample:
    """The first events of files. Raises ConfigurationError where there are none, or it is not known
    what is in them."""
    name = input_name(Path(files[0]).name.partition(".")[0])
    opened = open_events([_every_event(name)], files, None, schemas, event_times)
    return _sample(name, opened, ", ".join(files))


def sample_of_topic(settings: Settings, topic: str, stack: ExitStack) -> Sample:
    """The newest events of a topic, by the schemas of the registry."""
    opened = open_topics(settings, Window(), stack, topic)
    share = max(1, _MOST // max(1, len(opened.recordings)))
    newest = [_newest(each, share) for each in opened.recordings]
    (name,) = settings.inputs
    return _sample(name, replace(opened, recordings=newest), f"topic {topic}")


def only_timestamp(sample: Sample) -> str | None:
    """The only column that is a timestamp, where the event time is Kafka's own so far."""
    times = [name for name, kind in sample.columns.items() if kind == TIMESTAMP]
    known = sample.event_time[0] != KAFKA_TIMESTAMP
    return None if known or len(times) != 1 else times[0]


def about_event_time(sample: Sample) -> str:
    """Say what the event time of a topic's events is, and how to name another column."""
    column, _ = sample.event_time
    if column != KAFKA_TIMESTAMP:
        return f"input {sample.input}: the event time is {column}"
    return (
        f"input {sample.input}: the event time is the timestamp that Kafka has of each record; if a"
        f" column has it, name it with --event-time: {shown_times(sample.columns)}"
    )


def _newest(recording: Recording, most: int) -> Recording:
    """The last records of a topic's partition."""
    if not isinstance(recording, TopicSlice):
        return recording
    wanted = recording.wanted
    start = max(wanted.start, wanted.end - most)
    return replace(recording, wanted=wanted._replace(start=start), begin=start)


@dataclass(frozen=True)
class _Head:
    """The first records of a recording."""

    whole: Recording
    most: int

    @property
    def name(self) -> str:
        """See :class:`~spark_cep.recorded.recording.Recording`."""
        return self.whole.name

    @property
    def topic(self) -> str:
        """See :class:`~spark_cep.recorded.recording.Recording`."""
        return self.whole.topic

    @property
    def size(self) -> int:
        """See :class:`~spark_cep.recorded.recording.Recording`."""
        return self.whole.size

    def chunks(self) -> Iterator[Chunk]:
        """See :class:`~spark_cep.recorded.recording.Recording`."""
        left = self.most
        for chunk in self.whole.chunks():
            records = chunk.records
            if records is not None and len(records) > left:
                records = records.take(np.arange(left))
            yield chunk._replace(records=records)
            left -= 0 if records is None else len(records)
            if left <= 0:
                return

    def parts(self, count: int) -> Sequence[Recording]:  # noqa: ARG002  there is one
        """See :class:`~spark_cep.recorded.recording.Recording`."""
        return [self]

    def around(self, at: Coordinates) -> Recording | None:
        """See :class:`~spark_cep.recorded.recording.Recording`."""
        return None if self.whole.around(at) is None else self


def _every_event(name: str) -> Rule:
    """A rule that reads each event of an input."""
    return Rule("sample", 1, pattern=(Step("event"),), events=(name,))


def _sample(name: str, opened: RecordedEvents, source: str) -> Sample:
    share = max(1, _MOST // max(1, len(opened.recordings)))
    heads = [_Head(each, share) for each in opened.recordings]
    recorded = replace(opened, recordings=heads)
    try:
        seen = [each.event for each in tapped_events(recorded, _every_event(name), None)]
    except ConfigurationError:
        raise ConfigurationError(
            f"{source}: none of the first {_MOST:,} records is an event that can be read"
        ) from None
    types = [each for each in recorded.format.types if isinstance(each, EventType)]
    ((most, _),) = Counter(each.of_type for each in seen).most_common(1)
    chosen = next(each for each in types if most in (None, each.name.rpartition(".")[2]))
    schemas = [json.loads(each.reader.text) for each in types]
    events = sorted((each for each in seen if each.of_type == most), key=lambda each: each.time)
    return Sample(
        name,
        schemas[0] if len(schemas) == 1 else schemas,
        chosen.name if len(types) > 1 else None,
        (chosen.event_time, chosen.event_time_unit),
        chosen.columns.fields,
        tuple(events),
        recorded,
    )
