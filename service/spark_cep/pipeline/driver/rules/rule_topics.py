"""Records of a job's rules in Kafka: each decision in the audit topic, before anything is done
under it, and the state of each rule in the status topic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import Any, Final

from confluent_kafka import Producer

from spark_cep.config import Settings
from spark_cep.errors import SparkCepError, StartError
from spark_cep.observability.logs import logger
from spark_cep.pipeline.driver.lifecycle.background import Background
from spark_cep.pipeline.driver.rules.rule_log import LoggedRules
from spark_cep.rules.rule_set import RuleSet
from spark_cep.rules.sources.compacted_topic import CompactedTopic
from spark_cep.rules.status_topic import job_of, open_status
from spark_cep.rules.topic_records import Offsets, StatusRecord, audit_records
from spark_cep.rules.topic_writer import write_records

_log = logger(__name__)
#: How often the states are looked at.
_LOOK_SECONDS: Final = 0.5
#: How often the topic is, where they are the same: it may have been made again.
_CHECK_SECONDS: Final = 30.0
#: Characters of a text in a state, such as the reason of a rejection.
_MOST_TEXT: Final = 10_000


class RuleTopics(Background):
    """Writes the topics that the settings name. ``listing`` gives what ``/rules`` shows."""

    def __init__(
        self, settings: Settings, listing: Callable[[], Sequence[Mapping[str, Any]]], run: str
    ) -> None:
        topics = settings.outputs.topics
        self._kafka: Final = settings.kafka
        self._job: Final = settings.spark.app_name
        self._audit: Final = topics.rule_audit
        self._status: Final = topics.rule_status
        self._listing: Final = listing
        self._written: list[StatusRecord] | None = None
        self._look_at = 0.0
        #: Kinds of errors that were logged since the last success.
        self._failed: set[type] = set()
        super().__init__("rule-status", self._work, run)

    def start(self) -> None:
        """Begin to write states."""
        if self._status is not None:
            super().start()

    def stop(self) -> bool:
        """Write the last states; gives up after a while."""
        ended = super().stop()
        if self._status is not None:
            self._states.close()
        return ended

    def decided(self, before: RuleSet, logged: LoggedRules, offsets: Offsets) -> None:
        """Write the decisions that lead to a rule set, and wait until they are acknowledged. Raises
        KafkaUnavailableError when nobody answers, StartError when they are refused."""
        if self._audit is not None:
            common = {
                "job": self._job,
                "history": logged.history,
                "rule_set": logged.number,
                "batch": logged.batch,
            }
            records = audit_records(common, offsets, before, logged.rules)
            self._write(self._audit, [(key, record.value()) for key, record in records])

    def _work(self) -> None:
        going = True
        while going:
            going = self.wait(_LOOK_SECONDS)
            try:
                self._write_states()
            except Exception as error:  # noqa: BLE001  the job goes on, and so do later states
                if type(error) not in self._failed:
                    kind = "" if isinstance(error, SparkCepError) else f"{type(error).__name__}: "
                    _log.warning("rule_status_not_written", reason=f"{kind}{error}")
                self._failed.add(type(error))
            else:
                self._failed.clear()

    def _write_states(self) -> None:
        """Write the states that the topic has not, and remove those that are no more; also those of
        earlier runs, and all where the topic was made again."""
        assert self._status is not None
        states = [self._record(row) for row in self._listing()]
        now = time.monotonic()
        if states == self._written and now < self._look_at:
            return
        self._look_at = now + _CHECK_SECONDS
        self._states.read()
        there = {
            key: record.value
            for key, record in self._states.records.items()
            if key is not None and job_of(key) == self._job
        }
        wanted: dict[bytes, bytes] = {}
        for record in states:
            keys = map(record.key, count())
            wanted[next(key for key in keys if key not in wanted)] = record.value()
        changed: list[tuple[bytes, bytes | None]] = [
            (key, value) for key, value in wanted.items() if there.get(key) != value
        ]
        changed += [(key, None) for key in there if key not in wanted]
        if changed:
            self._write(self._status, changed)
        self._written = states

    def _record(self, row: Mapping[str, Any]) -> StatusRecord:
        # One record that Kafka refuses would hold back all others, for good.
        state = {
            name: value[:_MOST_TEXT] if isinstance(value, str) else value
            for name, value in row.items()
        }
        names = StatusRecord.model_fields.keys() & state.keys()
        return StatusRecord(
            job=self._job,
            rule_id=state["id"],
            rule_version=state.get("version"),
            **{name: state[name] for name in names},
        )

    def _write(self, topic: str, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        write_records(self._producer, topic, records, StartError)

    @cached_property
    def _states(self) -> CompactedTopic:
        return open_status(self._kafka, self._status or "")

    @cached_property
    def _producer(self) -> Producer:
        return Producer(self._kafka.producer_config() | {"log_level": 0})
