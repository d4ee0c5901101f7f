"""The versions of rules that have run in a test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.tree import Rule
from spark_cep.rules.plans import plan_fingerprint
from spark_cep.rules.rule_set import RuleSet, Version
from spark_cep.why.versions import after_change


class RunVersions:
    """Every version that has run, the newest of each rule last.

    Args:
        rules: The rules that run first.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._versions = {(rule.id, rule.version): rule for rule in rules}
        self._fingerprints: dict[Version, str] = {}

    def __iter__(self) -> Iterator[Rule]:
        """Yield the versions in the order in which they last began."""
        return iter(self._versions.values())

    def changed(self, running: RuleSet, new: Iterable[LoadedRule]) -> RuleSet:
        """The rules that run once ``new`` ones replace those that are ``running``; their versions
        have run from now on. ``RuleSetError`` when a rule is refused."""
        self._fingerprints |= {
            (one.rule.id, one.rule.version): plan_fingerprint(one) for one in running.loaded
        }
        rules = after_change(running, new, self._fingerprints)
        for rule in rules.enabled:
            self._versions.pop((rule.id, rule.version), None)
            self._versions[rule.id, rule.version] = rule
        return rules

    def one(self, rule: str | None, version: int | None) -> Rule:
        """The version of a rule that is meant: the only rule where none is named, its newest
        version where none is. ``ValueError`` when there is no such one."""
        newest = {each.id: each for each in self}
        if rule is None and len(newest) == 1:
            (rule,) = newest
        if rule not in newest:
            raise ValueError(f"say which rule: {', '.join(newest) or 'there is none'}")
        if version is None:
            version = newest[rule].version
        if (rule, version) not in self._versions:
            ran = ", ".join(str(number) for of, number in self._versions if of == rule)
            raise ValueError(f"rule {rule} has no version {version}; there were {ran}")
        return self._versions[rule, version]
