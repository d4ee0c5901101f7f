"""The rules that a run begins with where the schemas of what is read have changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas
from spark_cep.codecs.registry.schema_resolution import resolve_schemas
from spark_cep.observability.metrics import Metrics
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pipeline.driver.checkpoint.files import Position
from spark_cep.pipeline.driver.control.source_offset import SourceOffset
from spark_cep.pipeline.driver.rules.rule_log import LoggedRules, RuleLog
from spark_cep.pipeline.driver.rules.rule_status import RuleStatus
from spark_cep.pipeline.driver.rules.rules_at_start import RulesAtStart
from spark_cep.rules.overrides import OverrideTopic
from spark_cep.rules.rule_set import assemble
from spark_cep.rules.sources.folder import FolderSource
from tests.codecs.registry.test_resolved_schemas import FakeRegistry
from tests.pipeline.driver.rules.test_job_plan import settings

_IN_SQL = """
SELECT * FROM i MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES x.amount AS m
  PATTERN (x y) WITHIN INTERVAL '5' SECOND DEFINE y AS amount > PREV(amount))
"""
_SOUND = "id: b\nkey: k\nwithin: 1 s\npattern: [{step: a, where: amount = 1}]\n"


class Files:
    """A checkpoint that is at batch 5, which is done or not."""

    def __init__(self, *, done: bool) -> None:
        self.location = "checkpoint"
        self._done = done
        self._files: dict[str, str] = {}

    def names(self, log: str) -> list[str]:
        """Of the log."""
        return [name.removeprefix(f"{log}/") for name in self._files]

    def parsed(self, name: str) -> list[Any]:
        """Its line."""
        return [json.loads(self._files[name])]

    def write(self, name: str, text: str) -> None:
        """In memory."""
        self._files[name] = text

    def position(self) -> Position:
        """How far it has come."""
        return Position("query", 5, 5 if self._done else 4, 1, 1, 1, 1, {}, {}, None)

    def offset(self, batch: int) -> SourceOffset:
        """Of the batch before."""
        return SourceOffset(input={("t", 0): batch})


def _schemas(folder: Path, **columns: str) -> ResolvedSchemas:
    time = {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}}
    fields = [time, *({"name": name, "type": kind} for name, kind in columns.items())]
    registry: Any = FakeRegistry(
        {0: {"type": "record", "name": "E", "fields": fields}}, t_value=[0]
    )
    given = settings(folder, {"topics": ["t"], "event_time": "ts"})
    return resolve_schemas(given, given.inputs, registry, ["t"])


def test_files_that_come_while_the_job_starts(tmp_path: Path) -> None:
    """A rule that ran and whose file is not there yet runs on, with its text."""
    (tmp_path / "checkpoint" / "rules").mkdir(parents=True)
    files: Any = Files(done=True)
    ran = assemble([*load_rules(_SOUND, "b.yaml"), *load_rules(_SOUND.replace("b", "c"), "c.yaml")])
    RuleLog(files).write(LoggedRules.following(None, 5, {}, ran))
    (tmp_path / "b.yaml").write_text(_SOUND[:-20], "utf-8")
    given = settings(tmp_path, {"topics": ["t"], "event_time": "ts"})
    status = RuleStatus(Metrics())
    at_start = RulesAtStart(given, FolderSource(tmp_path, 0.01), status)
    at_start.check(_schemas(tmp_path, k="string", amount="int"))
    (tmp_path / "b.yaml").write_text(_SOUND, "utf-8")
    (tmp_path / "c.yaml").write_text(_SOUND.replace("b", "c"), "utf-8")
    batches = at_start.decide(files, None, OverrideTopic(given.kafka, None), lambda *_: None)
    assert batches.wanted.rules.rules == ran.rules
    assert status.rejected == ()


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("removed", [True, False])
def test_a_rule_in_sql_that_does_not_fit_any_more(
    tmp_path: Path, *, removed: bool, done: bool
) -> None:
    """It takes no part and is rejected, also in a batch that is planned; the job starts with the
    others. A rule of steps goes on: to it the column is NULL."""
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "b.yaml").write_text(_SOUND, "utf-8")
    if not removed:
        (tmp_path / "a.sql").write_text(f"-- id: a{_IN_SQL}", "utf-8")
    files: Any = Files(done=done)
    in_sql = f"id: a\nsql: {json.dumps(_IN_SQL)}"
    ran = assemble([*load_rules(in_sql, "a.sql"), *load_rules(_SOUND, "b.yaml")])
    RuleLog(files).write(LoggedRules.following(None, 5, {}, ran))
    (tmp_path / "checkpoint" / "rules").mkdir()
    given = settings(tmp_path, {"topics": ["t"], "event_time": "ts"})
    status = RuleStatus(Metrics())
    at_start = RulesAtStart(given, FolderSource(tmp_path), status)
    at_start.check(_schemas(tmp_path, k="string"))
    topic = OverrideTopic(given.kafka, None)
    batches = at_start.decide(files, None, topic, lambda *_: None)
    assert [rule.id for rule in batches.wanted.rules.rules] == ["b"]
    assert [plan.rule.id for plan in batches.current.plan.plans] == ["b"]
    told = {problem.rule for problem in status.rejected}
    assert told == ({"b"} if removed else {"a", "b"})
