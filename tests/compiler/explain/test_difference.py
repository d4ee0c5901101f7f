"""The difference of two versions in words."""

from __future__ import annotations

import pytest

from spark_cep.compiler.explain.difference import difference
from spark_cep.pattern.document.loading import load_rules

BASE = """\
id: r
key: user
pattern:
  - {step: fail, where: "kind = 'fail'", times: 3+}
  - {step: ok, after: followed_by, where: "kind = 'ok'"}
within: 1 minute
emit: {measures: {n: COUNT(fail.kind)}}
"""
SQL = """\
SELECT * FROM logins MATCH_RECOGNIZE (
  PARTITION BY user ORDER BY ts
  MEASURES LAST(A.amount) AS amount
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (A+ B) WITHIN INTERVAL '1' MINUTE
  DEFINE A AS A.kind = 'fail', B AS B.kind = 'ok'
)
"""
_SPAN = "from the first event to the last"
_OUT = "its condition is kind = 'out'"
CHANGES: dict[str, tuple[str, str, list[str]]] = {
    "nothing": ("id: r", "id: r\ndescription: other", []),
    "version": ("id: r", "id: r\nversion: 2", []),
    "times": ("3+", "5+", ["step `fail`: it is taken 5+ times; before: 3+"]),
    "condition": (
        "kind = 'ok'",
        "kind = 'ok' AND amount > 1",
        ["step `ok`: its condition is kind = 'ok' AND amount > 1; before: kind = 'ok'"],
    ),
    "window": (
        "1 minute",
        "2 minutes",
        [f"the window is less than 2 minutes {_SPAN}; it was less than 1 minute {_SPAN}"],
    ),
    "no window": (
        "within: 1 minute",
        "cooldown: 5 s",
        [
            f"the window is without end; it was less than 1 minute {_SPAN}",
            "the cooldown is 5 seconds; it was none",
        ],
    ),
    "key": ("key: user", "key: [user, ip]", ["the key is user, ip; it was user"]),
    "measure": (
        "n: COUNT(fail.kind)",
        "m: COUNT(ok.kind)",
        ["measure `n` is gone", "measure `m` is new: COUNT(ok.kind)"],
    ),
    "contiguity": (
        "after: followed_by",
        "after: next",
        ["step `ok`: it comes `next`; before: followed_by"],
    ),
    "off": ("id: r", "id: r\nenabled: false", ["it is switched off"]),
    "a step more": (
        "within",
        "  - {step: out, after: not_followed_by, where: \"kind = 'out'\"}\nwithin",
        [
            f"step `out` is new, behind `ok`: it comes `not_followed_by`, {_OUT}",
        ],
    ),
    "carried": (
        "id: r",
        "id: r\nversion: 2\nprevious_version: drain",
        ["partial matches of the version before: drain"],
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_rule_of_steps(what: str) -> None:
    """Each change is a sentence with what was before."""
    old, new, expected = CHANGES[what]
    rules = [load_rules(text, "r.yaml")[0].rule for text in (BASE, BASE.replace(old, new))]
    assert difference(*rules) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("A+", "A{3,}", "PATTERN is A{3,} B; it was A+ B"),
        ("B.kind = 'ok'", "B.kind = 'in'", "the condition of `B` is kind = 'in'; it was"),
        ("'1' MINUTE", "'2' MINUTE", "the window is 2 minutes; it was 1 minute"),
        ("PAST LAST ROW", "TO NEXT ROW", "after a match it skips"),
        ("AS amount", "AS last", "measure `amount` is gone"),
    ],
)
def test_a_rule_in_sql(old: str, new: str, expected: str) -> None:
    """By the clauses of the statement."""
    rules = []
    for text in (SQL, SQL.replace(old, new)):
        indented = "".join(f"  {line}\n" for line in text.splitlines())
        rules.append(load_rules(f"id: r\nsql: |\n{indented}", "r.yaml")[0].rule)
    lines = difference(*rules)
    assert lines[0].startswith(expected)
