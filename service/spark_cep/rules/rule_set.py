"""The rules that run together: one per id, in a stable order, with a fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from spark_cep.compiler.rule_set import DrainTime
from spark_cep.errors import Problem, RuleSetError
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.tree import Rule
from spark_cep.rules.pauses import Pause

#: A rule's id and version.
Version = tuple[str, int]
_Versioned = TypeVar("_Versioned", "LoadedRule", "DrainingVersion")


@dataclass(frozen=True, slots=True)
class DrainingVersion:
    """A version that a newer one has replaced, and that finishes what it has begun, for
    ``limit_ms`` of event time at most, or nothing (``None``). ``until_ms``: the event time at which
    the newer one begins; up to there it goes on as before."""

    loaded: LoadedRule
    limit_ms: int | None
    until_ms: int | None = None

    @property
    def rule(self) -> Rule:
        """The rule, in this version."""
        return self.loaded.rule

    @property
    def time(self) -> DrainTime:
        """The time for which it may go on."""
        return DrainTime(self.limit_ms, self.until_ms)


@dataclass(frozen=True)
class RuleSet:
    """One version of each rule, by id. Rules that are switched off, or ``paused`` (by id), are
    members too. ``draining``: versions that run beside those until they have finished; in the order
    of ids and versions. ``carried``: versions whose partial matches move to the one that runs, in
    the order of ids.

    A set with ``problems`` was read and cannot run: it has all versions, without their wrong parts.
    """

    loaded: tuple[LoadedRule, ...] = ()
    warnings: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()
    paused: Mapping[str, Pause] = field(default_factory=dict)
    draining: tuple[DrainingVersion, ...] = ()
    carried: tuple[LoadedRule, ...] = ()

    @cached_property
    def by_id(self) -> Mapping[str, LoadedRule]:
        """The rules by id, in the order of their ids."""
        return {one.rule.id: one for one in self.loaded}

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, in the order of their ids."""
        return tuple(loaded.rule for loaded in self.loaded)

    @property
    def enabled(self) -> tuple[Rule, ...]:
        """The rules that are switched on, in the order of their ids."""
        return tuple(rule for rule in self.rules if rule.enabled)

    @property
    def running(self) -> tuple[LoadedRule, ...]:
        """The rules that take part: switched on, and not paused. In the order of their ids."""
        return tuple(
            one for one in self.loaded if one.rule.enabled and one.rule.id not in self.paused
        )

    def pausing(self, pauses: Mapping[str, Pause]) -> RuleSet:
        """The set with those of ``pauses``, by id, that are of one of its rules. Nothing of such a
        rule drains or is carried over any more."""
        paused = {
            rule.id: pauses[rule.id]
            for rule in self.rules
            if rule.id in pauses and pauses[rule.id].version in (None, rule.version)
        }
        return replace(self._keeping(lambda one: one.rule.id not in paused), paused=paused)

    def _keeping(self, keep: Callable[[LoadedRule], bool]) -> RuleSet:
        """The set with these of the versions that drain or are carried over."""
        return replace(
            self,
            draining=tuple(each for each in self.draining if keep(each.loaded)),
            carried=tuple(filter(keep, self.carried)),
        )

    @property
    def versions(self) -> Iterator[Version]:
        """Id and version of all that takes part, also of what drains."""
        for one in self.running:
            yield one.rule.id, one.rule.version
        for each in self.draining:
            yield each.rule.id, each.rule.version

    @property
    def texts(self) -> list[str]:
        """The canonical texts, in the order of the ids."""
        return [one.text for one in self.loaded]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical texts, also of versions that drain or are carried over, and of
        the pauses: equal for equal rules, however they were written."""
        texts = [one.text for one in self.loaded]
        texts += [f"drains {one.time}\n{one.loaded.text}" for one in self.draining]
        texts += [f"carried\n{one.text}" for one in self.carried]
        # The audit topic does not say what ends a pause.
        pauses = {rule: replace(each, lifted_from=None) for rule, each in self.paused.items()}
        texts += [f"{rule}: {pause}\n" for rule, pause in sorted(pauses.items())]
        text = "---\n".join(texts)
        return hashlib.sha256(text.encode()).hexdigest()

    def without(self, version: LoadedRule) -> RuleSet:
        """The set without this version of a rule, also among those that drain or are carried
        over."""
        kept = self._keeping(lambda one: one != version)
        loaded = tuple(one for one in self.loaded if one != version)
        return replace(kept, loaded=loaded).pausing(self.paused)

    def without_draining(self, versions: Container[Version]) -> RuleSet:
        """The set without these versions, by id and version, among those that drain."""
        kept = (d for d in self.draining if (d.rule.id, d.rule.version) not in versions)
        return replace(self, draining=tuple(kept))


def versions_by_id(versions: Iterable[_Versioned]) -> dict[str, list[_Versioned]]:
    """Versions by the ids of their rules, in the order given."""
    by_id: dict[str, list[_Versioned]] = {}
    for each in versions:
        by_id.setdefault(each.rule.id, []).append(each)
    return by_id


@dataclass(frozen=True, slots=True)
class RuleFile:
    """A file of rules, or one entry of another source: ``name`` is the source of its problems. With
    a problem none of its rules may run. ``rule``: the id of its rules, where each entry has one."""

    name: str
    loaded: tuple[LoadedRule, ...]
    problems: tuple[Problem, ...] = ()
    rule: str | None = None


def examine(files: Sequence[RuleFile], source: str, allowed: str | None = None) -> RuleSet:
    """The rules of all files of ``source``, with their problems. With a problem none of them may
    run; what is right in them can still be checked. ``allowed``: the advice for a source without
    rules."""
    warnings = []
    if not files:
        warnings.append(Problem(message="there are no rules", source=source, allowed=allowed))
    loaded = [one for file in files for one in file.loaded]
    problems = [problem for file in files for problem in file.problems] + conflicts(loaded)
    if problems:
        return RuleSet(tuple(loaded), tuple(warnings), tuple(problems))
    return assemble(loaded, warnings)


def valid(rules: RuleSet) -> RuleSet:
    """Return the rules; ``RuleSetError`` with every problem found in them."""
    if rules.problems:
        raise RuleSetError(rules.problems)
    return rules


def assemble(loaded: Iterable[LoadedRule], warnings: Iterable[Problem] = ()) -> RuleSet:
    """The set of these rules: of each id the highest version that is enabled, else the highest.

    Versions that give way are warned about. ``RuleSetError`` if one version is there twice.
    """
    several = list(loaded)
    problems = conflicts(several)
    if problems:
        raise RuleSetError(problems)
    chosen: list[LoadedRule] = []
    notes = list(warnings)
    for versions in _by_id(several).values():
        best = max(versions, key=lambda one: (one.rule.enabled, one.rule.version))
        notes += [_gives_way(other, best) for other in versions if other is not best]
        notes += best.warnings
        chosen.append(best)
    return RuleSet(tuple(chosen), tuple(notes))


def conflicts(loaded: Iterable[LoadedRule]) -> list[Problem]:
    """A problem for each rule that is there twice in one version, or in shadow mode above a live
    version, which would give way to it and stop."""
    problems = []
    for versions in _by_id(loaded).values():
        first: dict[int, LoadedRule] = {}
        for one in versions:
            before = first.setdefault(one.rule.version, one)
            if before is not one:
                message = f"version {one.rule.version} of this rule is also in {_where(before)}"
                allowed = "each version of a rule once; a change is a higher version"
                problems.append(one.places.problem(message, ("id",), allowed=allowed))
        problems += _shadowed([one for one in first.values() if one.rule.enabled])
    return problems


def _shadowed(versions: Sequence[LoadedRule]) -> list[Problem]:
    """The problems of the enabled versions of one rule."""
    shadow = max(versions, key=lambda one: one.rule.version, default=None)
    live = [one for one in versions if not one.rule.shadow]
    if shadow is None or not shadow.rule.shadow or not live:
        return []
    other = max(live, key=lambda one: one.rule.version)
    # The one that was read later, which is the one that is new.
    one, before = (
        (other, shadow) if versions.index(other) > versions.index(shadow) else (shadow, other)
    )
    message = (
        f"version {shadow.rule.version} of this rule is in shadow mode, and version"
        f" {other.rule.version} is live: one version of a rule runs, and the other one is in"
        f" {_where(before)}"
    )
    allowed = "an `id` of its own for the rule in shadow mode, or `enabled: false` for one of them"
    return [one.places.problem(message, ("id",), allowed=allowed)]


def _by_id(loaded: Iterable[LoadedRule]) -> dict[str, list[LoadedRule]]:
    return versions_by_id(sorted(loaded, key=lambda one: one.rule.id))


def _gives_way(other: LoadedRule, best: LoadedRule) -> Problem:
    reason = "" if other.rule.enabled or not best.rule.enabled else ", because it is not enabled"
    message = (
        f"version {other.rule.version} of this rule gives way to version {best.rule.version}"
        f" in {_where(best)}{reason}"
    )
    return other.places.problem(message, ("id",), allowed="one version of each rule")


def _where(loaded: LoadedRule) -> str:
    return loaded.places.place(("id",))
