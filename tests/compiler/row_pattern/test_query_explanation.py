"""The explanation of rules in SQL."""

from __future__ import annotations

import pytest

from spark_cep.compiler.explain.explanation import Explanation
from spark_cep.compiler.explain.row_pattern_explanation import explain_query
from spark_cep.compiler.row_pattern import plan_query
from spark_cep.pattern.document.loading import load_rules

FIELDS = """id: v-shape
description: Price falls.
mode: shadow
previous_version: drain
limits: {partial_matches: 50, events: 400}
"""
CLAUSE = """sql: |
  SELECT * FROM ticks MATCH_RECOGNIZE (
    PARTITION BY symbol ORDER BY ts
    MEASURES LAST(down.price) AS low
    ALL ROWS PER MATCH AFTER MATCH SKIP TO LAST down
    PATTERN ({pattern}) {within}
    DEFINE down AS price < PREV(price), up AS price > PREV(price) AND price > LAST(down.price)
  )
"""
WITHIN = "WITHIN INTERVAL '10' MINUTE"


def explained(pattern: str, within: str = WITHIN, fields: str = FIELDS) -> Explanation:
    """The explanation of the clause with this pattern."""
    text = fields + CLAUSE.format(pattern=pattern, within=within)
    (loaded,) = load_rules(text, "r.yaml")
    assert loaded.rule.query is not None
    return explain_query(loaded.rule, plan_query(loaded.rule.query), loaded.warnings)


def section(explanation: Explanation, heading: str) -> str:
    """The text below a heading."""
    (found,) = [each for each in explanation.sections if each.heading.startswith(heading)]
    return "\n".join(found.lines)


def test_whole_text() -> None:
    """All sections, in their order."""
    explanation = explained("a down+ up")
    fingerprint = section(explanation, "Rule").split("fingerprint")[1].split()[0]
    assert str(explanation).replace(fingerprint, "F") == (
        """Rule v-shape, version 1
  Price falls.
  fingerprint       F
  key               symbol
  input             ticks
  window            less than 10 minutes from the first event to the last
  rows              all rows per match show empty matches
  after a match     skip to last DOWN
  previous version  finishes what it has begun
  mode              shadow: results go to a topic of their own

Pattern
  one after the other:
    A: any row
    DOWN, once or more, as often as possible: a row where price < PREV(RUNNING LAST(price), 1)
    UP: a row where price > PREV(RUNNING LAST(price), 1) AND price > RUNNING LAST(DOWN.price)

Columns of the result
  symbol  the column symbol
  ts      the column ts
  low     RUNNING LAST(DOWN.price)
  and all other columns of the input, which --schema names

Program
  0 LABEL A
  1 LABEL DOWN
  2 SPLIT 1, 3
  3 LABEL UP
  4 DONE

What a key may hold
  rows          since the first of the attempt, and 1 before it, which PREV may read; 400 at most
  of each row   symbol, ts, price
  threads       one for each of 5 instructions, more where conditions look back at other rows; 50 at most
  for how long  until its window ends, also if the key has no further row
  for good      of each key that was seen, what PREV, ^ or MATCH_NUMBER() refer to

Work of one row
  limit         5,000,000 steps of some 10 ns; beyond it the attempt is given up
  open attempt  at most 4 instructions, 4 steps each, and conditions
  conditions    a step for each operation and value kept, 1,000 for a call of Python
  grows with    the rows that each thread has taken: 2 steps or more for what look-backs keep of them, 40 for what Python makes of them, 400 where it computes an expression of each
                the rows behind the start of an attempt that ends: 16 steps each

Warnings
  none"""  # noqa: E501  as it is
    )


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        ("down", "  DOWN: a row where price < PREV(RUNNING LAST(price), 1)"),
        ("down a{3}", "    A, 3 times: any row"),
        ("down a{2,3}?", "    A, 2 to 3 times, as seldom as possible: any row"),
        ("down a{2,}", "    A, 2 times or more, as often as possible: any row"),
        ("down a{,3}", "    A, 0 to 3 times, as often as possible: any row"),
        ("down a*?", "    A, any number of times, as seldom as possible: any row"),
        (
            "down (a | ())+?",
            """one of these, the first rather than the next, once or more, as seldom as possible:
            A: any row
            no row""",
        ),
        (
            "^ PERMUTE(a, down)",
            """the beginning of the partition
            all of these in any order, that of the text rather than another:
            A: any row""",
        ),
        ("down {- a? -}", "    not among the rows of the result:\n      A, once or not at all, "),
        ("down (a{2}){3}", "    3 times:\n      A, 2 times: any row"),
    ],
)
def test_patterns_in_words(pattern: str, lines: str) -> None:
    """Each part of a pattern."""
    defined = pattern if "up" in pattern else f"({pattern}) up"
    text = section(explained(defined), "Pattern")
    wanted = "\n".join(line.strip() for line in lines.split("\n"))
    assert wanted in "\n".join(line.strip() for line in text.split("\n"))


def test_warnings_and_threads() -> None:
    """Warnings stand at their places; without WITHIN nothing bounds the time."""
    explanation = explained("a down up+", within="")
    assert "r.yaml:11:21: [rule v-shape] a match is final only when" in section(
        explanation, "Warnings"
    )
    assert "for how long" not in section(explanation, "What a key")
    assert section(explanation, "Rule").count("window            none") == 1


def test_rows_of_a_sub_query() -> None:
    """The rows that there are, the order of equal times, and what SELECT computes."""
    text = (
        "id: r\nsql: SELECT low * 2 AS twice, symbol FROM (SELECT * FROM ticks t WHERE t.price > 1)"
        " MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts, seq DESC, price NULLS FIRST"
        " MEASURES a.price AS low PATTERN (a b) DEFINE b AS price > 1)"
    )
    (loaded,) = load_rules(text, "r.yaml")
    assert loaded.rule.query is not None
    plan = plan_query(loaded.rule.query)
    explanation = explain_query(loaded.rule, plan, loaded.warnings)
    lines = [line.split("  ") for line in section(explanation, "Rule").split("\n")]
    head = {line[1]: line[-1].strip() for line in lines}
    assert head["rows are"] == "events where price > 1"
    assert head["equal times"] == "ordered by seq DESC, price NULLS FIRST"
    assert section(explanation, "Columns") == (
        "  twice   low * 2, of columns of the result\n  symbol  the column symbol"
    )
    # The condition is that of `b`, too: one bit of the event, without which it is no row.
    assert [str(atom) for atom in plan.event_atoms] == ["price > 1"]
    assert (str(plan.relevant), plan.strict) == ("c0", False)
    assert "where price > 1" in str(plan)
