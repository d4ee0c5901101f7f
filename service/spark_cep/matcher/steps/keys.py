"""The rules of steps of a partitioning, applied to many keys at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator

import numpy as np

from spark_cep.columns.vectors import Bytes
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning
from spark_cep.matcher.batch.events import EventTable, Names
from spark_cep.matcher.engine import MOST_TAKEN_EVENTS, NewEvents
from spark_cep.matcher.findings.chains import Chains
from spark_cep.matcher.findings.found import (
    Failure,
    limit_failure,
    match_limit_failure,
    skip_failure,
)
from spark_cep.matcher.findings.live import PartialMatch, live_partials
from spark_cep.matcher.findings.look_back import LookBacks
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import Taken
from spark_cep.matcher.findings.results import ResultKind, Results
from spark_cep.matcher.steps.held import Held, rule_states
from spark_cep.matcher.steps.loops import kernel_tables
from spark_cep.matcher.steps.matcher import Findings, StepLoopRun
from spark_cep.matcher.steps.reporting import StepReporter
from spark_cep.matcher.steps.tables import PlanTables
from spark_cep.model import Event


class StepRules:
    """The rules of steps of one partitioning. Holds no state.

    With ``columns``, what rules find stays columns where they emit nothing but coordinates."""

    def __init__(self, partitioning: Partitioning, types: RecordTypes, *, columns: bool) -> None:
        self.tables = PlanTables(partitioning, types)
        self._plans = partitioning.step_plans
        self._reporters = [
            StepReporter(plan, LookBacks(plan, partitioning.slots, types)) for plan in self._plans
        ]
        self._plain = np.array([columns and reporter.plain for reporter in self._reporters], bool)

    def run(
        self, state: Held, fresh: NewEvents, watermark: int, names: Names
    ) -> Generator[Outputs, None, Held]:
        """See :class:`~spark_cep.matcher.engine.Engine`."""
        run = StepLoopRun(
            self.tables, state, fresh.events, fresh.key, fresh.masks, fresh.mask, watermark
        )
        for findings in run:
            yield from self._outputs(findings, fresh.keys, fresh.events, names)
        held, kept = run.held, run.kept_events
        for table in (held.partials, held.finished):
            table["first"] = kept[table["first"]]
        held.nodes["event"] = kept[held.nodes["event"]]
        return held

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
        if self._plain.any():
            yield from self._columns(findings.of_rules(self._plain), keys, events, names)
            findings = findings.of_rules(~self._plain)
        outputs, size = Outputs(), 0
        event = events.objects(names, self.tables.slots)
        reporters = self._reporters
        for key, rule, time, (first, last, length) in zip(
            findings.match_key.tolist(),
            findings.match_rule.tolist(),
            findings.match_time.tolist(),
            _taken(findings.match_chains, event),
            strict=True,
        ):
            reporters[rule].matched(keys.text(key), first, last, time, outputs)
            size += length
            if size >= MOST_TAKEN_EVENTS:
                yield outputs
                outputs, size = Outputs(), 0
        for key, rule, deadline, matched, (first, last, length) in zip(
            findings.timeout_key.tolist(),
            findings.timeout_rule.tolist(),
            findings.timeout_deadline.tolist(),
            findings.timeout_matched.tolist(),
            _taken(findings.timeout_chains, event),
            strict=True,
        ):
            reporters[rule].timed_out(
                keys.text(key), first, last, deadline, outputs, matched=bool(matched)
            )
            size += length
            if size >= MOST_TAKEN_EVENTS:
                yield outputs
                outputs, size = Outputs(), 0
        for rule, kind, row, detail in zip(
            findings.failure_rule.tolist(),
            findings.failure_kind.tolist(),
            findings.failure_event.tolist(),
            findings.failure_detail.tolist(),
            strict=True,
        ):
            reporters[rule].failed(self._failure(rule, kind, event(row), detail), outputs)
        for failed in findings.call_failures:
            bound = self.tables.calls[failed.call]
            detail = f"{bound.atom}: {failed.error}"
            failure = Failure("condition_failed", bound.atom.step, event(failed.event), detail)
            reporters[bound.rule].failed(failure, outputs)
        tallies = findings.tallies
        for number in np.flatnonzero(tallies["tested"] | tallies["pruned"] | tallies["dropped"]):
            tally = tallies[number]
            counted = {name: int(tally[name]) for name in tally.dtype.names}
            reporters[number].count(counted, outputs)
        yield outputs

    def _columns(
        self, findings: Findings, keys: Bytes, events: EventTable, names: Names
    ) -> Iterator[Outputs]:
        """Yield what the plain rules found."""
        nothing = np.zeros(len(findings.match_rule), np.uint8)
        matches = Results.of(
            ResultKind.MATCH, self._plans, keys, names, findings.match_rule, findings.match_key,
            findings.match_time, nothing, findings.match_chains, events,
        )  # fmt: skip
        timeouts = Results.of(
            ResultKind.TIMEOUT, self._plans, keys, names, findings.timeout_rule,
            findings.timeout_key, findings.timeout_deadline, findings.timeout_matched,
            findings.timeout_chains, events,
        )  # fmt: skip
        for results, what in ((matches, "matched"), (timeouts, "timed_out")):
            # Versions of a rule are counted together.
            counts: Counter[tuple[str, str]] = Counter()
            for number, count in enumerate(np.bincount(results.rule).tolist()):
                if count:
                    counts[self._plans[number].rule.id, what] += count
            for piece in results.cut(MOST_TAKEN_EVENTS):
                yield Outputs(results=[piece], counts=counts)
                counts = Counter()

    def _failure(self, rule: int, kind: int, event: Event, detail: int) -> Failure:
        plan = self._plans[rule]
        if kind == kernel_tables.LIMIT_REACHED:
            return limit_failure(plan, event, detail)
        if kind == kernel_tables.MATCH_LIMIT_REACHED:
            return match_limit_failure(plan, event, detail)
        return skip_failure(plan, event)


def _taken(chains: Chains, event: Callable[[int], Event]) -> Iterator[tuple[Event, Taken, int]]:
    """Each chain: its first event, its end, and its length."""
    for number in range(len(chains.ends)):
        taken = [(step, event(row)) for step, row in chains.chain(number)]
        last = None
        for step, one in taken:
            last = Taken(last, step, one)
        assert last is not None
        yield taken[0][1], last, len(taken)
