"""Problems and warnings of rules, with the types of their events where these are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spark_cep.errors import Problem
from spark_cep.pattern.document.allowed import reason_for, unused_comments
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.several_types import InputRecord
from spark_cep.pattern.type_check import silenced_type_warnings, type_check, type_warnings
from spark_cep.rules.rule_set import RuleSet


@dataclass(frozen=True, slots=True)
class RuleFindings:
    """Reasons for which rules cannot run, warnings, and the warnings that comments allow, each with
    the reason that its comment gives."""

    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    silenced: tuple[tuple[Problem, str], ...]


def findings_of(
    rules: RuleSet, records_of: Callable[[LoadedRule], Sequence[InputRecord]]
) -> RuleFindings:
    """Everything wrong with the rules. ``records_of``: the record types of a rule's events; a rule
    without is not held against types."""
    problems, warnings = list(rules.problems), list(rules.warnings)
    silenced: list[tuple[LoadedRule, Problem]] = []
    typed = []
    for one in rules.loaded:
        records = records_of(one)
        typed.append(bool(records))
        silenced += ((one, each) for each in one.silenced)
        if records:
            problems += type_check(one, records)
            warnings += type_warnings(one, records)
            silenced += ((one, each) for each in silenced_type_warnings(one, records))
    if not problems:
        for one, held in zip(rules.loaded, typed, strict=True):
            codes = frozenset(each.code for of, each in silenced if of is one and each.code)
            warnings += unused_comments(one.allowed, codes, one.places, typed=held)
    allowed = ((each, reason_for(one.allowed, each.code or "")) for one, each in silenced)
    return RuleFindings(tuple(problems), tuple(warnings), tuple(allowed))
