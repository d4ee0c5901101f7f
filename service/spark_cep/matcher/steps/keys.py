"""The rules of steps of a partitioning, applied to many keys at once."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from spark_cep.columns.vectors import Bytes
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning
from spark_cep.matcher.batch.events import EventTable, Names
from spark_cep.matcher.engine import NewEvents
from spark_cep.matcher.findings.found import (
    Failure,
    limit_failure,
    match_limit_failure,
    skip_failure,
    work_limit_failure,
)
from spark_cep.matcher.findings.live import PartialMatch, live_partials
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.steps.held import Held, rule_states
from spark_cep.matcher.steps.loops import kernel_tables
from spark_cep.matcher.steps.matcher import Findings, StepLoopRun
from spark_cep.matcher.steps.reporting import StepReporter
from spark_cep.matcher.steps.tables import PlanTables
from spark_cep.model import Event


class StepRules:
    """The rules of steps of one partitioning. Holds no state."""

    def __init__(self, partitioning: Partitioning, types: RecordTypes) -> None:
        self.tables = PlanTables(partitioning, types)
        self._plans = partitioning.step_plans
        self._reporter = StepReporter(partitioning, self.tables.slots, types)

    def run(
        self, state: Held, fresh: NewEvents, watermark: int, names: Names
    ) -> Generator[Outputs, None, Held]:
        """See :class:`~spark_cep.matcher.engine.Engine`."""
        self.tables.check(state)
        if not self._plans:
            return state
        run = StepLoopRun(
            self.tables, state, fresh.events, fresh.key, fresh.masks, fresh.mask, watermark
        )
        for findings in run:
            yield from self._outputs(findings, fresh.keys, fresh.events, names)
        return run.held

    def live(
        self, state: Held, events: EventTable, keys: Bytes, names: Names
    ) -> Iterator[PartialMatch]:
        """The partial matches, key by key."""
        for key, rule, rule_state in rule_states(state, events, names, ()):
            yield from live_partials(self._plans[rule], keys.text(key), rule_state)

    def _outputs(
        self, findings: Findings, keys: Bytes, events: EventTable, names: Names
    ) -> Iterator[Outputs]:
        """Yield what was found in pieces of bounded size."""
        yield from self._reporter.columns(findings, keys, events, names)
        outputs = Outputs()
        event = events.objects(names, self.tables.slots)
        for rule, kind, row, detail, work in zip(
            findings.failure_rule.tolist(),
            findings.failure_kind.tolist(),
            findings.failure_event.tolist(),
            findings.failure_detail.tolist(),
            findings.failure_work.tolist(),
            strict=True,
        ):
            failure = self._failure(rule, kind, event(row), detail, work)
            self._reporter.failed(rule, failure, outputs)
        for failed in findings.call_failures:
            bound = self.tables.calls[failed.call]
            detail = f"{bound.atom}: {failed.error}"
            failure = Failure("condition_failed", bound.atom.step, event(failed.event), detail)
            self._reporter.failed(bound.rule, failure, outputs)
        tallies = findings.tallies
        for number in np.flatnonzero(
            tallies["tested"] | tallies["pruned"] | tallies["dropped"]
        ).tolist():
            tally = tallies[number]
            counted = {name: int(tally[name]) for name in tally.dtype.names}
            self._reporter.count(number, counted, outputs)
        yield outputs

    def _failure(self, rule: int, kind: int, event: Event, detail: int, work: int) -> Failure:
        plan = self._plans[rule]
        if kind == kernel_tables.LIMIT_REACHED:
            return limit_failure(plan, event, detail)
        if kind == kernel_tables.MATCH_LIMIT_REACHED:
            return match_limit_failure(plan, event, detail)
        if kind == kernel_tables.WORK_LIMIT_REACHED:
            return work_limit_failure(plan, event, work, detail)
        return skip_failure(plan, event)
