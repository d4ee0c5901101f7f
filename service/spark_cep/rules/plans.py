"""The plans of a batch's rules, and the text in which they travel to its tasks.

The driver compiles each rule once. A process of Spark's gets the plans as data
(:mod:`spark_cep.compiler.plan_data`), together and compressed: 20 to 55 KB for a thousand rules of
the same make. It makes a plan of each once, however often the rules around it change.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from functools import cached_property, lru_cache

from spark_cep.compiler.plan_data import PLAN_DATA
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import AnyPlan, DrainTime, RuleSetPlan, compile_rule, plan_together
from spark_cep.packing import pack, unpack
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.rules.rule_set import RuleSet

_MOST_RULES = 4_096
_MOST_SETS = 4
#: Of a process: that of its job, and others in tests.
_MOST_TYPES = 4


def encoded(rules: RuleSet, types: RecordTypes) -> str:
    """The plan of the rules over events of these types, as ASCII, for :func:`plan_of`."""
    plans = _plans(types)
    data = (
        [plans.of(one).data for one in rules.running],
        [(plans.of(each.loaded).data, *each.time) for each in rules.draining],
        [plans.of(one).data for one in rules.carried],
    )
    return base64.b64encode(zlib.compress(pack(data))).decode()


def plan_for(rules: RuleSet, types: RecordTypes) -> RuleSetPlan:
    """The plan of the rules that take part, in their order, and of the versions that drain or are
    carried over, over events of these types."""
    plans = _plans(types)
    return plan_together(
        [plans.of(one).plan for one in rules.running],
        [(plans.of(each.loaded).plan, each.time) for each in rules.draining],
        [plans.of(one).plan for one in rules.carried],
    )


def plan_fingerprint(one: LoadedRule) -> str:
    """The fingerprint of a rule's plan: equal for texts that differ only in descriptions, modes or
    output, so that their results are the same."""
    return _plans(RecordTypes()).of(one).plan.fingerprint


@lru_cache(maxsize=_MOST_SETS)
def plan_of(text: str) -> RuleSetPlan:
    """The plan that :func:`encoded` gave as ``text``, in any process. StateError where the plans
    are of another version's format."""
    running, draining, carried = unpack(zlib.decompress(base64.b64decode(text)))
    return plan_together(
        map(_plan, running),
        [(_plan(data), DrainTime(*time)) for data, *time in draining],
        map(_plan, carried),
    )


@lru_cache(maxsize=_MOST_RULES)
def _plan(data: bytes) -> AnyPlan:
    plan: AnyPlan = PLAN_DATA.tree_of(data)
    return plan


@dataclass(frozen=True)
class _Compiled:
    """The plan of one rule, and the same as data."""

    plan: AnyPlan

    @cached_property
    def data(self) -> bytes:
        return PLAN_DATA.bytes_of(self.plan)


class _Plans:
    """Plans of rules over events of some types, by canonical text, so that none is made twice."""

    def __init__(self, types: RecordTypes) -> None:
        self._types = types
        self._kept: dict[str, _Compiled] = {}

    def of(self, one: LoadedRule) -> _Compiled:
        kept = self._kept.get(one.text)
        if kept is None:
            if len(self._kept) >= _MOST_RULES:
                self._kept.clear()
            kept = self._kept[one.text] = _Compiled(compile_rule(one.rule, self._types))
        return kept


_plans = lru_cache(maxsize=_MOST_TYPES)(_Plans)
