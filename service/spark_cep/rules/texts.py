"""Rules as a text that travels with each batch, and the plan that every process makes of it.

The canonical texts of the rules that take part, together and compressed: 16 KB for a thousand rules
of the same make. Each process reads a rule once, however often the rules around it change.
"""

from __future__ import annotations

import base64
import zlib
from functools import lru_cache

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import AnyPlan, DrainTime, RuleSetPlan, compile_rule, plan_together
from spark_cep.pattern.document.loading import LoadedRule, load_rules
from spark_cep.pattern.tree import Rule
from spark_cep.rules.rule_set import RuleSet

#: What no canonical text holds.
_BETWEEN, _MARKED = "\x00", "\x01"
_CARRIED = "carried"
_MOST_RULES = 4_096
_MOST_SETS = 4
#: Of a process: that of its job, and others in tests.
_MOST_TYPES = 4


def encoded(rules: RuleSet) -> str:
    """The rules that take part, in their order, and the versions that drain or are carried over, as
    ASCII."""
    texts = [one.text for one in rules.running]
    texts += [f"{each.time}{_MARKED}{each.loaded.text}" for each in rules.draining]
    texts += [f"{_CARRIED}{_MARKED}{one.text}" for one in rules.carried]
    return base64.b64encode(zlib.compress(_BETWEEN.join(texts).encode())).decode()


def plan_for(rules: RuleSet, types: RecordTypes) -> RuleSetPlan:
    """The plan that :func:`plan_of` makes of the rules' text, without reading it."""
    plans = _plans(types)
    return plan_together(
        [plans.of(one) for one in rules.running],
        [(plans.of(each.loaded), each.time) for each in rules.draining],
        [plans.of(one) for one in rules.carried],
    )


def meaning(one: LoadedRule) -> str:
    """What a version of a rule means, as a digest: equal for texts that differ in descriptions,
    modes or output alone."""
    return _plans(RecordTypes()).of(one).fingerprint


@lru_cache(maxsize=_MOST_SETS)
def plan_of(text: str, types: RecordTypes) -> RuleSetPlan:
    """The plan of rules that :func:`encoded` gave as ``text``, over events of these types; the same
    in every process."""
    texts = zlib.decompress(base64.b64decode(text)).decode()
    kept = _plans(types)
    plans: list[AnyPlan] = []
    draining: list[tuple[AnyPlan, DrainTime]] = []
    carried: list[AnyPlan] = []
    for each in filter(None, texts.split(_BETWEEN)):
        mark, _, text_of_rule = each.rpartition(_MARKED)
        plan = kept.of_text(text_of_rule)
        if mark == _CARRIED:
            carried.append(plan)
        elif mark:
            draining.append((plan, DrainTime.of(mark)))
        else:
            plans.append(plan)
    return plan_together(plans, draining, carried)


class _Plans:
    """Plans of rules over events of some types, by canonical text, so that none is made twice."""

    def __init__(self, types: RecordTypes) -> None:
        self._types = types
        self._kept: dict[str, AnyPlan] = {}

    def of(self, one: LoadedRule) -> AnyPlan:
        return self._kept.get(one.text) or self._keep(one.text, one.rule)

    def of_text(self, text: str) -> AnyPlan:
        return self._kept.get(text) or self._keep(text, _rule(text))

    def _keep(self, text: str, rule: Rule) -> AnyPlan:
        if len(self._kept) >= _MOST_RULES:
            self._kept.clear()
        plan = self._kept[text] = compile_rule(rule, self._types)
        return plan


_plans = lru_cache(maxsize=_MOST_TYPES)(_Plans)


def _rule(text: str) -> Rule:
    (loaded,) = load_rules(text, "the rule set of the batch")
    return loaded.rule
