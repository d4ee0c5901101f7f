"""The change from one rule set to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.rules.pauses import Pause
from spark_cep.rules.rule_set import DrainingVersion, RuleSet


@dataclass(frozen=True, slots=True)
class SetChange:
    """The rules that came, changed (before, after), went, were paused, were resumed, began to
    drain, have drained, and carry over other versions than before, each in the order of their
    ids."""

    came: tuple[LoadedRule, ...] = ()
    changed: tuple[tuple[LoadedRule, LoadedRule], ...] = ()
    went: tuple[LoadedRule, ...] = ()
    paused: tuple[tuple[LoadedRule, Pause], ...] = ()
    resumed: tuple[LoadedRule, ...] = ()
    draining: tuple[DrainingVersion, ...] = ()
    drained: tuple[DrainingVersion, ...] = ()
    carried: tuple[tuple[LoadedRule, tuple[LoadedRule, ...]], ...] = ()

    @classmethod
    def between(cls, before: RuleSet, after: RuleSet) -> SetChange:
        """From one set to the next. A rule that goes while it is paused is not resumed."""
        old, new = ({one.rule.id: one for one in each.loaded} for each in (before, after))
        pauses = ((one, after.paused.get(rule)) for rule, one in new.items())
        # Some of them may go on for another time.
        still = {each.loaded.text for each in after.draining}
        return cls(
            came=tuple(one for rule, one in new.items() if rule not in old),
            changed=tuple(
                (old[rule], one)
                for rule, one in new.items()
                if rule in old and old[rule].rule != one.rule
            ),
            went=tuple(one for rule, one in old.items() if rule not in new),
            paused=tuple(
                (one, pause)
                for one, pause in pauses
                if pause is not None and before.paused.get(one.rule.id) != pause
            ),
            resumed=tuple(
                one
                for rule, one in new.items()
                if rule in before.paused and rule not in after.paused
            ),
            draining=_others(after.draining, before.draining),
            drained=tuple(each for each in before.draining if each.loaded.text not in still),
            carried=tuple(
                (one, _carried(after, rule))
                for rule, one in new.items()
                if [each.text for each in _carried(before, rule)]
                != [each.text for each in _carried(after, rule)]
            ),
        )


def _others(
    drains: Sequence[DrainingVersion], than: Sequence[DrainingVersion]
) -> tuple[DrainingVersion, ...]:
    known = {(each.loaded.text, each.time) for each in than}
    return tuple(each for each in drains if (each.loaded.text, each.time) not in known)


def _carried(rules: RuleSet, rule: str) -> tuple[LoadedRule, ...]:
    return tuple(one for one in rules.carried if one.rule.id == rule)
