"""Rules that are paused stay members of their set, and take no part."""

from __future__ import annotations

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.pattern.document.loading import load_rules
from spark_cep.rules.pauses import Pause
from spark_cep.rules.plans import encoded, plan_for, plan_of
from spark_cep.rules.rule_set import RuleSet, assemble

TYPES = RecordTypes()
_RULE = "id: {0}\nversion: {1}\nkey: k\nwithin: 1 s\npattern: [{{step: a, where: n = 1}}]\n"
_ANY, _OF_TWO = Pause("noisy", "anna"), Pause("dead letters", "circuit breaker", 2, 7)


def _rules(**versions: int) -> RuleSet:
    texts = (load_rules(_RULE.format(*each), "rules") for each in versions.items())
    return assemble(loaded for each in texts for loaded in each)


def test_a_paused_rule_takes_no_part() -> None:
    """Neither in the plan nor in the text that travels with a batch."""
    rules = _rules(a=1, b=2)
    paused = rules.pausing({"a": _ANY, "gone": _ANY})
    assert dict(paused.paused) == {"a": _ANY}
    assert paused.rules == rules.rules
    assert [one.rule.id for one in paused.running] == ["b"]
    for plan in (plan_for(paused, TYPES), plan_of(encoded(paused, TYPES))):
        assert [each.rule.id for each in plan.plans] == ["b"]


def test_a_pause_may_be_of_one_version() -> None:
    """It does not hold another one."""
    assert _rules(a=2).pausing({"a": _OF_TWO}).running == ()
    assert _rules(a=3).pausing({"a": _OF_TWO}).paused == {}


def test_pauses_make_another_set() -> None:
    """Who paused a rule and why is a part of it."""
    rules = _rules(a=2)
    sets = [rules, rules.pausing({"a": _ANY}), rules.pausing({"a": _OF_TWO})]
    assert len({each.fingerprint for each in sets}) == len(sets)
    assert sets[1].pausing({}).fingerprint == rules.fingerprint
