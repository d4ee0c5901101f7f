"""Patterns in SQL with very many instructions are planned, and match."""

from __future__ import annotations

import json

import pytest

from spark_cep.pattern.document.loading import load_rules
from spark_cep.testkit import RuleTest

ROWS, ALTERNATIVES = 200, 1_500


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "define"),
    [
        ("(a{0,48}){0,48} b", "a AS kind = 'a'"),
        ("(a{0,70}){0,70} b", "a AS kind = 'a'"),
        (
            f"({' | '.join(f'x{number}' for number in range(ALTERNATIVES))})+ b",
            ", ".join(f"x{number} AS v = {number % 7}" for number in range(ALTERNATIVES)),
        ),
    ],
    ids=["48", "70", "alternatives"],
)
def test_a_wide_pattern(pattern: str, define: str) -> None:
    """All rows are taken, within the default limits."""
    sql = f"""SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts
      MEASURES COUNT(*) AS n PATTERN ({pattern}) WITHIN INTERVAL '1' HOUR
      DEFINE {define}, b AS kind = 'b')"""
    kit = RuleTest(load_rules(json.dumps({"id": "wide", "sql": sql}), "wide.yaml"))
    for number in range(ROWS):
        kit.send(k="k", kind="a", v=number % 7)
        kit.advance("1 second")
    kit.send(k="k", kind="b", v=7)
    kit.advance("2 hours")
    assert [match.measures["n"] for match in kit.matches] == [ROWS + 1], kit.explain()
    assert kit.dead_letters == []
