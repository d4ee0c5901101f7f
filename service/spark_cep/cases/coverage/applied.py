"""Events as matchers apply them, for the coverage of rules."""

from __future__ import annotations

from dataclasses import dataclass

from spark_cep.compiler.plan import Plan
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.model import Coordinates, Match, Timeout


@dataclass(frozen=True, slots=True)
class AppliedEvent:
    """An event as it is applied, and the conditions that are true of it."""

    at: Coordinates
    time: int
    key: str | None
    mask: int


def is_of(result: Match | Timeout, plan: Plan | RowPatternPlan) -> bool:
    """Return whether the result is one of the plan's rule."""
    return (result.rule_id, result.rule_version) == (plan.rule.id, plan.rule.version)
