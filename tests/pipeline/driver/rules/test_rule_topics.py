"""What the status topic is told, and what stops it: nothing for good."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from spark_cep.errors import KafkaUnavailableError
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pipeline.driver.rules import rule_topics
from spark_cep.pipeline.driver.rules.rule_log import LoggedRules
from spark_cep.pipeline.driver.rules.rule_topics import RuleTopics
from spark_cep.rules.rule_set import RuleSet, assemble
from spark_cep.rules.sources.compacted_topic import TopicRecord

_RULE = "{id: a, version: 1, key: k, pattern: [{step: a, where: n = 1}]}"
_OF_ANOTHER = json.dumps(["other", "a", 1]).encode()


class Topics:
    """Topics in memory. ``rows``: the states that there are; ``wrong``: what a write raises."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.records: dict[bytes, TopicRecord] = {_OF_ANOTHER: TopicRecord(b"{}", 0)}
        self.audit: list[bytes] = []
        self.rows: list[Any] = [_row("a"), _row("b")]
        self.wrong: Exception | None = None
        self.now = 0.0
        topics = SimpleNamespace(rule_audit="audit", rule_status="status")
        settings: Any = SimpleNamespace(
            kafka=None, spark=SimpleNamespace(app_name="job"),
            outputs=SimpleNamespace(topics=topics),
        )  # fmt: skip
        self.topics = RuleTopics(settings, lambda: self.rows, "run")
        monkeypatch.setattr(self.topics, "_write", self._write)
        there = SimpleNamespace(records=self.records, read=Mock(), close=Mock())
        monkeypatch.setitem(self.topics.__dict__, "_states", there)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def _write(self, topic: str, records: Any) -> None:
        if self.wrong is not None:
            raise self.wrong
        for key, value in records:
            if topic == "audit":
                self.audit.append(value)
            elif value is None:
                del self.records[key]
            else:
                self.records[key] = TopicRecord(value, 0)

    def told(self) -> list[Any]:
        """The states of the job."""
        return [json.loads(each.value) for key, each in self.records.items() if key != _OF_ANOTHER]


def _row(rule: str, **more: Any) -> dict[str, Any]:
    return {"id": rule, "version": 1, "state": "active", "partial_matches": 7, **more}


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> Topics:
    """That hold something of another job."""
    return Topics(monkeypatch)


def test_states_are_told_and_taken_back(topics: Topics) -> None:
    """Only those of this job; also where the topic was made again."""
    topics.topics._write_states()
    assert [each["rule_id"] for each in topics.told()] == ["a", "b"]
    del topics.rows[0]
    topics.topics._write_states()
    assert [each["rule_id"] for each in topics.told()] == ["b"]
    assert _OF_ANOTHER in topics.records
    topics.records.clear()
    topics.topics._write_states()
    topics.now = 60.0
    topics.topics._write_states()
    assert [each["rule_id"] for each in topics.told()] == ["b"]


def test_several_problems_of_one_file(topics: Topics) -> None:
    """Each is told."""
    wrong = {"id": None, "state": "rejected", "source": "a.yaml"}
    topics.rows = [{**wrong, "reason": each} for each in ("one", "two", "three")]
    topics.topics._write_states()
    assert [each["reason"] for each in topics.told()] == ["one", "two", "three"]
    del topics.rows[1]
    topics.topics._write_states()
    assert [each["reason"] for each in topics.told()] == ["one", "three"]


def test_a_state_that_is_no_record(topics: Topics) -> None:
    """A reason without end is cut; a name that is no text has other characters."""
    topics.rows = [
        _row("a"),
        {"id": None, "state": "rejected", "source": "\udcff.yaml", "reason": 2_000_000 * "é"},
    ]
    topics.topics._write_states()
    first, second = topics.told()
    assert (first["rule_id"], second["source"], len(second["reason"])) == ("a", "?.yaml", 10_000)


def test_an_error_ends_nothing(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is logged once, until states can be told again."""
    said: list[str] = []
    log = SimpleNamespace(warning=lambda _event, *, reason: said.append(reason))
    monkeypatch.setattr(rule_topics, "_log", log)
    errors = [
        KafkaUnavailableError("away"),
        ValueError("no text"),
        KafkaUnavailableError("away"),
        None,
        None,
    ]
    seen = iter([*errors, KafkaUnavailableError("away")])

    def wait(_seconds: float) -> bool:
        topics.wrong = next(seen)
        topics.rows = [_row(f"r{len(said)}"), _row(str(topics.wrong))]
        return len(topics.told()) == 0 or topics.wrong is None

    monkeypatch.setattr(topics.topics, "wait", wait)
    topics.topics._work()
    assert said == ["away", "ValueError: no text", "away"]


def test_a_decision_about_a_name_that_is_no_text(topics: Topics) -> None:
    """It is told all the same: the batch waits for it."""
    rules = assemble(load_rules(_RULE, "\udcff.yaml"))
    topics.topics.decided(RuleSet(), LoggedRules.following(None, 0, {}, rules), {})
    assert [json.loads(each).get("source") for each in topics.audit] == ["?.yaml", None]
