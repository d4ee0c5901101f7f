"""Test cases are run as a job would run their events, and compared in what they write."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_cep.cases.document.files import suites
from tests.cases.files import RULE, outcomes, read, told, written

PASSING = """
    cases:
      - case: a rise
        events:
          - {send: {user_id: ann, kind: a, amount: 1.5}, name: first}
          - {send: {user_id: bob, kind: b, amount: 9}, at: 3 s}
          - {send: {user_id: ann, kind: b, amount: 4}, at: +2 s, name: second}
        expect:
          matches:
            - {rule: two, key: ann, at: 5 s, start: 0 s, steps: {a: first, b: [second]},
               measures: {rise: 2.5}}
          timeouts: none
      - case: no rise
        start: 2030-01-31T00:00:00Z
        events:
          - {send: {user_id: ann, kind: a, amount: 5}}
          - {send: {user_id: ann, kind: b, amount: 5}, at: 2030-01-31T00:00:01Z}
          - restart
          - {clock: 1 minute}
          - {send: {user_id: ann, kind: b, amount: 50}, at: 30 s}
        expect:
          matches: none
          timeouts: [{at: 1 minute, steps: {a: 1, b: []}}]
          late: [3]
      - case: nothing
        events:
          - {send: {user_id: ann, kind: c}, times: 3, every: 1 s}
          - finish
        expect: none
