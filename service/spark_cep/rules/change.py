"""From the rules that run and what a source holds now to the rules that run next.

A file, or an entry of another source, is taken whole or not at all: one with a problem is rejected,
and the rules that came from it before, or that it speaks of, run on. So a bad file disturbs no
other rule. The results of a version cannot change, since match ids contain the version: it
is the same in the rules that run, and in those that ran before, or it is rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from spark_cep.errors import Problem
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.tree import PreviousVersion
from spark_cep.rules.plans import plan_fingerprint
from spark_cep.rules.replaced import MOST_DRAINING, Replaced
from spark_cep.rules.rule_set import RuleFile, RuleSet, Version, assemble, conflicts, versions_by_id

#: The problems of a rule against the schemas of what is read.
Check = Callable[[LoadedRule], Iterable[Problem]]


@dataclass(frozen=True, slots=True)
class Change:
    """``rules`` run next; ``rejected`` says what of the source does not, and why."""

    rules: RuleSet
    rejected: tuple[Problem, ...] = ()


def next_rules(
    running: RuleSet,
    files: Sequence[RuleFile],
    check: Check,
    *,
    ran: RuleSet,
    most: int,
    allow_empty: bool,
    fingerprints: Mapping[Version, str],
) -> Change:
    """The rules that run next. ``ran``: those of the last batch, which hold partial matches; those
    that are ``running``, or will from the next batch on, may be others. ``most``: how many may be
    enabled; with more, or with none where there were some and ``allow_empty`` is off, all of
    ``running`` goes on. ``fingerprints``: those of the plans of versions that ran
    before (:func:`~spark_cep.rules.plans.plan_fingerprint`)."""
    replaced = Replaced(ran, running)
    by_id = running.by_id
    newest = _newest(fingerprints)
    judged = []
    for file in files:
        problems = [*file.problems]
        if not problems:
            for one in file.loaded:
                wrong = [*check(one)]
                before = by_id.get(one.rule.id)
                problems += (
                    wrong
                    or _reused(one, before, fingerprints, newest)
                    or _uncarried(one, replaced)
                    or _crowded(one, before, replaced)
                )
        judged.append((file, problems))
    # Bad files first, for others are held against what they leave running. Where two files have the
    # same version, the one that runs is the first.
    judged.sort(key=lambda file: (not file[1], not _runs(file[0], by_id)))
    bad = _BadFiles(by_id)
    good: dict[str, list[LoadedRule]] = {}
    rejected: list[Problem] = []
    for file, problems in judged:
        if not file.problems:
            problems.extend(conflicts(chain(_beside(file, good, bad), file.loaded)))
        if problems:
            bad.add(file, problems)
            rejected += problems
        else:
            for one in file.loaded:
                good.setdefault(one.rule.id, []).append(one)
    kept = [one for rule in by_id for one in bad.leave(rule, good.get(rule, ()))]
    kept = [one for one in kept if not conflicts([*good.get(one.rule.id, ()), one])]
    rules = assemble([*chain.from_iterable(good.values()), *kept])
    if running.rules and not rules.rules and not allow_empty:
        return Change(running, (*rejected, _empty(running)))
    rules = replaced.follow(rules)
    if len(rules.enabled) > most:
        return Change(running, (*rejected, _too_many(rules, most)))
    return Change(rules, tuple(rejected))


class _BadFiles:
    """Files that are rejected, and the ``running`` rules, by id, that stay because of them: rules
    that came from these files, and rules whose ids they name, for an author may have renamed a file
    or moved a rule."""

    def __init__(self, running: Mapping[str, LoadedRule]) -> None:
        self._running = running
        self._places: set[str] = set()
        self._named: set[str] = set()
        #: Of entries that stand for one rule.
        self._entries: set[str] = set()

    def add(self, file: RuleFile, problems: Iterable[Problem]) -> None:
        if file.rule is not None:
            self._entries.add(file.rule)
            return
        self._places.add(_place(file.name))
        self._named |= {one.rule.id for one in file.loaded}
        self._named |= {problem.rule for problem in problems if problem.rule is not None}

    def leave(self, rule: str, versions: Iterable[LoadedRule]) -> list[LoadedRule]:
        """The running version of a rule, if a rejected file keeps it beside these ``versions`` of
        good files. It is not kept if one of them is the same version, or comes from its own
        file."""
        one = self._running.get(rule)
        if one is None or any(each.rule.version == one.rule.version for each in versions):
            return []
        place = _place(one.places.source)
        replaced = any(_place(each.places.source) == place for each in versions)
        left = (place in self._places or rule in self._named) and not replaced
        return [one] if left or rule in self._entries else []


def _beside(
    file: RuleFile, good: Mapping[str, Sequence[LoadedRule]], bad: _BadFiles
) -> Iterator[LoadedRule]:
    """The rules that a file's rules are held against: those of the same ids, and no more, so that
    the cost stays linear."""
    for rule, versions in versions_by_id(file.loaded).items():
        there = good.get(rule, ())
        yield from there
        yield from bad.leave(rule, [*there, *versions])


def _runs(file: RuleFile, running: Mapping[str, LoadedRule]) -> bool:
    return any(
        one.rule.id in running and _place(running[one.rule.id].places.source) == _place(file.name)
        for one in file.loaded
    )


def _place(source: str) -> str:
    """A folder may be mounted elsewhere at the next start."""
    return source.rpartition("/")[2]


def _newest(versions: Iterable[Version]) -> dict[str, int]:
    """The highest version of each id."""
    newest: dict[str, int] = {}
    for rule, version in versions:
        newest[rule] = max(version, newest.get(rule, version))
    return newest


def _reused(
    one: LoadedRule,
    running: LoadedRule | None,
    fingerprints: Mapping[Version, str],
    newest: Mapping[str, int],
) -> list[Problem]:
    rule, version = one.rule.id, one.rule.version
    if running is not None and running.rule.version == version:
        if running.text == one.text:
            return []
        if plan_fingerprint(running) == plan_fingerprint(one):
            return _moved(one, running)
        message = f"version {version} of this rule runs, and means something else"
    elif (rule, version) in fingerprints and fingerprints[rule, version] != plan_fingerprint(one):
        message = f"version {version} of this rule ran before, and meant something else"
    else:
        return []
    known = max(newest.get(rule, version), version)
    allowed = f"a changed rule has a higher version: {known + 1}"
    return [one.places.problem(message, ("version",), allowed=allowed)]


def _moved(one: LoadedRule, running: LoadedRule) -> list[Problem]:
    """The problem that a version would begin at another time than it does: events that were read
    before would count for two versions, or for none."""
    if one.rule.effective_from_ms == running.rule.effective_from_ms:
        return []
    message = f"version {one.rule.version} of this rule is there with another time to begin"
    allowed = f"a higher version: {one.rule.version + 1}"
    return [one.places.problem(message, ("effective_from",), allowed=allowed)]


def _uncarried(one: LoadedRule, replaced: Replaced) -> list[Problem]:
    """The problem that a version would carry over nothing of the one that ran."""
    before = replaced.version(one.rule.id)
    if (
        before is None
        or before.rule.query is None
        or before.rule.version >= one.rule.version
        or one.rule.previous_version is not PreviousVersion.CARRY
    ):
        return []
    message = (
        f"nothing can be carried over: version {before.rule.version} of this rule, which runs, is"
        " in SQL"
    )
    return [one.places.problem(message, ("previous_version",), allowed="`restart` or `drain`")]


def _crowded(one: LoadedRule, before: LoadedRule | None, replaced: Replaced) -> list[Problem]:
    """The problem that too many versions wait or drain already before one that begins later."""
    rule = one.rule
    if before is None or rule.version <= before.rule.version or rule.effective_from_ms is None:
        return []
    draining = replaced.draining(rule)
    if len(draining) <= MOST_DRAINING:
        return []
    waiting = all(each.until_ms is not None for each in draining)
    message = (
        f"{len(draining) - 1} versions of this rule {'' if waiting else 'drain or '}wait for their"
        " time already"
    )
    allowed = f"{MOST_DRAINING} at most: later, when one has {'begun' if waiting else 'drained'}"
    return [one.places.problem(message, ("effective_from",), allowed=allowed)]


def _empty(running: RuleSet) -> Problem:
    count = len(running.rules)
    return Problem(
        message=f"there are no rules any more; the {count} there were run on",
        allowed="rules.allow_empty: true, where all rules may be removed",
    )


def _too_many(rules: RuleSet, most: int) -> Problem:
    return Problem(
        message=f"{len(rules.enabled):,} rules would run; all rules of before run on",
        allowed=f"rules.max_rules {most:,}",
    )
