"""Failures of rules at events."""

from __future__ import annotations

from typing import NamedTuple

from spark_cep.compiler.plan import Plan
from spark_cep.model import Event


class Failure(NamedTuple):
    """A condition, measure or skip strategy that could not be evaluated at ``event``."""

    reason: str
    step: str | None
    event: Event
    detail: str


def limit_failure(plan: Plan, event: Event, dropped: int) -> Failure:
    """A key holds more than its rule allows."""
    limits = plan.rule.limits
    detail = (
        f"more than {limits.partial_matches} partial matches or {limits.events} events"
        f" for one key: {limits.on_limit.value} dropped {dropped} partial matches"
    )
    return Failure("limit_reached", None, event, detail)


def match_limit_failure(plan: Plan, event: Event, dropped: int) -> Failure:
    """``event`` completes more matches of its key than the rule allows."""
    limits = plan.rule.limits
    detail = (
        f"more than {limits.matches} matches of one key and event: {limits.on_limit.value} dropped"
        f" {dropped} matches"
    )
    return Failure("limit_reached", None, event, detail)


def work_limit_failure(plan: Plan, event: Event, work: int, dropped: int) -> Failure:
    """``event`` would cost more work than the rule allows."""
    limits = plan.rule.limits
    detail = (
        f"{work} steps of work of one key and event, more than {limits.work}:"
        f" {limits.on_limit.value} dropped {dropped} partial matches"
    )
    return Failure("limit_reached", None, event, detail)


def skip_failure(plan: Plan, event: Event) -> Failure:
    """The match that ends with ``event`` has no event to skip to."""
    skip = plan.after_match
    detail = f"{skip.strategy.value} {skip.step}: the match has no such event to skip to"
    return Failure("skip_failed", skip.step, event, detail)
