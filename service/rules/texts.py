"""Rules as a text that travels with each batch, and the plan that every process makes of it.

The canonical texts of the rules that take part, together and compressed: 16 KB for a thousand rules
of the same make. Each process reads a rule once, however often the rules around it change.
"""

from __future__ import annotations

import base64
import zlib
from functools import lru_cache

from service.compiler.lowering import lower
from service.compiler.plan import Plan
from service.compiler.rule_set import RuleSetPlan, plan_together
from service.pattern.document import LoadedRule, load_rules
from service.pattern.tree import Rule
from service.rules.rule_set import RuleSet

#: What no canonical text holds.
_BETWEEN, _MARKED = "\x00", "\x01"
_CARRIED = "carried"
_MOST_RULES = 4_096
_MOST_SETS = 4


#: By canonical text.
_plans: dict[str, Plan] = {}


def encoded(rules: RuleSet) -> str:
    """The rules that take part, in their order, and the versions that drain or are carried over, as
    ASCII."""
    texts = [one.text for one in rules.running]
    texts += [f"{each.limit_ms}{_MARKED}{each.loaded.text}" for each in rules.draining]
    texts += [f"{_CARRIED}{_MARKED}{one.text}" for one in rules.carried]
    return base64.b64encode(zlib.compress(_BETWEEN.join(texts).encode())).decode()


def plan_for(rules: RuleSet) -> RuleSetPlan:
    """The plan that :func:`plan_of` makes of the rules' text, without reading it."""
    return plan_together(
        [_plan(one) for one in rules.running],
        [(_plan(each.loaded), each.limit_ms) for each in rules.draining],
        [_plan(one) for one in rules.carried],
    )


def meaning(one: LoadedRule) -> str:
    """What a version of a rule means, as a digest: equal for texts that differ in descriptions,
    modes or output alone."""
    return _plan(one).fingerprint


def _plan(one: LoadedRule) -> Plan:
    return _kept(one.text) or _keep(one.text, one.rule)


@lru_cache(maxsize=_MOST_SETS)
def plan_of(text: str) -> RuleSetPlan:
    """The plan of rules that :func:`encoded` gave as ``text``; the same in every process."""
    texts = zlib.decompress(base64.b64decode(text)).decode()
    plans: list[Plan] = []
    draining: list[tuple[Plan, int]] = []
    carried: list[Plan] = []
    for each in filter(None, texts.split(_BETWEEN)):
        mark, _, text_of_rule = each.rpartition(_MARKED)
        plan = _kept(text_of_rule) or _keep(text_of_rule, _rule(text_of_rule))
        if mark == _CARRIED:
            carried.append(plan)
        elif mark:
            draining.append((plan, int(mark)))
        else:
            plans.append(plan)
    return plan_together(plans, draining, carried)


def _kept(text: str) -> Plan | None:
    return _plans.get(text)


def _keep(text: str, rule: Rule) -> Plan:
    if len(_plans) >= _MOST_RULES:
        _plans.clear()
    plan = _plans[text] = lower(rule)
    return plan


def _rule(text: str) -> Rule:
    (loaded,) = load_rules(text, "the rule set of the batch")
    return loaded.rule
