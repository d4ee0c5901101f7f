"""Versions of a rule, one after the other: what runs under a rule set, as far as the account of one
version needs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import RuleSetPlan, compile_rule, plan_together
from spark_cep.errors import RuleSetError
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.tree import Rule
from spark_cep.rules.change import next_rules
from spark_cep.rules.rule_set import RuleFile, RuleSet, Version
from spark_cep.why.parts import WatchedPlan


@dataclass(frozen=True)
class Stage:
    """The ``plan`` that runs under a rule set: the version that is accounted for, alone and
    ``watched``; where it does not run, the rule's other versions with its key, of which it may take
    partial matches over, or to which it may leave some."""

    plan: RuleSetPlan
    watched: WatchedPlan | None

    @classmethod
    def alone(cls, rule: Rule, types: RecordTypes) -> Stage:
        """The version as the only rule that there is."""
        watched = WatchedPlan.of(compile_rule(rule, types))
        return cls(watched.together, watched)

    @classmethod
    def of(cls, rules: RuleSet, version: Rule, types: RecordTypes) -> Stage:
        """The stage in which these rules run."""
        running = [one.rule for one in rules.running if one.rule.id == version.id]
        draining = [each for each in rules.draining if each.rule.id == version.id]
        carried = [one.rule for one in rules.carried if one.rule.id == version.id]
        earlier = [compile_rule(rule, types) for rule in carried]
        for rule in running:
            if rule.version == version.version:
                watched = WatchedPlan.of(compile_rule(rule, types))
                moves = {watched.plan.fingerprint: earlier} if earlier else {}
                return cls(replace(watched.together, carried=moves), watched)
        for each in draining:
            if each.rule.version == version.version:
                watched = WatchedPlan.of(compile_rule(each.rule, types), drains=True)
                times = {watched.plan.fingerprint: each.time}
                return cls(replace(watched.together, draining=times), watched)
        others = plan_together(
            [compile_rule(rule, types) for rule in running if _same_key(rule, version)],
            [
                (compile_rule(each.rule, types), each.time)
                for each in draining
                if _same_key(each.rule, version)
            ],
            earlier,
        )
        return cls(others, None)


def _same_key(one: Rule, other: Rule) -> bool:
    return [each.canonical for each in one.key] == [each.canonical for each in other.key]


def after_change(
    running: RuleSet,
    new: Iterable[LoadedRule],
    fingerprints: Mapping[Version, str],
) -> RuleSet:
    """The rules that run once a source holds ``new`` ones, as the job has it; ``fingerprints`` as
    in :func:`~spark_cep.rules.change.next_rules`. Raises RuleSetError with what is rejected."""
    change = next_rules(
        running,
        [RuleFile("", tuple(new))],
        lambda _: (),
        ran=running,
        most=1 << 30,
        allow_empty=True,
        fingerprints=fingerprints,
    )
    if change.rejected:
        raise RuleSetError(change.rejected)
    return change.rules


def reason_of_end(rules: RuleSet, version: Rule) -> str:
    """The reason why a version does not run, nor drain, under these rules."""
    now = rules.by_id.get(version.id)
    was = f"version {version.version}"
    if now is None:
        return f"{was} is gone: the rule was removed"
    if not now.rule.enabled:
        return f"{was} is gone: the rule was switched off"
    by = f"version {now.rule.version} has replaced {was}"
    return f"{by} (previous_version: {now.rule.previous_version.value})"
