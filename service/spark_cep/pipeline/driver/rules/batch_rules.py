"""The rules that each batch runs under.

They are a value of the batch: decided once, when Spark has planned it, written down before anything
of it is done, and given to all its tasks. A batch that runs again has the rules that it had.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import RuleSetPlan
from spark_cep.errors import (
    Problem,
    RegistryUnavailableError,
    RuleSetError,
    StartError,
    StateError,
    TakenOverError,
)
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pipeline.driver.checkpoint.failures import RefusedError
from spark_cep.pipeline.driver.lifecycle.retry import StopRequestedError
from spark_cep.pipeline.driver.rules.rule_log import LoggedRules, RuleLog
from spark_cep.rules.overrides import Overrides
from spark_cep.rules.pauses import Pause
from spark_cep.rules.plans import encoded, plan_for
from spark_cep.rules.rule_set import RuleSet, Version
from spark_cep.rules.topic_records import Offsets


@dataclass(frozen=True, slots=True)
class CompiledRules:
    """Rules, their plan over events of ``types``, and the text in which they travel with a
    batch."""

    rules: RuleSet
    types: RecordTypes
    plan: RuleSetPlan
    text: str

    @classmethod
    def of(cls, rules: RuleSet, types: RecordTypes) -> CompiledRules:
        """Compile rules that were not compiled before."""
        return cls(rules, types, plan_for(rules, types), encoded(rules, types))

    @classmethod
    def fitting(
        cls, rules: RuleSet, types: RecordTypes
    ) -> tuple[CompiledRules, tuple[Problem, ...]]:
        """Compile the rules that fit the schemas of events; the problems of the others, which take
        no part."""
        try:
            return cls.of(rules, types), ()
        except RuleSetError:
            problems: list[Problem] = []
            for one in (*rules.loaded, *(each.loaded for each in rules.draining), *rules.carried):
                try:
                    plan_for(RuleSet((one,)), types)
                except RuleSetError as error:
                    problems += (replace(each, rule=one.rule.id) for each in error.problems)
                    rules = rules.without(one)
            return cls.of(rules, types), tuple(problems)


#: Called with the rules of before, those that are written down now, and where their first batch
#: begins; nothing is done under them yet. Raises SparkCepError when it must not be.
Decided = Callable[[RuleSet, LoggedRules, Offsets], None]
#: Called with the rules that the next batch has, whenever they are others, by one thread at a time:
#: those of the last call are the ones that it will have.
Wanted = Callable[[RuleSet], None]
#: Called with a batch that is the first under other rules, or the first of the run.
Begins = Callable[[int, LoggedRules, CompiledRules], None]


class BatchRules:
    """The rules of batches from now on. ``planned``: the batch that was planned and not done, which
    has the rules that were ``logged``. ``overrides``: what is known of them."""

    def __init__(
        self,
        log: RuleLog,
        logged: LoggedRules | None,
        wanted: CompiledRules,
        planned: int | None,
        overrides: Overrides,
        decided: Decided,
        begins: Begins,
        wants: Wanted = lambda _: None,
    ) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._wanted = wanted
        self._overrides = overrides
        self._decided = decided
        self._begins = begins
        self._wants = wants
        wants(wanted.rules)
        self._logged = logged
        #: The rules of the newest batch, without versions that have drained since.
        self._ran = RuleSet()
        #: The newest batch that was asked for, and its rules.
        self._batch, self._rules = -1, wanted
        if logged is not None:
            known = wanted
            if logged.rules.fingerprint != wanted.rules.fingerprint:
                # Versions that the schemas of today do not fit take no part any more.
                known, _ = CompiledRules.fitting(logged.rules, wanted.types)
            self._ran = known.rules
            if planned is not None:
                self._batch, self._rules = planned, known
        #: Whether the listener knows the rules of the newest batch, and whether that is done.
        self._announced = self._done = False
        #: The batch whose attempt by this run is counted, and the rules before a set for which
        #: ``decided`` is still to be called.
        self._counted: int | None = None
        self._before: RuleSet | None = None

    @property
    def wanted(self) -> CompiledRules:
        """The rules that the next batch has."""
        with self._lock:
            return self._wanted

    @property
    def ran(self) -> RuleSet:
        """The rules that key groups know: those of the newest batch, without versions that have
        drained since."""
        with self._lock:
            return self._ran

    @property
    def wanted_and_ran(self) -> tuple[CompiledRules, RuleSet]:
        """:attr:`wanted` and :attr:`ran`, of one moment."""
        with self._lock:
            return self._wanted, self._ran

    @property
    def current(self) -> CompiledRules:
        """The rules of the newest batch."""
        return self._rules

    @property
    def pauses_wait(self) -> bool:
        """Tell whether the next batch has other pauses than the newest one."""
        return self.wanted.rules.paused != self._rules.rules.paused

    def want(
        self, rules: RuleSet, overrides: Overrides, after: RuleSet | None = None
    ) -> bool | None:
        """Have these rules run from the next batch on, except those that are paused. Returns
        whether they differ from those wanted before. Where they were made to follow ``after``, and
        a batch with other rules has begun since, does nothing and returns ``None``."""
        with self._lock:
            if after is not None and after is not self._ran:
                return None
            before, self._overrides = self._wanted.rules, overrides
            # What has drained meanwhile does not come back.
            there = {*self._ran.versions, *before.versions}
            there |= {(rule.id, rule.version) for rule in before.rules}
            drained = {(each.rule.id, each.rule.version) for each in rules.draining} - there
            rules = rules.without_draining(drained)
            return self._want(rules.pausing(overrides.pauses(before.paused)))

    def pause(self, pauses: Mapping[str, Pause]) -> bool:
        """Pause rules, by id, from the next batch on and until somebody resumes them. Returns
        whether one of them was not paused yet."""
        with self._lock:
            before, ends = self._wanted.rules, self._overrides.until_resumed
            made = {rule: ends(pause) for rule, pause in pauses.items()}
            return self._want(before.pausing({**made, **before.paused}))

    def drained(self, groups: Mapping[str, int], key_groups: int) -> None:
        """Leave out, from the next batch on, versions that have drained in all ``key_groups`` key
        groups. ``groups``: in how many each one has, by fingerprint."""
        if not groups:
            return
        done = {
            (plan.rule.id, plan.rule.version)
            for plan in self._rules.plan.plans
            if groups.get(plan.fingerprint, 0) == key_groups
        }
        if not done:
            return
        with self._lock:
            self._want(self._wanted.rules.without_draining(done))
            self._ran = self._ran.without_draining(done)

    def _want(self, rules: RuleSet) -> bool:
        if rules.fingerprint == self._wanted.rules.fingerprint:
            return False
        self._wanted = CompiledRules.of(rules, self._wanted.types)
        self._wants(rules)
        return True

    def of(self, batch: int, offsets: Callable[[], Offsets]) -> CompiledRules:
        """The rules of a batch that is about to run, and begins at ``offsets``. Raises StateError
        when they cannot be written down, and what the listener does."""
        if batch > self._batch:
            rules = self._begin(batch, offsets)
            self._batch, self._rules, self._done = batch, rules, False
        elif self._logged and batch != self._counted and self._logged.is_first(batch, offsets()):
            before = self._log.of(batch - 1) if batch > 0 else None
            self._count_attempt(1)
            if self._logged.batch == batch:
                # The run that wrote it down may have come no further.
                self._before = RuleSet() if before is None else before.rules
        assert self._logged is not None
        if self._before is not None:
            self._decided(self._before, self._logged, offsets())
            self._before = None
        if not self._announced:
            self._begins(batch, self._logged, self._rules)
            self._announced = True
        return self._rules

    def _begin(self, batch: int, offsets: Callable[[], Offsets]) -> CompiledRules:
        """Give the batch the rules that are wanted now, and write them down. Until that is done no
        others can be wanted, for those have to follow these."""
        with self._lock:
            rules, before = self._wanted, self._logged
            if before is None or rules.rules.fingerprint != before.rules.fingerprint:
                self._write(LoggedRules.following(before, batch, offsets(), rules.rules))
                self._before = RuleSet() if before is None else before.rules
                self._counted, self._announced = batch, False
                self._ran = rules.rules
        return rules

    def not_at_fault(self) -> None:
        """The run ends for a reason that no rule has: its attempt at a first batch does not
        count. Raises StateError when that cannot be written down."""
        if self._counted == self._batch and not self._done:
            self._count_attempt(-1)

    @contextmanager
    def attempts_counted(self) -> Iterator[None]:
        """Do not count the attempt where the end says nothing against the rules of the batch in
        flight: a stop, and what Kafka, registry or storage did not do."""
        try:
            yield
        except (
            StopRequestedError,
            StartError,
            RefusedError,
            StateError,
            TakenOverError,
            RegistryUnavailableError,
        ):
            with suppress(StateError):
                self.not_at_fault()
            raise

    def done(self) -> None:
        """The output of the newest batch is committed."""
        self._done = True

    @property
    def fingerprints(self) -> Mapping[Version, str]:
        """The fingerprints of plans of all versions that were written down."""
        return {} if self._logged is None else self._logged.fingerprints

    def against(self, rule: LoadedRule) -> list[Problem]:
        """The problem that a rule is set aside because its first batch failed too often, if it
        is."""
        return [] if self._logged is None else self._logged.against(rule)

    def _count_attempt(self, count: int) -> None:
        assert self._logged is not None
        self._write(replace(self._logged, attempts=self._logged.attempts + count))
        self._counted = self._batch

    def _write(self, logged: LoggedRules) -> None:
        # First of all: the query may be started again after a write that failed.
        self._log.write(logged)
        self._logged = logged
