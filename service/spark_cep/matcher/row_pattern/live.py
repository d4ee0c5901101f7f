"""What one key's state holds of one rule in SQL, in the author's terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.compiler.row_pattern.program import Label
from spark_cep.matcher.findings.live import PartialMatch
from spark_cep.matcher.row_pattern.reporting import steps_of
from spark_cep.matcher.row_pattern.state import KeyState, Thread
from spark_cep.model import TakenEvent


def live_attempt(
    plan: RowPatternPlan, key: str | None, state: KeyState, deadline: int | None
) -> Iterator[PartialMatch]:
    """The ways in which the attempt under way has taken rows, the preferred first, and the match
    that is not final yet. Ways that have taken the same rows as the same variables are one."""
    attempt = state.attempt
    if attempt is None:
        return
    ways: dict[Sequence[int], list[Thread]] = {}
    for thread in attempt.threads:
        if thread.labels:
            ways.setdefault(thread.labels, []).append(thread)
    matched = attempt.found is not None
    for labels, threads in ways.items():
        waits = dict.fromkeys(_waits_for(plan, threads))
        yield PartialMatch(
            plan.rule.id,
            plan.rule.version,
            key,
            _steps(plan, state, attempt.start, labels),
            deadline,
            tuple(waits),
            already_matched=matched,
        )
    if attempt.found is not None:
        steps = _steps(plan, state, attempt.start, attempt.found.labels)
        rule = plan.rule
        yield PartialMatch(rule.id, rule.version, key, steps, deadline, held_back=True)


def _waits_for(plan: RowPatternPlan, threads: Sequence[Thread]) -> Iterator[str]:
    for thread in threads:
        instruction = plan.program.instructions[thread.at]
        if isinstance(instruction, Label):
            yield plan.query.variables[instruction.variable]


def _steps(
    plan: RowPatternPlan, state: KeyState, start: int, labels: Sequence[int]
) -> Mapping[str, Sequence[TakenEvent]]:
    names = [plan.query.variables[label] for label in labels]
    return steps_of(plan, state.rows_from(start, len(labels)), names)
