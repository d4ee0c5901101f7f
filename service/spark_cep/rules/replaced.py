"""The versions that new rules replace: those that drain, and those that are carried over.

Only a version that a batch ran under holds anything. So new rules follow those of the last batch: a
version that is replaced before any batch has it leaves nothing, and takes the place of none that
holds partial matches. One that still has events of its own, up to the time at which the next one
begins, runs until then as if a batch had had it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.tree import PreviousVersion, Rule
from spark_cep.rules.rule_set import DrainingVersion, RuleSet, Version, versions_by_id

#: Versions of a rule that drain at a time; with one more, the oldest ends.
MOST_DRAINING: Final = 4
#: Of a rule without a window.
_DRAIN_LIMIT_MS: Final = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class _Before:
    """A rule before another version comes: its version, whether that ``runs``, and what drains and
    is carried over beside it."""

    loaded: LoadedRule | None
    runs: bool
    draining: tuple[DrainingVersion, ...] = ()
    carried: tuple[LoadedRule, ...] = ()

    def draining_under(self, by: Rule) -> tuple[DrainingVersion, ...]:
        """The versions that drain once ``by`` replaces this one: those that drained before, and
        this one, if ``by`` lets it finish. A version that is not older than ``by`` does not
        drain."""
        then = None if self.loaded is None else self.loaded.rule
        draining = [_until_another(old, then, by) for old in self.draining]
        if self.loaded is not None and then is not None and self.runs:
            begins = by.effective_from_ms
            until = begins if _begins_before(then, by) else None
            limit = _drain_limit(then, by)
            if limit is not None or until is not None:
                draining.append(DrainingVersion(self.loaded, limit, until))
        kept = (old for old in draining if old.rule.version < by.version)
        return tuple(sorted(kept, key=lambda old: old.rule.version))


class Replaced:
    """The versions that new rules replace, and what becomes of them. ``ran``: the rules of the last
    batch; ``wanted``: those that the next one would have had."""

    def __init__(self, ran: RuleSet, wanted: RuleSet) -> None:
        running = {one.rule.id: one.rule.version for one in ran.running}
        draining, carried = versions_by_id(ran.draining), versions_by_id(ran.carried)
        self._last = {
            rule: _Before(
                ran.by_id.get(rule),
                rule in running,
                tuple(draining.get(rule, ())),
                tuple(carried.get(rule, ())),
            )
            for rule in (*ran.by_id, *draining)
        }
        had: set[Version] = {*ran.versions}
        new = [d.loaded for d in wanted.draining if (d.rule.id, d.rule.version) not in had]
        new += [one for one in wanted.running if running.get(one.rule.id) != one.rule.version]
        #: Those that no batch has had, in the order of versions.
        self._new = versions_by_id(new)

    def version(self, rule: str) -> LoadedRule | None:
        """The version of a rule that the last batch had."""
        return self._of(rule).loaded

    def draining(self, by: Rule) -> tuple[DrainingVersion, ...]:
        """The versions that drain when ``by`` runs, also where those are too many."""
        before = self._of(by.id)
        for one in self._between(by):
            before = _Before(one, True, before.draining_under(one.rule))
        return before.draining_under(by)

    def follow(self, rules: RuleSet) -> RuleSet:
        """The rules, with what drains and is carried over when they run. Of a rule that is switched
        off or gone nothing does."""
        draining: list[DrainingVersion] = []
        for rule in rules.enabled:
            draining += self.draining(rule)[-MOST_DRAINING:]
        carried = tuple(one for rule in rules.enabled for one in self._carried(rule))
        return replace(rules, draining=tuple(draining), carried=carried)

    def _between(self, by: Rule) -> Iterable[LoadedRule]:
        """The versions that no batch has had, and that run before ``by`` begins."""
        between: list[LoadedRule] = []
        for one in reversed(self._new.get(by.id, ())):
            if one.rule.version < by.version and _begins_before(one.rule, by):
                between.append(one)
                by = one.rule
        return reversed(between)

    def _carried(self, by: Rule) -> tuple[LoadedRule, ...]:
        """The version whose partial matches move to ``by``. As long as that runs, it is named."""
        before = self._of(by.id)
        was = before.loaded
        if was is None or not before.runs or was.rule.version > by.version:
            return ()
        if was.rule.version == by.version:
            return before.carried
        return (was,) if by.previous_version is PreviousVersion.CARRY else ()

    def _of(self, rule: str) -> _Before:
        return self._last.get(rule, _Before(None, False))


def _begins_before(one: Rule, by: Rule) -> bool:
    """Tell whether a version has events of its own until ``by`` begins. It has none where ``by``
    begins at once, or sooner than the version itself."""
    own, begins = one.effective_from_ms, by.effective_from_ms
    return begins is not None and (own is None or own < begins)


def _until_another(old: DrainingVersion, then: Rule | None, now: Rule) -> DrainingVersion:
    """An ``old`` version, draining or going on until a newer one begins, after ``now`` has taken
    the place of ``then``. If ``now`` begins sooner, it is what replaces the old one. Key groups
    know whether that time has come."""
    until = now.effective_from_ms
    if old.until_ms is None:
        return old
    if then and now.version < then.version and old.until_ms == then.effective_from_ms:
        return replace(old, until_ms=until)
    sooner = until is None or until < old.until_ms
    return DrainingVersion(old.loaded, _drain_limit(old.rule, now), until) if sooner else old


def _drain_limit(old: Rule, by: Rule) -> int | None:
    if by.previous_version is not PreviousVersion.DRAIN:
        return None
    return by.drain_limit_ms or old.within.max_ms or _DRAIN_LIMIT_MS
