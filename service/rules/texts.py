"""Rules as a text that travels with each batch, and the plan that every process makes of it.

The canonical texts of the enabled rules, together and compressed: 16 KB for a thousand rules of the
same make. Each process reads a rule once, however often the rules around it change.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable
from functools import lru_cache

from service.compiler.lowering import lower
from service.compiler.plan import Plan
from service.compiler.rule_set import RuleSetPlan, plan_together
from service.pattern.canonical import to_yaml
from service.pattern.document import load_rules
from service.pattern.tree import Rule

#: What no canonical text holds.
_BETWEEN = "\x00"
_MOST_RULES = 4_096
_MOST_SETS = 4


def encoded(rules: Iterable[Rule]) -> str:
    """The rules that are enabled, in their order, as ASCII."""
    texts = _BETWEEN.join(to_yaml(rule) for rule in rules if rule.enabled)
    return base64.b64encode(zlib.compress(texts.encode())).decode()


@lru_cache(maxsize=_MOST_SETS)
def plan_of(text: str) -> RuleSetPlan:
    """The plan of rules that :func:`encoded` gave as ``text``; the same in every process."""
    texts = zlib.decompress(base64.b64decode(text)).decode()
    return plan_together(_plan(each) for each in texts.split(_BETWEEN) if each)


@lru_cache(maxsize=_MOST_RULES)
def _plan(text: str) -> Plan:
    (loaded,) = load_rules(text, "the rule set of the batch")
    return lower(loaded.rule)
