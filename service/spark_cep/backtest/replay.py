"""A replay: a rule set over recorded events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import nsmallest

from spark_cep.backtest.tallies import RuleTally, tallies_of
from spark_cep.compiler.rule_set import RuleSetPlan
from spark_cep.config import Settings
from spark_cep.config.engine import Time
from spark_cep.errors import Problem
from spark_cep.matcher.findings.live import PartialMatch
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.row_pattern.prepared import prepare as prepare_row_patterns
from spark_cep.matcher.steps.matcher import prepare as prepare_steps
from spark_cep.model import DeadLetter
from spark_cep.pipeline.decode.decoder_plan import record_types
from spark_cep.pipeline.driver.rules.job_plan import check_rules, spelled_out
from spark_cep.pipeline.wire.new_schemas import NewSchemasError
from spark_cep.recorded.events import RecordedBatch, RecordedEvents
from spark_cep.recorded.merging import AtEnd
from spark_cep.rules.plans import encoded, plan_for
from spark_cep.rules.rule_set import RuleFile, RuleSet
from spark_cep.runner.batch import BatchResults, RunSettings
from spark_cep.runner.runner import Runner

#: One process has no use for more.
_KEY_GROUPS = 1
_LONGEST = 10

#: The parts of production that a replay does not have, and what that means.
NOT_SIMULATED = {
    "processing time": "no `emitted_at`; `time.max_ahead` refuses nothing",
    "idle inputs": "time does not move without events, as `time.advance_when_idle` makes it",
    "cuts of batches": "the job takes late events that are in one batch with what they are late by",
    "changes while the job runs": "new versions, pauses, the circuit breaker",
    "bounds of Kafka": "no result is too large for its topic",
}


def run_settings(settings: Settings | None, allowed_disorder_ms: int | None = None) -> RunSettings:
    """The settings that results depend on: the job's, or their defaults."""
    time = Time() if settings is None else settings.time
    late = "relevant" if settings is None else settings.outputs.late_events
    disorder = time.allowed_disorder if allowed_disorder_ms is None else allowed_disorder_ms
    return RunSettings(time.watermark, disorder, late, _KEY_GROUPS)


def make_ready(plan: RuleSetPlan) -> None:
    """Compile, or load, the loops of the matchers that these rules need: what a rule costs is to
    be the time of its events alone."""
    if any(part.step_plans for part in plan.partitionings):
        prepare_steps()
    if any(part.row_pattern_rules for part in plan.partitionings):
        prepare_row_patterns()


@dataclass
class ReplayedBatch:
    """The results of a batch. ``letters``: all dead letters, those of reading first; ``records``:
    how many it had; ``read``: bytes of all recordings that have been read by now; ``tallies``: the
    counts of its results, by rule id."""

    results: BatchResults
    letters: list[DeadLetter]
    records: int
    read: int
    tallies: dict[str, RuleTally]

    @cached_property
    def objects(self) -> Outputs:
        """The results as objects."""
        return self.results.outputs.as_objects()


@dataclass
class OpenMatches:
    """The partial matches that are open at the end: how many of each rule, and those that have been
    open longest."""

    counts: Counter[str] = field(default_factory=Counter)
    longest: list[PartialMatch] = field(default_factory=list)

    @classmethod
    def of(cls, runner: Runner, live: Mapping[tuple[str, int], int]) -> OpenMatches:
        """Those of a runner; ``live``: as its last batch counted them."""
        counts = Counter[str]()
        for (rule, _), count in live.items():
            counts[rule] += count
        return cls(counts, nsmallest(_LONGEST, runner.oldest(_LONGEST), key=begun))

    def add(self, more: OpenMatches) -> None:
        """Take in those of other keys."""
        self.counts.update(more.counts)
        self.longest = nsmallest(_LONGEST, [*self.longest, *more.longest], key=begun)


def begun(partial: PartialMatch) -> int:
    """The event time at which a partial match began."""
    return min(event.time for events in partial.steps.values() for event in events)


class Replay:
    """Runs rules over recorded events.

    Raises RuleSetError where a rule does not fit the events, SchemaError where a column cannot be
    read.
    """

    def __init__(self, rules: RuleSet, events: RecordedEvents, settings: RunSettings) -> None:
        self.rules, self.events, self.settings = rules, events, settings
        #: Warnings of the rules, also those that the schemas give.
        self.warnings: tuple[Problem, ...] = (
            *rules.warnings,
            *check_rules(rules, events.format, ends=True),
        )
        inputs, plan = events.inputs(settings.key_groups), self._plan()
        make_ready(plan)
        self._runner = Runner(plan, inputs, settings, columns=True)
        self._live: Mapping[tuple[str, int], int] = {}

    def run(self, at_end: AtEnd = "wait") -> Iterator[ReplayedBatch]:
        """The results, batch by batch. Raises ConfigurationError for what cannot be read."""
        for batch in self.events.batches(self.settings, at_end):
            yield self.apply(batch)

    def apply(self, batch: RecordedBatch) -> ReplayedBatch:
        """The results of one batch of the events."""
        while True:
            try:
                results = self._runner.apply(batch.batch)
                break
            except NewSchemasError as error:
                self.events.learn(error)
                self._runner.use(self._plan(), self.events.inputs(self.settings.key_groups))
        self._live = results.live
        letters = [*batch.letters, *results.outputs.dead_letters]
        tallies = tallies_of(results.outputs.results)
        return ReplayedBatch(results, letters, batch.records, batch.read, tallies)

    def open_matches(self) -> OpenMatches:
        """The partial matches that are open now."""
        return OpenMatches.of(self._runner, self._live)

    @property
    def plan_text(self) -> str:
        """The plan, as :func:`spark_cep.rules.plans.plan_of` reads it."""
        return encoded(self.spelled, record_types(self.events.format))

    def _plan(self) -> RuleSetPlan:
        return plan_for(self.spelled, record_types(self.events.format))

    @property
    def spelled(self) -> RuleSet:
        """The rules with their columns written out."""
        (spelled,) = spelled_out([RuleFile("", self.rules.loaded)], self.events.format, RuleSet())
        return replace(self.rules, loaded=spelled.loaded)
