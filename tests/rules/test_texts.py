"""Rules as the text that travels with a batch."""

from __future__ import annotations

from pathlib import Path

import pytest
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import DrainTime, RuleSetPlan, compile_rules
from spark_cep.compiler.steps.lowering import lower
from spark_cep.pattern.document.loading import load_rules
from spark_cep.rules import texts
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
    texts._plans.cache_clear()
    texts.plan_of.cache_clear()


@pytest.mark.parametrize("rules", [read_rules(EXAMPLES), assemble(load_rules(AWKWARD, "awkward"))])
def test_a_worker_has_the_plan_of_the_driver(
    rules: RuleSet,
) -> None:
    """The one reads the text, the other has the rules; both are what the compiler makes of them."""
    expected = described(compile_rules(rules.enabled))
    assert described(texts.plan_for(rules, TYPES)) == expected
    texts._plans.cache_clear()
    assert described(texts.plan_of(texts.encoded(rules), TYPES)) == expected


def test_rules_that_are_off_do_not_travel() -> None:
    """Nor does their order matter to the others."""
    on, off = ("{{id: {}, key: k, enabled: {}, pattern: [{{step: a, where: n = 1}}]}}".format(*each)
               for each in (("runs", "true"), ("rests", "false")))  # fmt: skip
    rules = assemble(load_rules(f"{off}\n---\n{on}", "t"))
    assert texts.encoded(rules) == texts.encoded(assemble(load_rules(on, "t")))
    assert [plan.rule.id for plan in texts.plan_of(texts.encoded(rules), TYPES).plans] == ["runs"]
    assert texts.plan_of(texts.encoded(RuleSet()), TYPES).plans == ()


def test_a_rule_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often those around it change."""
    read: list[str] = []

    def load(text: str, source: str) -> object:
        read.append(text)
        return load_rules(text, source)

    monkeypatch.setattr(texts, "load_rules", load)
    rule = "{{id: r{0}, key: k, pattern: [{{step: a, where: n = {0}}}]}}"
    for newest in (2, 3, 4):
        given = "\n---\n".join(rule.format(number) for number in (1, newest))
        texts.plan_of(texts.encoded(assemble(load_rules(given, "t"))), TYPES)
    assert len(read) == 4


@pytest.mark.parametrize(
    "time", [DrainTime(5), DrainTime(None), DrainTime(0, -7), DrainTime(None, 7)]
)
def test_how_long_a_version_drains_travels(time: DrainTime) -> None:
    """As it was given."""
    (one,) = load_rules(AWKWARD, "awkward")
    rules = RuleSet((), draining=(DrainingVersion(one, *time),))
    assert list(texts.plan_of(texts.encoded(rules), TYPES).draining.values()) == [time]


def test_versions_that_drain_or_move_travel_too() -> None:
    """Those that drain with how long they may; they run beside the version that runs. Those whose
    partial matches move do not run."""
    numbers = (1, 4, 3, 2)
    old, new, *moved = (load_rules(AWKWARD + f"version: {n}\n", "awkward")[0] for n in numbers)
    rules = RuleSet((new,), draining=(DrainingVersion(old, 7),), carried=tuple(moved))
    plan = texts.plan_of(texts.encoded(rules), TYPES)
    assert [(r.plan.rule.version, r.drains) for r in plan.partitionings[0].rules] == [
        (4, False), (1, True),
    ]  # fmt: skip
    assert list(plan.draining.values()) == [DrainTime(7)]
    (before,) = plan.carried.values()
    assert [each.rule.version for each in before] == [3, 2]
    same = texts.plan_for(rules, TYPES)
    assert (described(plan), plan.draining) == (described(same), same.draining)
    assert plan.carried.keys() == same.carried.keys() == {lower(new.rule).fingerprint}
