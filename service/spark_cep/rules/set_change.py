"""The changes from one rule set to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.rules.pauses import Pause
from spark_cep.rules.rule_set import DrainingVersion, RuleSet, versions_by_id

ChangeKind = Literal[
    "added", "changed", "removed", "paused", "resumed", "draining", "drained", "carried"
]


@dataclass(frozen=True, slots=True)
class RuleChange:
    """A change of one rule. ``before``: the version that one has changed from; ``pause``: that of a
    paused one; ``draining``: the time of a version that begins to drain; ``carried``: the versions
    whose partial matches move to this one."""

    kind: ChangeKind
    loaded: LoadedRule
    before: LoadedRule | None = None
    pause: Pause | None = None
    draining: DrainingVersion | None = None
    carried: tuple[LoadedRule, ...] = ()


def changes_between(before: RuleSet, after: RuleSet) -> list[RuleChange]:
    """The changes by kind, those of a kind in the order of ids. A rule that goes while it is paused
    is not resumed."""
    old, new = before.by_id, after.by_id
    # Some of those that drain may go on for another time.
    known = {(each.loaded.text, each.time) for each in before.draining}
    still = {each.loaded.text for each in after.draining}
    carried = versions_by_id(after.carried)
    carried_before = versions_by_id(before.carried)
    changes = [RuleChange("added", one) for rule, one in new.items() if rule not in old]
    changes += [
        RuleChange("changed", one, before=old[rule])
        for rule, one in new.items()
        if rule in old and old[rule].rule != one.rule
    ]
    changes += [RuleChange("removed", one) for rule, one in old.items() if rule not in new]
    changes += [
        RuleChange("paused", one, pause=after.paused[rule])
        for rule, one in new.items()
        if rule in after.paused and before.paused.get(rule) != after.paused[rule]
    ]
    changes += [
        RuleChange("resumed", one)
        for rule, one in new.items()
        if rule in before.paused and rule not in after.paused
    ]
    changes += [
        RuleChange("drained", each.loaded)
        for each in before.draining
        if each.loaded.text not in still
    ]
    changes += [
        RuleChange("carried", one, carried=tuple(carried.get(rule, ())))
        for rule, one in new.items()
        if [each.text for each in carried_before.get(rule, ())]
        != [each.text for each in carried.get(rule, ())]
    ]
    changes += [
        RuleChange("draining", each.loaded, draining=each)
        for each in after.draining
        if (each.loaded.text, each.time) not in known
    ]
    return changes
