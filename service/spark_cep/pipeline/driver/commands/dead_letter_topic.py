"""The newest records of the topic of dead letters, for people: read once, nothing committed."""

from __future__ import annotations

import json
from base64 import b64decode
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from confluent_kafka import Message

from spark_cep.codecs.registry.registry import Registry
from spark_cep.codecs.registry.settings import no_registry
from spark_cep.config import Settings
from spark_cep.pipeline.driver.commands.output_records import RecordDecoder, UndecodedError
from spark_cep.pipeline.driver.kafka.partition_reader import partitions_of

_MOST_FOREIGN: Final = 20
_NAME: Final = "sparkcep.v1.DeadLetter"


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter: its fields as in ``schemas/dead-letter.avsc``, and its own ``place``:
    partition and offset in the topic of dead letters."""

    place: tuple[int, int]
    topic: str
    partition: int
    offset: int
    reason: str
    detail: str
    rule_id: str | None
    step: str | None
    record_key: bytes | None
    record_value: bytes | None
    failed_at: datetime


@dataclass(frozen=True, slots=True)
class Foreign:
    """A record of the topic that is no dead letter, and why not."""

    place: tuple[int, int]
    why: str


def newest_letters(
    settings: Settings, most: int, wanted: Callable[[Letter], bool] = lambda _: True
) -> tuple[list[Letter], list[Foreign]]:
    """The newest ``most`` dead letters that are ``wanted``, oldest first, and what was met that is
    none, the last twenty of it. Not more than twice as many letters are held.

    Raises ConfigurationError where there is no such topic, KafkaUnavailableError,
    RegistryUnavailableError and what else :class:`~spark_cep.pipeline.driver.kafka.cluster.Cluster`
    and the registry raise.
    """
    if settings.registry is None and settings.outputs.format_of("dead_letters") == "avro":
        raise no_registry("dead letters", "outputs.format: json")
    topic = settings.outputs.topics.dead_letters
    letters: list[Letter] = []
    foreign: deque[Foreign] = deque(maxlen=_MOST_FOREIGN)
    with (
        partitions_of(settings, "outputs.topics.dead_letters", topic) as partitions,
        Registry.opened(settings.registry) as registry,
    ):
        decoder = RecordDecoder(registry)
        for partition in partitions:
            found: deque[Letter] = deque(maxlen=most)
            for stretch in partition.backwards():
                here: deque[Letter] = deque(maxlen=most - len(found))
                for message in stretch:
                    letter = _letter(message, decoder)
                    if isinstance(letter, Foreign):
                        foreign.append(letter)
                    elif wanted(letter):
                        here.append(letter)
                found.extendleft(reversed(here))
                if len(found) == most:
                    break
            letters = sorted([*letters, *found], key=lambda each: (each.failed_at, each.place))
            letters = letters[-most:]
    return letters, sorted(foreign, key=lambda each: each.place)


def _letter(message: Message, decoder: RecordDecoder) -> Letter | Foreign:
    """The dead letter that a record holds. Raises RegistryUnavailableError."""
    place = (message.partition() or 0, message.offset() or 0)
    value = message.value() or b""
    if value[:1] == b"{":
        return _of_json(place, value)
    try:
        return Letter(place, **decoder.decoded(message, _NAME))
    except (UndecodedError, TypeError) as error:
        return Foreign(place, str(error))


def _of_json(place: tuple[int, int], value: bytes) -> Letter | Foreign:
    """The dead letter that a JSON object is."""
    try:
        fields = json.loads(value)
        for name in ("record_key", "record_value"):
            fields[name] = None if fields[name] is None else b64decode(fields[name])
        fields["failed_at"] = datetime.fromisoformat(fields["failed_at"])
        return Letter(place, **fields)
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        return Foreign(place, f"it is JSON, and no dead letter: {type(error).__name__}: {error}")
