"""The benchmark of rules in SQL, without the job: its clauses, and how matches are compared."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from bench.events import closing, events
from bench.outputs import row_line_of
from bench.sql_rules import SCENARIOS, TYPES, Scenario, write_rule
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.model import Coordinates
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.types import BIGINT, DOUBLE, STRING, RecordType
from spark_cep.rules.sources.folder import read_rules
from tests.bench.test_whole_job_benchmark import as_record
from tests.reference.local import LocalJob, Record
from tests.sql_rules import job_of, sql_rule

EVENT = RecordType({"user_id": STRING, "event_type": STRING, "amount": DOUBLE, "ts": BIGINT})


def lines(job: LocalJob) -> list[str]:
    """What is compared of the matches in the first events."""
    job.advance(records(events(8_000, 400, TYPES)), 2**50)
    return [
        row_line_of("m", {**as_record(match), "measures": match.measures})
        for match in job.outputs.matches
    ]


def records(made: Iterable[dict[str, object]]) -> list[Record]:
    """Events as records of one topic."""
    return [
        Record(Coordinates("events", 0, number), int(str(event["ts"])), event, "events")
        for number, event in enumerate(made)
    ]


def in_sql(scenario: Scenario) -> LocalJob:
    """A job with the clause."""
    _, _, statement = scenario.in_sql.partition("\n")
    return job_of([sql_rule(statement)], EVENT, "events")


def in_yaml(scenario: Scenario) -> LocalJob:
    """A job with the rule of steps."""
    return LocalJob(compile_rules([load_rules(scenario.in_yaml, "rule")[0].rule]))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_both_languages_find_the_same(scenario: Scenario) -> None:
    """Each match once, in one of fifty to three hundred events, with the same measures."""
    found = lines(in_sql(scenario))
    assert 26 < len(found) < 160
    assert sorted(found) == sorted(set(lines(in_yaml(scenario))))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_the_service_takes_the_files(scenario: Scenario, tmp_path: Path) -> None:
    """One rule in a folder, in either language."""
    for language in ("sql", "yaml"):
        folder = write_rule(tmp_path / language, scenario, language)
        assert [rule.id for rule in read_rules(folder).rules] == [scenario.name]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_flink_runs_the_same_clause(scenario: Scenario) -> None:
    """With the same pattern, conditions and names of measures, in Flink SQL's words."""
    pattern = f"PATTERN ({scenario.pattern}) WITHIN INTERVAL '1' MINUTE\n  DEFINE {scenario.define}"
    assert pattern in scenario.in_sql
    assert pattern in scenario.in_flink
    assert ".*" not in scenario.in_flink
    for name in ("first_row", "last_row", *scenario.measures):
        assert f" AS {name}" in scenario.in_flink


def test_the_closing_event_ends_nothing() -> None:
    """Its key is its own, and it is one row."""
    for scenario in SCENARIOS:
        job = in_sql(scenario)
        job.advance(records([closing(0, 1_000)]), 2**50)
        assert not job.outputs.matches


def test_a_line_tells_the_rows_in_the_order_of_time() -> None:
    """Offsets need not rise; a double is told by its bits."""
    steps = [
        {"step": "h", "events": [{"partition": 1, "offset": 9}]},
        {"step": "l", "events": [{"partition": 1, "offset": n} for n in (3, 5)]},
    ]
    record = {"key": "ann", "steps": steps, "measures": {"low": 1.0, "n": 2}}
    assert row_line_of("m", record) == f"m|ann|first_row=9|last_row=5|low={0x3FF << 52}|n=2"
