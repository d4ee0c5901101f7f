"""The partial matches of a version of a rule that others replace, drain or carry over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from spark_cep.compiler.rule_set import RuleSetPlan
from spark_cep.durations import format_duration
from spark_cep.matcher.findings.live import PartialMatch
from spark_cep.model import Coordinates, TakenEvent
from spark_cep.pattern.tree import Rule
from spark_cep.rules.rule_set import RuleSet
from spark_cep.why.account import EndReason, Moment, PartialEnding, SeenEvent, Turn
from spark_cep.why.ledger import Ledger
from spark_cep.why.probes import Chain, chain_of, counted
from spark_cep.why.versions import reason_of_end

#: A chain by the names of steps, whose numbers versions do not share.
_Named = frozenset[tuple[str, Coordinates]]


def replaced(
    ledger: Ledger, version: Rule, rules: RuleSet, live: Iterable[PartialMatch], time: int
) -> None:
    """All partial matches of a version end, as other ``rules`` run from ``time`` on. ``live``: what
    the newer version has, which may carry some over."""
    reason = reason_of_end(rules, version)
    carries = (version.id, version.version) in (
        (one.rule.id, one.rule.version) for one in rules.carried
    )
    newest = rules.by_id[version.id].rule.version if carries else 0
    moved = {_named(each.steps) for each in live if each.rule_version == newest}
    names = ledger.watched.plan.steps
    details = {}
    for chain in ledger.alive:
        details[chain] = reason
        if carries and frozenset((names[step], at) for step, at in chain) in moved:
            details[chain] = f"{reason}, and goes on with it"
        elif carries:
            details[chain] = (
                f"{reason}, and cannot take it over: what led to it has changed, or its time is"
                " over by the new version"
            )
    _end(ledger, details, time, reason)


def drains(ledger: Ledger, rules: RuleSet, time: int) -> None:
    """A version drains from ``time`` on, beside the one that these rules have."""
    rule = ledger.watched.plan.rule
    by = rules.by_id[rule.id].rule.version
    note = f"version {by} replaces version {rule.version}, which finishes what it has begun"
    ledger.add(Moment(time, None, None, note=f"{note} (previous_version: drain)"))


def drained(ledger: Ledger, plan: RuleSetPlan, time: int) -> None:
    """All partial matches of a version that drains end: it has reached its limit."""
    (may_drain,) = plan.draining.values()
    version = f"version {ledger.watched.plan.rule.version}"
    if may_drain.limit_ms is None:
        reason = f"the next version has begun, and {version} ends (previous_version: restart)"
    else:
        limit = format_duration(may_drain.limit_ms)
        reason = f"{version} has drained for as long as it may: {limit} (drain_limit)"
    _end(ledger, dict.fromkeys(ledger.alive, reason), time, reason)


def _end(ledger: Ledger, details: Mapping[Chain, str], time: int, note: str) -> None:
    plan = ledger.watched.plan
    turns = []
    for chain in sorted(details, key=ledger.alive.__getitem__):
        number = ledger.alive[chain]
        ending = PartialEnding(EndReason.REPLACED, time, details[chain])
        ledger.end(number, ending)
        turns.append(Turn(number, counted(plan, chain), stays=False, ending=ending))
    ledger.alive.clear()
    ledger.add(Moment(time, None, None, tuple(turns), note=note))


def take_over(ledger: Ledger, live: Iterable[PartialMatch], time: int) -> None:
    """A version begins at ``time``, with the partial matches of an earlier one."""
    by_chain: dict[Chain, Mapping[str, Sequence[TakenEvent]]] = {
        chain_of(ledger.watched.plan, each.steps): each.steps for each in live
    }
    taken = {
        event.at: event
        for steps in by_chain.values()
        for events in steps.values()
        for event in events
    }
    seen = {
        event.at: ledger.see_earlier(event)
        for event in sorted(taken.values(), key=lambda each: (each.time, each.at))
    }
    numbers = []
    for chain, steps in by_chain.items():
        events: dict[str, tuple[SeenEvent, ...]] = {
            name: tuple(seen[each.at] for each in those) for name, those in steps.items()
        }
        ledger.alive[chain] = ledger.begin(None, events)
        numbers.append(str(ledger.alive[chain]))
    version = ledger.watched.plan.rule.version
    carried = f", and takes over {', '.join(numbers)}" if numbers else ""
    ledger.add(Moment(time, None, None, note=f"version {version} begins{carried}"))


def _named(steps: Mapping[str, Sequence[TakenEvent]]) -> _Named:
    return frozenset((name, event.at) for name, events in steps.items() for event in events)
