"""The plans of rules, and the text in which they travel with a batch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_cep.compiler.plan_data import PLAN_DATA
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.compiler.rule_set import DrainTime, RuleSetPlan, compile_rule, compile_rules
from spark_cep.compiler.steps.lowering import lower
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.types import BIGINT, RecordType
from spark_cep.rules import plans
from spark_cep.rules.rule_set import DrainingVersion, RuleSet, assemble
from spark_cep.rules.sources.folder import read_rules

EXAMPLES = Path(__file__).parents[2] / "examples" / "rules"
TYPES = RecordTypes()
AWKWARD = """\
id: awkward
key: k
description: "\\0 --- \\u2028 end"
pattern: [{step: a, where: "name = '\\0' AND other = 'ü'"}]
"""


def described(plan: RuleSetPlan) -> list[tuple[object, ...]]:
    """All that tells a plan from another."""
    return [
        (
            part.key_name,
            [condition.name for condition in part.conditions],
            [slot.name for slot in part.slots],
            [(r.plan.fingerprint, r.input_bit, r.bits, r.drains) for r in part.rules],
            [rule.plan.rule for rule in part.rules],
        )
        for part in plan.partitionings
    ]


@pytest.fixture(autouse=True)
def _fresh() -> None:
    """As in a process that has seen no rules."""
    plans._plans.cache_clear()
    plans.plan_of.cache_clear()
    plans._plan.cache_clear()


@pytest.mark.parametrize("rules", [read_rules(EXAMPLES), assemble(load_rules(AWKWARD, "awkward"))])
def test_a_worker_has_the_plan_of_the_driver(
    rules: RuleSet,
) -> None:
    """The one reads data, the other has the rules; both are what the compiler makes of them."""
    expected = described(compile_rules(rules.enabled))
    assert described(plans.plan_for(rules, TYPES)) == expected
    assert described(plans.plan_of(plans.encoded(rules, TYPES))) == expected


def test_rules_that_are_off_do_not_travel() -> None:
    """Nor does their order matter to the others."""
    on, off = ("{{id: {}, key: k, enabled: {}, pattern: [{{step: a, where: n = 1}}]}}".format(*each)
               for each in (("runs", "true"), ("rests", "false")))  # fmt: skip
    rules = assemble(load_rules(f"{off}\n---\n{on}", "t"))
    assert plans.encoded(rules, TYPES) == plans.encoded(assemble(load_rules(on, "t")), TYPES)
    assert [plan.rule.id for plan in plans.plan_of(plans.encoded(rules, TYPES)).plans] == ["runs"]
    assert plans.plan_of(plans.encoded(RuleSet(), TYPES)).plans == ()


def test_a_rule_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often those around it change."""
    read: list[bytes] = []
    tree_of = PLAN_DATA.tree_of

    def counted(data: bytes) -> object:
        read.append(data)
        return tree_of(data)

    monkeypatch.setattr(PLAN_DATA, "tree_of", counted)
    rule = "{{id: r{0}, key: k, pattern: [{{step: a, where: n = {0}}}]}}"
    for newest in (2, 3, 4):
        given = "\n---\n".join(rule.format(number) for number in (1, newest))
        plans.plan_of(plans.encoded(assemble(load_rules(given, "t")), TYPES))
    assert len(read) == len(set(read)) == 4


def test_a_statement_is_resolved_once() -> None:
    """A worker has the query of the driver, for the types of events that the driver has."""
    text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts ALL ROWS PER MATCH PATTERN (A) DEFINE A AS V > 1)"  # noqa: E501
    loaded = load_rules(json.dumps({"id": "q", "sql": text}), "t")
    types = RecordTypes((("t", "Event", RecordType({"ts": BIGINT, "v": BIGINT})),))
    (plan,) = plans.plan_of(plans.encoded(assemble(loaded), types)).plans
    assert isinstance(plan, RowPatternPlan)
    assert plan == compile_rule(loaded[0].rule, types)
    assert plan.columns == (("ts",), ("v",))


@pytest.mark.parametrize(
    "time", [DrainTime(5), DrainTime(None), DrainTime(0, -7), DrainTime(None, 7)]
)
def test_how_long_a_version_drains_travels(time: DrainTime) -> None:
    """As it was given."""
    (one,) = load_rules(AWKWARD, "awkward")
    rules = RuleSet((), draining=(DrainingVersion(one, *time),))
    assert list(plans.plan_of(plans.encoded(rules, TYPES)).draining.values()) == [time]


def test_versions_that_drain_or_move_travel_too() -> None:
    """Those that drain with how long they may; they run beside the version that runs. Those whose
    partial matches move do not run."""
    numbers = (1, 4, 3, 2)
    old, new, *moved = (load_rules(AWKWARD + f"version: {n}\n", "awkward")[0] for n in numbers)
    rules = RuleSet((new,), draining=(DrainingVersion(old, 7),), carried=tuple(moved))
    plan = plans.plan_of(plans.encoded(rules, TYPES))
    assert [(r.plan.rule.version, r.drains) for r in plan.partitionings[0].rules] == [
        (4, False), (1, True),
    ]  # fmt: skip
    assert list(plan.draining.values()) == [DrainTime(7)]
    (before,) = plan.carried.values()
    assert [each.rule.version for each in before] == [3, 2]
    same = plans.plan_for(rules, TYPES)
    assert (described(plan), plan.draining) == (described(same), same.draining)
    assert plan.carried.keys() == same.carried.keys() == {lower(new.rule).fingerprint}
