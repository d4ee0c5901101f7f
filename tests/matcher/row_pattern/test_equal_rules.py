"""Clauses without alternation and reluctant parts say what a rule of steps says; both matchers give
the same matches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.row_pattern import plan_query
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.model import Coordinates
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.sql import load_query
from spark_cep.pattern.types import BIGINT, STRING, RecordType
from tests.matcher.row_pattern.clauses import row
from tests.reference.local import LocalJob, Record
from tests.reference.row_pattern import KeyState, RowPatternMatcher
from tests.reference.row_pattern.results import MatchFound

pytestmark = pytest.mark.slow

EVENT = RecordType({"k": STRING, "ts": BIGINT, "s": STRING})
#: The clause, and the fields and the steps of the rule.
BOTH: dict[str, tuple[str, dict[str, Any], list[Any]]] = {
    "login failures": (
        "AFTER MATCH SKIP PAST LAST ROW PATTERN (A{3} B)",
        {"after_match": "skip_past_last_event"},
        [
            {"step": "A", "where": "s = 'a'", "times": 3, "loop": "consecutive"},
            {"step": "B", "after": "next", "where": "s = 'b'"},
        ],
    ),
    "a run, then its end": (
        "AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+ C)",
        {"after_match": "skip_to_next"},
        [
            {"step": "A", "where": "s = 'a'"},
            {
                "step": "B",
                "after": "next",
                "where": "s = 'b'",
                "times": "1+",
                "loop": "consecutive",
            },
            {"step": "C", "after": "next", "where": "s = 'c'"},
        ],
    ),
    "within": (
        "AFTER MATCH SKIP PAST LAST ROW PATTERN (A B C) WITHIN INTERVAL '4' MILLISECONDS",
        {"after_match": "skip_past_last_event", "within": "4 ms"},
        [
            {"step": "A", "where": "s = 'a'"},
            {"step": "B", "after": "next", "where": "s = 'b'"},
            {"step": "C", "after": "next", "where": "s = 'c'"},
        ],
    ),
}


def _of_steps(fields: dict[str, Any], steps: list[Any], events: Sequence[tuple[int, str]]) -> Any:
    document = {"id": "r", "version": 1, "key": "k", "pattern": steps, **fields}
    rule = load_rules(json.dumps(document), "r")[0].rule
    job = LocalJob(compile_rules([rule]), RecordTypes((("", "Event", EVENT),)))
    for offset, (time, text) in enumerate(events):
        values = {"k": "x", "ts": time, "s": text}
        job.advance([Record(Coordinates("t", 0, offset), time, values)], time)
    job.advance([], 1_000)
    return sorted(
        sorted(each.at.offset for taken in match.steps.values() for each in taken)
        for match in job.outputs.matches
    )


def _of_rows(clause: str, events: Sequence[tuple[int, str]]) -> Any:
    pattern = clause.partition("PATTERN")[2].partition(")")[0]
    defines = ", ".join(f"{v} AS s = '{v.lower()}'" for v in "ABC" if v in pattern)
    text = f"SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts {clause} DEFINE {defines})"
    plan = plan_query(load_query(text, "r.sql", EVENT))
    matcher, state = RowPatternMatcher(plan), KeyState()
    results = []
    for time, word in events:
        values = {"k": "x", "ts": time, "s": word}
        event = row(time, *(values[path[0]] for path in plan.columns))
        results += matcher.advance(state, [event])
    results += matcher.move_time(state, 1_000)
    found = [each for each in results if isinstance(each, MatchFound)]
    return sorted(list(range(each.first, each.first + len(each.labels))) for each in found)


@pytest.mark.parametrize("name", BOTH)
@settings(max_examples=150)
@given(steps=st.lists(st.tuples(st.integers(1, 3), st.sampled_from("aaabbc")), max_size=14))
def test_same_matches(name: str, steps: list[tuple[int, str]]) -> None:
    """Random events, none of them at the same time."""
    clause, fields, pattern = BOTH[name]
    now, events = 0, []
    for gap, text in steps:
        now += gap
        events.append((now, text))
    assert _of_rows(clause, events) == _of_steps(fields, pattern, events)
