"""A key's partial matches, read from what a key group stores, with what they wait for."""

from __future__ import annotations

from spark_cep import Pattern
from spark_cep.compiler.rule_set import compile_rule, compile_rules
from spark_cep.matcher.findings.live import ahead
from spark_cep.model import Coordinates
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.tree import Rule
from spark_cep.pipeline.state.entries import CHANGES
from spark_cep.pipeline.state.group_format import GROUP
from spark_cep.pipeline.state.stored_group import HeldPartial, StoredGroup
from spark_cep.runner.batch import Batch, RunSettings
from spark_cep.runner.runner import Runner
from spark_cep.runner.values import ValueInputs, ValueRecord, records_of

SQL = """
id: in-sql
version: 1
sql: |
  SELECT * FROM t MATCH_RECOGNIZE (
    PARTITION BY user ORDER BY ts MEASURES A.n AS n
    PATTERN (A B) WITHIN INTERVAL '1' MINUTE DEFINE A AS kind = 'a', B AS kind = 'b'
  )
"""


def held(rule: Rule, *kinds: str) -> list[HeldPartial]:
    """What is stored of ann after events of these kinds, one a second."""
    inputs = ValueInputs()
    number = inputs.number("t", None)
    runner = Runner(compile_rules([rule]), inputs, RunSettings(key_groups=1))
    records = [
        ValueRecord.of(
            Coordinates("t", 0, n), number, n * 1_000_000, {"user": "ann", "kind": kind, "n": n}
        )
        for n, kind in enumerate(kinds)
    ]
    runner.apply(Batch(records_of(records), watermark=1_000 * len(kinds)))
    (entries,) = runner.snapshot().groups
    group = StoredGroup(entries.by_name.pop(GROUP))
    found: list[HeldPartial] = []
    stored = {name: group.check(0, name, data) for name, data in entries.by_name.items()}
    for name, data in stored.items():
        if not name.endswith(CHANGES):
            found += group.of_key(data, stored.get(name + CHANGES), "ann")
            assert not list(group.of_key(data, stored.get(name + CHANGES), "bob"))
            of_all = group.of_all_keys(data, stored.get(name + CHANGES))
            assert list(of_all) == [("ann", each) for each in found]
    return found


def test_a_rule_of_steps() -> None:
    """The events taken, first to last, and the steps ahead."""
    pattern = Pattern.begin("a").where("kind = 'a'").followed_by("b").where("kind = 'b'")
    rule = pattern.not_followed_by("c").where("kind = 'c'").within("1 minute").rule("r", key="user")
    (one,) = held(rule, "a", "x")
    assert (one.rule.id, one.began, one.deadline) == ("r", 0, 60_000)
    assert one.events == [(0, Coordinates("t", 0, 0))]
    assert ahead(compile_rule(rule), one.places).waits_for == ("b",)
    (two,) = held(rule, "a", "b")
    assert ahead(compile_rule(rule), two.places) == ((), ("c",), True)


def test_a_rule_in_sql() -> None:
    """The ways of the attempt under way."""
    (loaded,) = load_rules(SQL, "rules.yaml")
    (one,) = held(loaded.rule, "x", "a")
    assert (one.rule.id, one.began, one.deadline) == ("in-sql", 1_000, 61_000)
    assert one.events == [(0, Coordinates("t", 0, 1))]
    assert ahead(compile_rule(loaded.rule), one.places).waits_for == ("B",)
