"""The queries of docs/match-recognize/queries.md give what the page says."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from spark_cep.testkit import FoundMatch, FoundRow, FoundTimeout, RuleTest
from tests.docs.example_tables import DAY, Cells, cell, schema, tables, value

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "match-recognize" / "queries.md").read_text("utf-8")
QUERIES = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def _match(found: FoundMatch, at: datetime) -> dict[str, str]:
    return {n: cell(each) for n, each in {**found.measures, "final at": at}.items()}


def _row(found: FoundRow, at: datetime) -> dict[str, str]:
    return {n: cell(each) for n, each in {**found.columns, "final at": at}.items()}


def _timeout(found: FoundTimeout, _: datetime) -> dict[str, str]:
    taken = sorted((e.number, variable) for variable, es in found.steps.items() for e in es)
    variables = " ".join(variable for _, variable in taken)
    return {"key": str(found.key), "variables": variables, "deadline": cell(found.deadline)}


@pytest.mark.parametrize("title", QUERIES)
def test_a_query(title: str, tmp_path: Path) -> None:
    """The events of the page give the results of the page, at the times that it says."""
    text = QUERIES[title]
    (statement,) = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    expected = tables(text)
    events = expected.pop("Events")
    (tmp_path / "rule.sql").write_text(statement, "utf-8")
    kit = RuleTest(tmp_path / "rule.sql", start=DAY, schema=schema(events))
    assert kit.warnings == ()
    (rule,) = kit.rules
    assert rule.within.max_ms is not None
    sent = [{name: value(each) for name, each in event.items()} for event in events]
    for event in sent:
        kit.send(event, at=event["ts"])
    # Of each result the time at which it is there: that of an event, or of a deadline.
    window = timedelta(milliseconds=rule.within.max_ms)
    times = {event["ts"] for event in sent}
    kinds: dict[str, Callable[[Any, datetime], dict[str, str]]] = {
        "Matches": _match,
        "Rows of matches": _row,
        "Timeouts": _timeout,
    }
    given: dict[str, Cells] = {name: [] for name in kinds}
    for time in sorted(times | {time + window for time in times}):
        kit.advance_to(time + timedelta(milliseconds=1))
        found: dict[str, Sequence[Any]] = {
            "Matches": kit.matches,
            "Rows of matches": kit.rows,
            "Timeouts": kit.timeouts,
        }
        for name, results in found.items():
            given[name] += [kinds[name](each, time) for each in results[len(given[name]) :]]
    assert {name: rows for name, rows in given.items() if rows} == expected, kit.explain()
    assert kit.dead_letters == []


def test_sessions_without_a_window(tmp_path: Path) -> None:
    """The last session of a user stays open, which is warned about."""
    text = QUERIES["Sessions"]
    (statement,) = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    without = re.sub(r" WITHIN INTERVAL '8' HOUR", "", statement)
    assert without != statement
    (tmp_path / "rule.sql").write_text(without, "utf-8")
    events = tables(text)["Events"]
    kit = RuleTest(tmp_path / "rule.sql", start=DAY, schema=schema(events))
    assert len(kit.warnings) == 1
    for event in events:
        values = {name: value(each) for name, each in event.items()}
        kit.send(values, at=values["ts"])
    kit.advance("30 days")
    assert [match.measures["clicks"] for match in kit.matches] == [3]
    kit.finish()
    assert [match.measures["clicks"] for match in kit.matches] == [3, 2]


def test_queries_there_are() -> None:
    """They have been found."""
    assert len(QUERIES) >= 7


def test_examples_are_queries_of_the_page() -> None:
    """So they are run above."""
    examples = sorted((ROOT / "examples" / "sql").glob("*.sql"))
    assert examples
    for example in examples:
        assert f"```sql\n{example.read_text('utf-8')}```\n" in PAGE