"""


def test_cases_that_pass(tmp_path: Path) -> None:
    """Matches, timeouts, late events, restarts, times of all forms."""
    for each in outcomes(read(tmp_path, PASSING)):
        assert each.passed, "\n".join(each.lines())


@pytest.mark.parametrize(
    ("right", "wrong", "kind"),
    [
        ("measures: {rise: 2.5}", "measures: {rise: 2.6}", "matches"),
        ("key: ann, at: 5 s", "key: bob, at: 5 s", "matches"),
        ("start: 0 s", "start: 1 s", "matches"),
        ("a: first", "a: second", "matches"),
        ("timeouts: none", "timeouts: [{key: ann}]", "timeouts"),
        ("late: [3]", "late: none", "late"),
        ("steps: {a: 1, b: []}", "steps: {a: 1, b: 2}", "timeouts"),
        ("expect: none", "expect: {matches: [{key: ann}]}", "matches"),
    ],
)
def test_cases_that_fail(tmp_path: Path, right: str, wrong: str, kind: str) -> None:
    """Whatever is written is compared."""
    assert right in PASSING
    failed = [
        each for each in outcomes(read(tmp_path, PASSING.replace(right, wrong))) if not each.passed
    ]
    assert [[each.kind for each in one.differences] for one in failed] == [[kind]]


def test_a_difference_side_by_side(tmp_path: Path) -> None:
    """Expected and found stand beside each other, then the events by name."""
    cases = PASSING.split("      - case: no rise", maxsplit=1)[0]
    assert told(tmp_path, cases.replace("rise: 2.5", "rise: 3")) == (
        "matches: 1 expected, 1 found\n"
        "  match 1          expected     found\n"
        "    rule           two          two\n"
        "    key            ann          ann\n"
        "    steps.a        first        first\n"
        "    steps.b        second       second\n"
        "    at             5 seconds    5 seconds\n"
        "    start          0 ms         0 ms\n"
        "    measures.rise  3          ≠ 2.5\n"
        "events\n"
        "  first    0 ms       user_id: ann, kind: a, amount: 1.5\n"
        "  event 2  3 seconds  user_id: bob, kind: b, amount: 9\n"
        "  second   5 seconds  user_id: ann, kind: b, amount: 4"
    )


def test_what_is_not_expected(tmp_path: Path) -> None:
    """A match too many is shown whole."""
    cases = PASSING.split("      - case: no rise", maxsplit=1)[0]
    shown = told(tmp_path, cases.split("expect:")[0] + "expect: none\n")
    assert "matches: 0 expected, 1 found\n  match that is not expected\n    rule" in shown
    assert "measures.rise  2.5" in shown


def test_exact_counts_whatever_the_order(tmp_path: Path) -> None:
    """An expectation that fits several results takes the one that leaves most for the others."""
    text = """
    cases:
      - case: two users
        events:
          - {send: {user_id: ann, kind: a, amount: 1}}
          - {send: {user_id: bob, kind: a, amount: 1}}
          - {send: {user_id: ann, kind: b, amount: 2}, at: 1 s}
          - {send: {user_id: bob, kind: b, amount: 3}, at: 1 s}
        expect:
          matches:
            - {measures: {}}
            - {key: ann}
    """
    (one,) = outcomes(read(tmp_path, text))
    assert one.passed
    (one,) = outcomes(
        read(tmp_path, text.replace("- {key: ann}", "- {key: ann}\n            - {}"))
    )
    assert one.summary == "matches: 3 expected, 2 found"


def test_events_that_fail(tmp_path: Path) -> None:
    """A dead letter that is not expected fails a case, also where it says nothing of them."""
    text = """
    cases:
      - case: text for a number
        events:
          - {send: {user_id: ann, kind: a, amount: 1}}
          - {send: {kind: a}, at: 1 s, name: keyless}
        expect:
          matches: none
    """
    shown = told(tmp_path, text)
    assert "dead_letters: 0 expected, 1 found" in shown
    assert "missing_key" in shown
    expected = text.replace(
        "matches: none", "dead_letters: [{event: keyless, reason: missing_key}]"
    )
    (one,) = outcomes(read(tmp_path, expected))
    assert one.passed, "\n".join(one.lines())


def test_a_schema_beside_gives_types(tmp_path: Path) -> None:
    """Decimals, times and enums are read as the schema has them, and a wrong column is
    underlined."""
    written(
        tmp_path,
        "events.avsc",
        """
        {"type": "record", "name": "E", "fields": [
          {"name": "user_id", "type": "string"},
          {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["a", "b"]}},
          {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
          {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9,
                                      "scale": 2}}]}
        """,
    )
    rule = RULE.replace("measures:\n", "measures:\n        when: LAST(b.ts)\n")
    text = """
    event_time: ts
    cases:
      - case: exact sums
        events:
          - {send: {user_id: ann, kind: a, amount: 0.1}}
          - {send: {user_id: ann, kind: b, amount: 0.3}, at: 1 s}
        expect:
          matches: [{measures: {rise: 0.20, when: 1 s}}]
    """
    (one,) = outcomes(read(tmp_path, text, rule))
    assert one.passed, "\n".join(one.lines())
    shown = told(tmp_path, text.replace("kind: b", "kind: bb"), rule)
    assert "E.kind cannot be 'bb': the symbols are a, b" in shown
    assert "^^^" in shown


def test_cases_in_a_rules_document(tmp_path: Path) -> None:
    """They run with that rule, whose meaning and fingerprint they leave as they are."""
    from spark_cep.pattern.document.loading import load_rules

    cases = PASSING.replace("\n    ", "\n  ").replace("\n  cases:", "\n    cases:")
    file = written(tmp_path, "two.yaml", RULE + cases)
    (suite,) = suites([tmp_path], {})
    assert [each.passed for each in outcomes(suite)] == [True] * 3
    (rule,) = load_rules(file.read_text("utf-8"), "two.yaml")
    (without,) = load_rules(written(tmp_path, "other.yaml", RULE).read_text("utf-8"), "two.yaml")
    assert rule.text == without.text


def test_cases_in_a_file_in_sql(tmp_path: Path) -> None:
    """The comment of a statement may hold cases."""
    written(
        tmp_path,
        "rise.sql",
        """
        -- id: rise
        -- cases:
        --   - case: one
        --     events:
        --       - {send: {v: 1}}
        --       - {send: {v: 2}, at: 1 s}
        --     expect:
        --       matches: [{steps: {a: 1, b: 2}, measures: {top: 2}}]
        SELECT * FROM ticks MATCH_RECOGNIZE (
          ORDER BY ts MEASURES b.v AS top PATTERN (a b) DEFINE b AS v > PREV(v))
        """,
    )
    (suite,) = suites([tmp_path], {})
    (one,) = outcomes(suite)
    assert one.passed, "\n".join(one.lines())
