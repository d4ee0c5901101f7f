"""A sample of the answers of Flink CEP 2.2, given by the machine and by the oracle.

``spec/flink-answers.jsonl`` holds a case a line: a pattern, events with watermarks, and the
matches, timeouts and late events of Flink's own operator; or why it refuses the pattern.
``spec/flink-answers-random.jsonl`` has random ones, with deeper groups and more ties.
"""

from __future__ import annotations

import json
import pathlib

import pytest

from spark_cep.pattern.document.loading import load_rules
from tests.conformance import Case, cases, difference, document, feed, ververica_json
from tests.oracle import Path, Seen, UndefinedError, answer_to
from tests.reference.local import Record

pytestmark = pytest.mark.slow

SPEC = pathlib.Path(__file__).parent / "spec"
CASES = list(cases(SPEC / "flink-answers.jsonl"))
RANDOM_CASES = list(cases(SPEC / "flink-answers-random.jsonl"))
ANSWERED = [case for case in CASES if "invalid" not in case]

#: The only reasons for which the oracle may pass.
REASONS = {
    "NOT after a group",
    "NOT after a loop with an upper bound",
    "greedy before what may be left out or not_next",
    "greedy inside a group",
    "greedy with until or gap",
    "leaving a repeating group",
    "not_next before nothing but optional steps",
    "which of two matches with one start and end is first",
}


@pytest.mark.parametrize("case", CASES + RANDOM_CASES, ids=lambda case: case["id"])
def test_machine(case: Case) -> None:
    """The machine gives Flink's answer, or refuses what Flink refuses."""
    assert difference(case) is None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_ververica_json(case: Case) -> None:
    """The machine gives Flink's answer to the pattern in Ververica's JSON, or refuses it too."""
    assert difference(case, ververica_json.document) is None


@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case["id"])
def test_oracle(case: Case) -> None:
    """The oracle gives Flink's answer, or names why it has none."""
    rule = load_rules(json.dumps(document(case)), case["id"])[0].rule
    timed = case["after_match"]["strategy"] == "no_skip"
    matches, timeouts = set(), set()
    for events in _by_key(case).values():
        try:
            answer = answer_to(rule, [Seen(event.time, event.values) for event in events])
        except UndefinedError as error:
            reason = str(error)
            if reason in REASONS:
                pytest.skip(reason)
            raise
        for path, time in answer.matches.items():
            matches.add(_named(path, events, time if timed else None))
        for path, deadline in answer.timeouts:
            timeouts.add(_named(path, events, deadline))
    expect = case["expect"]
    assert matches == {_text(m["steps"], m["at"] if timed else None) for m in expect["matches"]}
    assert timeouts == {_text(t["steps"], t["at"]) for t in expect["timeouts"]}


def _by_key(case: Case) -> dict[str, list[Record]]:
    """The events that are not late, in the order of application, by key."""
    by_key: dict[str, list[Record]] = {}
    watermark = None
    for records, moved_to in feed(case):
        for record in records:
            if watermark is None or record.time > watermark:
                by_key.setdefault(record.values["key"], []).append(record)
        watermark = moved_to
    for events in by_key.values():
        events.sort(key=lambda record: (record.time, record.at))
    return by_key


def _named(path: Path, events: list[Record], time: int | None) -> str:
    steps: dict[str, list[int]] = {}
    for step, position in path:
        steps.setdefault(step, []).append(events[position].at.offset)
    return _text(steps, time)


def _text(steps: dict[str, list[int]], time: int | None) -> str:
    return json.dumps([steps, time], sort_keys=True)
