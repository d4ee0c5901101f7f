"""Coverage tells what of a rule no case takes, and changes no answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_cep.cases.coverage.coverage import CONDITION, EDGE, STEP, Coverage
from spark_cep.cases.coverage.observed import observing
from spark_cep.cases.coverage.row_edges import row_edges
from spark_cep.cases.document.files import suites
from spark_cep.cases.running.case_run import CaseRun
from spark_cep.cases.running.found import found_results
from spark_cep.cases.running.outcome import outcome
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.compiler.rule_set import compile_rule
from spark_cep.rules.sources.folder import read_rules
from tests.cases.files import outcomes, read, written

HALF = """
    cases:
      - case: begins
        events:
          - {send: {user_id: ann, kind: a, amount: 1}}
        expect: none
"""
SMALLER = """
      - case: a smaller one passes
        events:
          - {send: {user_id: ann, kind: a, amount: 5}}
          - {send: {user_id: ann, kind: b, amount: 3}, at: 1 s}
        expect: none
"""
LARGER = """
      - case: a larger one matches
        events:
          - {send: {user_id: ann, kind: a, amount: 5}}
          - {send: {user_id: ann, kind: c, amount: 6}, at: 1 s}
          - {send: {user_id: ann, kind: b, amount: 6}, at: 2 s}
        expect:
          matches: [{key: ann}]
"""


def missing(folder: Path, cases: str) -> tuple[Coverage, list[str]]:
    """What no case takes of the only rule."""
    coverage = Coverage()
    for each in outcomes(read(folder, cases), coverage):
        assert each.passed, "\n".join(each.lines())
    (one,) = coverage.rules.values()
    return coverage, [one.parts[item] for item in one.missing]


def test_what_no_case_takes(tmp_path: Path) -> None:
    """Steps, edges, and conditions that were never true, or never false."""
    coverage, left = missing(tmp_path, HALF)
    assert "step b" in left
    assert "step a" not in left
    assert "kind = 'a' is false (step a)" not in left
    assert any(each.startswith("kind = 'a'") and "is false" in each for each in left)
    assert any(each.startswith("kind = 'b'") and "is true" in each for each in left)
    assert any("LAST(a.amount)" in each and each.endswith("is true") for each in left)
    (one,) = coverage.rules.values()
    assert one.count(STEP) == (1, 2)
    assert 0 < coverage.share < 1


def test_conditions_that_look_back(tmp_path: Path) -> None:
    """Their answers follow from what the matcher did."""
    _, left = missing(tmp_path, HALF + SMALLER)
    looks_back = [each for each in left if "LAST(a.amount)" in each and "edge" not in each]
    assert [each.rpartition(" is ")[2] for each in looks_back] == ["true"]
    coverage, left = missing(tmp_path, HALF + SMALLER + LARGER)
    assert left == []
    assert coverage.share == 1
    (one,) = coverage.rules.values()
    taken, every = one.count(EDGE)
    assert taken == every > 0
    assert one.count(CONDITION)[1] == 6


def test_a_rule_in_sql(tmp_path: Path) -> None:
    """Variables, conditions on the row, and those that read other rows."""
    written(
        tmp_path,
        "rise.sql",
        """
        -- id: rise
        -- cases:
        --   - case: a fall
        --     events:
        --       - {send: {kind: s, v: 1}}
        --       - {send: {kind: s, v: 1}, at: 1 s}
        --     expect: none
        --   - case: a rise
        --     events:
        --       - {send: {kind: s, v: 1}}
        --       - {send: {kind: t, v: 2}, at: 1 s}
        --     expect: {matches: [{}]}
        SELECT * FROM ticks MATCH_RECOGNIZE (
          ORDER BY ts MEASURES b.v AS top PATTERN (a b)
          DEFINE a AS kind = 's', b AS v > PREV(v))
        """,
    )
    (suite,) = suites([tmp_path], {})
    coverage = Coverage()
    assert all(each.passed for each in outcomes(suite, coverage))
    (one,) = coverage.rules.values()
    assert [one.parts[item] for item in one.missing] == []
    assert one.count(STEP) == (2, 2)
    assert one.count(EDGE) == (3, 3)
    assert one.count(CONDITION) == (4, 4)
    alone = Coverage()
    outcome(suite, suite.file.cases[0], observing(alone))
    (one,) = alone.rules.values()
    left = [one.parts[item] for item in one.missing]
    assert "variable B" in left
    assert [each for each in left if "edge" in each] == [
        "edge from A to B", "edge from B to the match",
    ]  # fmt: skip
    assert any("PREV" in each and each.endswith("is true") for each in left)
    assert not any("PREV" in each and each.endswith("is false") for each in left)


def test_edges_of_a_pattern_of_rows(tmp_path: Path) -> None:
    """Those of its automaton: repetition, choice, what may be left out."""
    text = """
        -- id: r
        SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(b.v) AS v
          PATTERN (a (b{2,} | c) d?) DEFINE b AS v > 1, c AS v < 0)
    """
    (rule,) = read_rules(written(tmp_path, "r.sql", text).parent).rules
    plan = compile_rule(rule)
    assert isinstance(plan, RowPatternPlan)
    assert {*row_edges(plan)} == {
        (None, "A"), ("A", "B"), ("A", "C"), ("B", "B"), ("B", "D"), ("C", "D"), ("B", None),
        ("C", None), ("D", None),
    }  # fmt: skip


RULES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("folder", ["rules", "sql", "ververica"])
def test_answers_are_the_same(folder: str) -> None:
    """The results of a run that is observed are those of one that is not."""
    for suite in suites([RULES / folder], {}):
        plain, observed = outcomes(suite), outcomes(suite, Coverage())
        for one, other in zip(plain, observed, strict=True):
            assert _values(one.run) == _values(other.run)


def _values(run: CaseRun) -> object:
    return {kind: [dict(each.values) for each in all_] for kind, all_ in found_results(run).items()}
