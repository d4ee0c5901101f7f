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
from service.pattern.document import load_rules
from service.pattern.tree import Rule
from service.rules.rule_set import RuleSet

#: What no canonical text holds.
_BETWEEN = "\x00"
_MOST_RULES = 4_096
_MOST_SETS = 4


#: By canonical text.
_plans: dict[str, Plan] = {}


def encoded(rules: RuleSet) -> str:
    """The rules that take part, in their order, as ASCII."""
    texts = _BETWEEN.join(one.text for one in rules.running)
    return base64.b64encode(zlib.compress(texts.encode())).decode()


def plan_for(rules: RuleSet) -> RuleSetPlan:
    """The plan that :func:`plan_of` makes of the rules' text, without reading it."""
    return plan_together([_kept(one.text) or _keep(one.text, one.rule) for one in rules.running])


@lru_cache(maxsize=_MOST_SETS)
def plan_of(text: str) -> RuleSetPlan:
    """The plan of rules that :func:`encoded` gave as ``text``; the same in every process."""
    texts = zlib.decompress(base64.b64decode(text)).decode()
    found = [each for each in texts.split(_BETWEEN) if each]
    return plan_together([_kept(each) or _keep(each, _rule(each)) for each in found])


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
