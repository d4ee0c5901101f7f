"""Output records: matches, their rows, timeouts, late events and dead letters as Kafka takes them.

A :class:`ResultEncoder` writes the values of all but late events. Those keep key, value and headers
unchanged, so the reader of the input can read them too, and get headers of their own. An encoder
holds plain values only: it can be pickled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import time_ns
from typing import Any, NamedTuple, Protocol

import numpy as np

from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.codecs.output.fields import Contract
from spark_cep.codecs.output.result_columns import EncodedResults, FieldColumns, columns_of
from spark_cep.columns.vectors import Bytes
from spark_cep.matcher.findings.result_rows import ResultRows
from spark_cep.matcher.findings.results import ResultKind, Results
from spark_cep.model import Coordinates, DeadLetter, LateEvent, Match, MatchRow, Timeout

KIND_HEADER = "spark-cep-kind"
RULE_ID_HEADER = "spark-cep-rule-id"
RULE_VERSION_HEADER = "spark-cep-rule-version"
MATCH_ID_HEADER = "spark-cep-match-id"
REASON_HEADER = "spark-cep-reason"
TOPIC_HEADER = "spark-cep-topic"
PARTITION_HEADER = "spark-cep-partition"
OFFSET_HEADER = "spark-cep-offset"
EVENT_TIME_HEADER = "spark-cep-event-time"
WATERMARK_HEADER = "spark-cep-watermark"

#: Bytes of a record that producers send, and brokers take, when nothing else is set.
LARGEST_RECORD = 1_000_000
_RECORD_OVERHEAD = 200
_CONTRACTS: dict[ResultKind, Contract] = {
    ResultKind.MATCH: "match",
    ResultKind.TIMEOUT: "timeout",
    ResultKind.ROW: "match-row",
}

Header = tuple[str, bytes | None]


class OutputRecord(NamedTuple):
    """One record for the sink. A header's value is ``None`` only where an input record's was."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: list[Header]

    @property
    def size(self) -> int:
        """Bytes of the record in Kafka's protocol, at most."""
        headers = sum(len(n.encode()) + len(v or b"") + 10 for n, v in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers + _RECORD_OVERHEAD


@dataclass(frozen=True, slots=True)
class OutputTopics:
    """The topic of each kind of output; ``shadow``: of matches, rows and timeouts of shadow
    rules."""

    matches: str
    timeouts: str
    late: str
    dead_letters: str
    shadow: str
    match_rows: str


class ResultEncoder(Protocol):
    """Writes the values of output records in one format, as the table of fields has them
    (:data:`~spark_cep.codecs.output.fields.RECORDS`); picklable. ``now``: processing time in
    milliseconds."""

    def value(self, contract: Contract, result: Any, now: int, origin: str) -> bytes:
        """The value of one record. OutputError, with its ``origin``, where it cannot be written."""

    def values(self, contract: Contract, columns: FieldColumns, now: int) -> Bytes:
        """The values of results that are columns, byte for byte those that each would have."""


@dataclass(frozen=True)
class ByContract:
    """Writes each kind of record by an encoder of its own."""

    encoders: Mapping[Contract, ResultEncoder]

    def value(self, contract: Contract, result: Any, now: int, origin: str) -> bytes:
        """See :class:`ResultEncoder`."""
        return self.encoders[contract].value(contract, result, now, origin)

    def values(self, contract: Contract, columns: FieldColumns, now: int) -> Bytes:
        """See :class:`ResultEncoder`."""
        return self.encoders[contract].values(contract, columns, now)


def wall_clock() -> int:
    """Processing time in milliseconds since 1970-01-01 UTC."""
    return time_ns() // 1_000_000


class OutputEncoder:
    """Turns what the matcher and the decoder hand out into records; ``clock`` gives processing
    time in milliseconds. No record has more than ``largest`` bytes: in place of a match, row,
    timeout or late event that would have more, there is a dead letter, and a dead letter leaves out
    the bytes of its record."""

    def __init__(
        self,
        topics: OutputTopics,
        encoder: ResultEncoder,
        clock: Callable[[], int] = wall_clock,
        largest: int = LARGEST_RECORD,
    ) -> None:
        self._topics = topics
        self._encoder = encoder
        self._clock = clock
        self._largest = largest

    def is_dead_letter(self, record: OutputRecord) -> bool:
        """Return whether a record is a dead letter, if need be in place of another."""
        return record.topic == self._topics.dead_letters

    def match(self, match: Match, *, shadow: bool = False) -> OutputRecord:
        """The record of a complete match; ``shadow``: of a rule that is one."""
        topic = self.result_topic(ResultKind.MATCH, shadow=shadow)
        return self._result("match", match, topic, f"match {match.match_id}")

    def row(self, row: MatchRow, *, shadow: bool = False) -> OutputRecord:
        """The record of a row of a result with ALL ROWS PER MATCH; ``shadow`` as for a match."""
        topic = self.result_topic(ResultKind.ROW, shadow=shadow)
        return self._result("match-row", row, topic, f"row of {_place(row.event.at)}")

    def timeout(self, timeout: Timeout, *, shadow: bool = False) -> OutputRecord:
        """The record of a partial match whose deadline passed; ``shadow`` as for a match."""
        topic = self.result_topic(ResultKind.TIMEOUT, shadow=shadow)
        return self._result("timeout", timeout, topic, f"timeout {timeout.match_id}")

    def results(
        self, results: Results | ResultRows
    ) -> tuple[EncodedResults, list[tuple[tuple[str, int], OutputRecord]]]:
        """The records of results that are columns; and, with their rules' ids and versions, the
        dead letters in place of those that would be too large."""
        columns = columns_of(results)
        values = self._encoder.values(_CONTRACTS[results.kind], columns, self._clock())
        encoded = columns.encoded(values)
        # What is the same in all records, and what is not.
        headers = [
            sum(len(name) + len(value) + 10 for name, value in each)
            for each in self.result_headers(encoded)
        ]
        rest = _RECORD_OVERHEAD + len(MATCH_ID_HEADER) + 32 + 10
        most = self._largest - rest - max(headers)
        large = np.flatnonzero(encoded.sizes > most)
        letters: list[tuple[tuple[str, int], OutputRecord]] = []
        replaced: set[int] = set()
        for row in large.tolist():
            match_id = encoded.ids.text(row)
            result = (
                results.result(row, match_id)
                if isinstance(results, ResultRows)
                else results.result(row)
            )
            record = self._record(result)
            if self.is_dead_letter(record):
                letters.append(((result.rule_id, result.rule_version), record))
                replaced.add(row)
        if replaced:
            encoded = encoded.take(np.setdiff1d(np.arange(len(encoded.rule)), list(replaced)))
        return encoded, letters

    def _record(self, result: Match | MatchRow | Timeout) -> OutputRecord:
        match result:
            case Match():
                return self.match(result)
            case MatchRow():
                return self.row(result)
            case Timeout():
                return self.timeout(result)

    def result_topic(self, kind: ResultKind, *, shadow: bool = False) -> str:
        """Return the topic of results of a kind."""
        if shadow:
            return self._topics.shadow
        match kind:
            case ResultKind.MATCH:
                return self._topics.matches
            case ResultKind.ROW:
                return self._topics.match_rows
            case ResultKind.TIMEOUT:
                return self._topics.timeouts

    @staticmethod
    def result_headers(encoded: EncodedResults) -> list[list[tuple[str, bytes]]]:
        """The headers of the results of each rule, but for the match id, which is the last."""
        return [
            [
                (KIND_HEADER, encoded.kind.value.encode()),
                (RULE_ID_HEADER, rule_id.encode()),
                (RULE_VERSION_HEADER, b"%d" % version),
            ]
            for rule_id, version in encoded.rules
        ]

    def late(self, event: LateEvent) -> OutputRecord:
        """The original record of a late event; its own headers come first."""
        headers: list[Header] = [
            *event.headers,
            (KIND_HEADER, b"late"),
            (TOPIC_HEADER, event.at.topic.encode()),
            (PARTITION_HEADER, b"%d" % event.at.partition),
            (OFFSET_HEADER, b"%d" % event.at.offset),
            (EVENT_TIME_HEADER, b"%d" % event.time),
            (WATERMARK_HEADER, b"%d" % event.watermark),
        ]
        record = OutputRecord(self._topics.late, event.record_key, event.record_value, headers)
        if record.size <= self._largest:
            return record
        detail = (
            f"the event of time {event.time} is late (watermark {event.watermark}), and too large"
            f" for the topic of late events: {record.size} bytes of at most {self._largest}"
        )
        reason = Reason.OUTPUT_TOO_LARGE.value
        return self.dead_letter(
            DeadLetter(event.at, reason, detail, event.record_key, event.record_value)
        )

    def _result(
        self, kind: Contract, result: Match | MatchRow | Timeout, topic: str, origin: str
    ) -> OutputRecord:
        """The record, or, where it is too large, the dead letter that names its last event."""
        headers: list[Header] = [
            (KIND_HEADER, kind.encode()),
            (RULE_ID_HEADER, result.rule_id.encode()),
            (RULE_VERSION_HEADER, b"%d" % result.rule_version),
        ]
        if result.match_id is not None:
            headers.append((MATCH_ID_HEADER, result.match_id.encode()))
        key = None if result.key is None else result.key.encode()
        record = OutputRecord(topic, key, self._value(kind, result, origin), headers)
        if record.size <= self._largest:
            return record
        if isinstance(result, MatchRow):
            last = result.event.at
            subject = f"row {result.row} of the match {result.match_id}"
            if result.match_id is None:
                subject = "the row that no match covers"
            subject += f", of the event {_place(last)},"
        else:
            events = [event for taken in result.steps.values() for event in taken]
            taken = [event.at for event in sorted(events, key=lambda event: (event.time, event.at))]
            last = taken[-1]
            subject = (
                f"the {kind} {result.match_id} of {len(taken)} events from {_place(taken[0])} on"
            )
        detail = f"{subject} has {record.size} bytes, and its topic takes {self._largest}"
        reason = Reason.OUTPUT_TOO_LARGE.value
        rule, version = result.rule_id, result.rule_version
        letter = DeadLetter(last, reason, detail, rule_id=rule, rule_version=version)
        return self.dead_letter(letter)

    def dead_letter(self, letter: DeadLetter) -> OutputRecord:
        """The record of something that could not be processed, under its original key."""
        record = self._dead_letter(letter)
        if record.size <= self._largest:
            return record
        key, value = letter.record_key or b"", letter.record_value or b""
        missing = f"(left out, too large for this topic: the value, {len(value)} bytes"
        letter = replace(letter, record_value=None)
        if len(key) * 2 > self._largest // 2:
            missing += f"; the key, {len(key)} bytes"
            letter = replace(letter, record_key=None)
        return self._dead_letter(replace(letter, detail=f"{letter.detail} {missing})"))

    def _dead_letter(self, letter: DeadLetter) -> OutputRecord:
        value = self._value("dead-letter", letter, f"dead letter of {_place(letter.at)}")
        headers: list[Header] = [
            (KIND_HEADER, b"dead-letter"),
            (REASON_HEADER, letter.reason.encode()),
        ]
        if letter.rule_id is not None:
            headers.append((RULE_ID_HEADER, letter.rule_id.encode()))
        return OutputRecord(self._topics.dead_letters, letter.record_key, value, headers)

    def _value(self, contract: Contract, result: Any, origin: str) -> bytes:
        return self._encoder.value(contract, result, self._clock(), origin)


def _place(at: Coordinates) -> str:
    return f"{at.topic}-{at.partition}@{at.offset}"
