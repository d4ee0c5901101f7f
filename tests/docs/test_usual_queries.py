"""The usual queries of docs/match-recognize.md give what the page says."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from spark_cep.testkit import FoundMatch, FoundRow, FoundTimeout, RuleTest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "match-recognize.md").read_text("utf-8")
SECTION = PAGE.split("\n## Usual queries\n")[1].split("\n## ")[0]
QUERIES = dict(re.findall(r"^### (.+?)\n(.*?)(?=^### |\Z)", SECTION, re.MULTILINE | re.DOTALL))

#: A table with what it holds in the line before: the events, or results of a kind.
_TABLE = re.compile(r"^(\w[\w ]+?):\n\n((?:\|.*\n)+)", re.MULTILINE)
_CLOCK = re.compile(r"\d\d:\d\d")
_DAY = datetime(2026, 1, 5, tzinfo=UTC)

Cells = list[dict[str, str]]


def _tables(text: str) -> dict[str, Cells]:
    found = {}
    for name, table in _TABLE.findall(text):
        header, _, *rows = (
            [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()
        )
        found[name] = [dict(zip(header, row, strict=True)) for row in rows]
    return found


def _value(cell: str) -> Any:
    if _CLOCK.fullmatch(cell):
        hours, minutes = cell.split(":")
        return _DAY + timedelta(hours=int(hours), minutes=int(minutes))
    return int(cell) if cell.isdigit() else cell


def _cell(value: Any) -> str:
    return f"{value:%H:%M}" if isinstance(value, datetime) else str(value)


def _schema(events: Cells) -> dict[str, Any]:
    """Columns with the types that their cells have."""
    kinds = {
        datetime: {"type": "long", "logicalType": "timestamp-millis"},
        int: "long",
        str: "string",
    }
    fields = [{"name": n, "type": kinds[type(_value(cell))]} for n, cell in events[0].items()]
    return {"type": "record", "name": "Event", "fields": fields}


def _match(found: FoundMatch, at: datetime) -> dict[str, str]:
    return {n: _cell(value) for n, value in {**found.measures, "final at": at}.items()}


def _row(found: FoundRow, at: datetime) -> dict[str, str]:
    return {n: _cell(value) for n, value in {**found.columns, "final at": at}.items()}


def _timeout(found: FoundTimeout, _: datetime) -> dict[str, str]:
    taken = sorted((e.number, variable) for variable, es in found.steps.items() for e in es)
    variables = " ".join(variable for _, variable in taken)
    return {"key": str(found.key), "variables": variables, "deadline": _cell(found.deadline)}


@pytest.mark.parametrize("title", QUERIES)
def test_a_query(title: str, tmp_path: Path) -> None:
    """The events of the page give the results of the page, at the times that it says."""
    text = QUERIES[title]
    (statement,) = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    tables = _tables(text)
    events = tables.pop("Events")
    (tmp_path / "rule.sql").write_text(statement, "utf-8")
    kit = RuleTest(tmp_path / "rule.sql", start=_DAY, schema=_schema(events))
    assert kit.warnings == ()
    (rule,) = kit.rules
    assert rule.within.max_ms is not None
    sent = [{name: _value(cell) for name, cell in event.items()} for event in events]
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
    assert {name: rows for name, rows in given.items() if rows} == tables, kit.explain()
    assert kit.dead_letters == []


def test_sessions_without_a_window(tmp_path: Path) -> None:
    """The last session of a user stays open, which is warned about."""
    text = QUERIES["Sessions"]
    (statement,) = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    without = re.sub(r" WITHIN INTERVAL '8' HOUR", "", statement)
    assert without != statement
    (tmp_path / "rule.sql").write_text(without, "utf-8")
    events = _tables(text)["Events"]
    kit = RuleTest(tmp_path / "rule.sql", start=_DAY, schema=_schema(events))
    assert len(kit.warnings) == 1
    for event in events:
        values = {name: _value(cell) for name, cell in event.items()}
        kit.send(values, at=values["ts"])
    kit.advance("30 days")
    assert [match.measures["clicks"] for match in kit.matches] == [3]
    kit.finish()
    assert [match.measures["clicks"] for match in kit.matches] == [3, 2]


def test_queries_there_are() -> None:
    """The section has been found."""
    assert len(QUERIES) >= 7


def test_examples_are_queries_of_the_page() -> None:
    """So they are run above."""
    examples = sorted((ROOT / "examples" / "sql").glob("*.sql"))
    assert examples
    for example in examples:
        assert f"```sql\n{example.read_text('utf-8')}```\n" in SECTION
