"""Decisions of operators about rules, apart from their source: pauses, and rollbacks to an earlier
version. One JSON record for each rule in a compacted topic, under the rule's id; the newest counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, NamedTuple

from confluent_kafka import Producer
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spark_cep.config import Kafka
from spark_cep.errors import ConfigurationError, Problem, RuleSetError
from spark_cep.rules.pauses import Pause
from spark_cep.rules.rule_set import RuleFile, RuleSet
from spark_cep.rules.sources.compacted_topic import CompactedTopic
from spark_cep.rules.sources.source import decoded, rule_entry
from spark_cep.rules.topic_writer import write_records

_SECONDS: Final = 10.0
#: Of one rule each, that are not read again with each change of others.
_MOST_ORDERS: Final = 100
#: Characters of why a rule is paused and by whom: each record about it must hold them.
_MOST_TEXT: Final = 10_000


class _OverridePart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PauseOrder(_OverridePart):
    """The rule takes no part."""

    reason: str = ""
    version: int | None = Field(None, description="this version alone; absent: every one", ge=1)


class RollbackOrder(_OverridePart):
    """An older version runs in place of one, and of those between."""

    version: int = Field(description="the version that runs", ge=1)
    instead_of: int = Field(description="up to this version, the source is not followed", ge=1)
    rule: str = Field(description="canonical text of the version that runs")


class Override(_OverridePart):
    """The decision about a rule. Without a part of it the rule is as its source says: an empty
    one also ends a pause by the circuit breaker."""

    by: str = Field("", description="who wrote it; for people")
    pause: PauseOrder | None = None
    rollback: RollbackOrder | None = None

    def value(self) -> bytes:
        """The value of its record."""
        return self.model_dump_json(exclude_none=True).encode()


class PlacedOverride(NamedTuple):
    """An override, the offset of its record, and what messages call that."""

    override: Override
    offset: int
    place: str


@dataclass(frozen=True, slots=True)
class Overrides:
    """Overrides by rule id. ``problems``: of records that cannot be read, whose rules are
    ``unreadable``. ``end``: the offset behind all that was read, of the topic with the id
    ``topic``."""

    by_rule: Mapping[str, PlacedOverride] = field(default_factory=dict)
    unreadable: Mapping[str, Problem] = field(default_factory=dict)
    end: int = 0
    topic: str | None = None

    def pauses(self, before: Mapping[str, Pause]) -> dict[str, Pause]:
        """The pauses that hold now; ``before``: those that held. One that the job made ends with
        any later record of the rule, and so does one that was ordered in a topic that was made
        again since. A record that cannot be read ends none. Records that were there before the job
        read the topic for the first time end none that it made until then."""
        held = {
            rule: self.until_resumed(pause) if self._made_unread(pause) else pause
            for rule, pause in before.items()
        }
        kept = {rule: pause for rule, pause in held.items() if self._stays(rule, pause)}
        ordered = {
            rule: Pause(
                order.reason[:_MOST_TEXT],
                placed.override.by[:_MOST_TEXT],
                order.version,
                lifted_in=self.topic,
            )
            for rule, placed in self.by_rule.items()
            if (order := placed.override.pause) is not None
        }
        return {**kept, **ordered}

    def _made_unread(self, pause: Pause) -> bool:
        """Tell whether the job made the pause before it had read the topic, which it has by now."""
        unread = pause.lifted_from == 0 and pause.lifted_in is None
        return unread and self.topic is not None

    def _stays(self, rule: str, pause: Pause) -> bool:
        if rule in self.unreadable:
            return True
        placed = self.by_rule.get(rule)
        # Orders and offsets of a topic that was made again say nothing of those before.
        again = pause.lifted_in not in (None, self.topic)
        if pause.lifted_from is None:
            return again and self.topic is not None and placed is None
        return placed is None or (not again and placed.offset < pause.lifted_from)

    def until_resumed(self, pause: Pause) -> Pause:
        """The pause as one that the job made: it ends with the next record of the rule."""
        return replace(pause, lifted_from=self.end, lifted_in=self.topic)

    def applied(self, files: Sequence[RuleFile], running: RuleSet) -> list[RuleFile]:
        """The entries of a source, with rolled-back versions in place of their newer ones.
        ``running``: the rules that run now."""
        there = {rule.id for rule in running.rules}
        applied = list(files)
        broken = any(file.problems and file.rule is None for file in files)
        wrong = {file.rule for file in files if file.problems}
        for rule, placed in self.by_rule.items():
            order = placed.override.rollback
            if order is None:
                continue
            versions = [
                one.rule.version for file in files for one in file.loaded if one.rule.id == rule
            ]
            # One that is not there may be in an entry that cannot be read.
            hidden = rule in there and (broken or rule in wrong)
            if max(versions) <= order.instead_of if versions else hidden:
                applied = [_without(file, rule) for file in applied]
                applied.append(_ordered(order.rule, placed.place, rule, order.version))
        return applied


_ordered = lru_cache(_MOST_ORDERS)(rule_entry)


def _without(file: RuleFile, rule: str) -> RuleFile:
    kept = tuple(one for one in file.loaded if one.rule.id != rule)
    return file if len(kept) == len(file.loaded) else replace(file, loaded=kept)


class OverrideTopic:
    """The topic, on the cluster of the output; ``None``: nobody decides anything. Used by one
    thread at a time."""

    def __init__(self, kafka: Kafka, topic: str | None) -> None:
        config = kafka.consumer_config("spark-cep-overrides")
        self._topic = (
            None if topic is None else CompactedTopic(topic, config, _SECONDS, "overrides")
        )
        self._known: dict[str, PlacedOverride] = {}

    def read(self) -> Overrides | None:
        """The overrides that there are now; ``None``: the same as at the last read. RuleSetError
        when the topic cannot be read; the next read may succeed."""
        if self._topic is None or not self._topic.read():
            return None
        unreadable: dict[str, Problem] = {}
        by_rule: dict[str, PlacedOverride] = {}
        for key, record in self._topic.records.items():
            place = self._topic.place(record)
            rule = (key or b"").decode("utf-8", "replace")
            try:
                by_rule[rule] = PlacedOverride(
                    _parsed(record.value, place, rule), record.offset, place
                )
            except RuleSetError as error:
                (unreadable[rule],) = error.problems
                if rule in self._known:
                    by_rule[rule] = self._known[rule]
        self._known = by_rule
        return Overrides(by_rule, unreadable, self._topic.end, self._topic.id)

    def close(self) -> None:
        """Let go of the connection."""
        if self._topic is not None:
            self._topic.close()


def write_override(kafka: Kafka, topic: str, rule: str, override: Override) -> str:
    """Write what is decided about a rule; where it stands then. KafkaUnavailableError when nobody
    answers in time, ConfigurationError when it is refused."""
    producer = Producer(kafka.producer_config() | {"log_level": 0})
    records = [(rule.encode(), override.value())]
    (message,) = write_records(producer, topic, records, ConfigurationError)
    return f"{topic}/{message.partition()}/{message.offset()}"


def _parsed(value: bytes, place: str, rule: str) -> Override:
    """RuleSetError, with one problem, when it is none."""
    try:
        return Override.model_validate_json(decoded(value, place, "value"))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the record"
        message = f"{where}: {first['msg']}"
        allowed = "a record that `spark-cep rules pause`, `resume` or `rollback` writes"
        raise RuleSetError([Problem(message, place, rule=rule, allowed=allowed)]) from None
