"""The rules that a run begins with: those of their source, held against those that the checkpoint
has run with.

A first start refuses rules with a problem, and waits for a source that does not answer. A job that
has run before goes on: what is wrong is rejected, and what ran before runs, if the schemas of what
is read still fit it. A batch that is planned and not done has the rules that were logged for it;
but where it is the first in which they see an event and three runs have failed in it, the rules
that are new are set aside. The output of the other rules does not depend on
them, so what is already written of it fits the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas
from spark_cep.config import Settings
from spark_cep.errors import ConfigurationError, RuleSetError, RulesUnavailableError
from spark_cep.observability.logs import logger
from spark_cep.pipeline.decode.decoder_plan import record_types
from spark_cep.pipeline.driver.checkpoint.files import CheckpointFiles
from spark_cep.pipeline.driver.checkpoint.partly_written import PartlyWritten
from spark_cep.pipeline.driver.lifecycle.retry import RetryPolicy, ask_once
from spark_cep.pipeline.driver.rules.batch_rules import BatchRules, CompiledRules, Decided
from spark_cep.pipeline.driver.rules.job_plan import (
    check_rules,
    problems_of,
    spelled_out,
    warnings_of,
    within_limit,
)
from spark_cep.pipeline.driver.rules.rule_log import LOG, LoggedRules, RuleLog, digest
from spark_cep.pipeline.driver.rules.rule_status import RuleStatus
from spark_cep.pipeline.spark.local_folder import local_folder
from spark_cep.rules.change import Change, next_rules
from spark_cep.rules.overrides import Overrides, OverrideTopic
from spark_cep.rules.pauses import Pause
from spark_cep.rules.rule_set import RuleFile, RuleSet, examine, valid
from spark_cep.rules.sources.source import RuleSource

_log = logger(__name__)
#: Runs that may fail in the first batch under other rules.
_MOST_ATTEMPTS = 3
#: Who pauses the old version of a rule that is set aside.
_BY = "spark-cep"


class RulesAtStart:
    """Reads the source at once; ``retry`` says how long it is waited for where the checkpoint
    cannot know rules that could run instead. Raises RuleSetError, and ConfigurationError for too
    many rules, there alone; also ConfigurationError where the settings of the source are wrong."""

    def __init__(
        self,
        settings: Settings,
        source: RuleSource,
        status: RuleStatus,
        retry: RetryPolicy = ask_once,
    ) -> None:
        self._settings = settings
        self.source = source
        self._retry = retry
        self._status = status
        self._wrong: RuleSetError | ConfigurationError | None = None
        #: What the source holds; ``None``: it could not be read.
        self.files: Sequence[RuleFile] | None = None
        #: What operators have decided beside it; ``None``: that could not be read.
        self.overrides: Overrides | None = None
        self._rules = RuleSet()
        folder = local_folder(str(settings.state.checkpoint))
        self._first = folder is not None and not (folder / LOG).is_dir()
        self._read(retry if self._first else ask_once)

    def _read(self, ask: RetryPolicy) -> None:
        source, status = self.source, self._status
        try:
            self.files = ask(source.read) or ()
        except RuleSetError as error:
            self._went_wrong(error)
            status.not_read(error.problems)
            return
        status.read()
        try:
            rules = valid(examine(self.files, source.name))
            self._rules = within_limit(rules, self._settings, source)
        except (RuleSetError, ConfigurationError) as error:
            self._went_wrong(error)
        status.rules = self._rules

    def check(self, schemas: ResolvedSchemas) -> None:
        """Hold the rules against what is read. Raises RuleSetError as the constructor does, and
        SchemaError where columns are not of types that can be read."""
        self._schemas = schemas
        if self._wrong is not None:
            return
        try:
            check_rules(self._rules, schemas, ends=self._settings.trigger.ends)
        except RuleSetError as error:
            self._went_wrong(error)

    def decide(
        self,
        checkpoint: CheckpointFiles,
        begun: PartlyWritten | None,
        topic: OverrideTopic,
        decided: Decided,
    ) -> BatchRules:
        """The rules of the run's batches. ``begun``: the batch that is planned and not done, if
        some of its output is there; ``topic``: of overrides; ``decided`` is called for each set.
        Raises RuleSetError, and StateError where the checkpoint is damaged."""
        log, position = RuleLog(checkpoint), checkpoint.position()
        if position is not None:
            log.forget_after(position.batch)
        logged = None if position is None else log.of(position.batch)
        uncommitted = position.batch if position is not None and position.uncommitted else None
        ask = self._retry if logged is None else ask_once
        if logged is None and isinstance(self._wrong, RulesUnavailableError):
            # Of a checkpoint elsewhere that is known only now.
            self._wrong = None
            self._read(ask)
            self.check(self._schemas)
        if logged is not None and self.files is not None:
            self._read_again()
        away = [] if self._wrong is None or self.files is not None else self._wrong.problems
        try:
            self.overrides = ask(topic.read) or Overrides()
        except RuleSetError as error:
            self._went_wrong(error)
            self._status.not_read([*away, *error.problems])
        overrides = self.overrides or Overrides()
        if logged is not None and uncommitted is not None:
            before = checkpoint.offset(uncommitted - 1)
            if logged.is_first(uncommitted, {} if before is None else before.by_topic):
                logged = _without_crashing(log, logged, uncommitted, begun, overrides)
        if logged is None and self._wrong is not None:
            raise self._wrong
        running = RuleSet() if logged is None else logged.rules
        files = spelled_out(overrides.applied(self.files or (), running), self._schemas, running)
        if logged is None:
            change = Change(valid(examine(files, self.source.name)).pausing(overrides.pauses({})))
        elif self.files is None or self.overrides is None:
            assert self._wrong is not None
            change = Change(logged.rules, tuple(self._wrong.problems))
        else:
            change = next_rules(
                running,
                files,
                lambda one: (
                    logged.against(one)
                    or problems_of(one, self._schemas, ends=self._settings.trigger.ends)
                ),
                ran=running,
                most=self._settings.rules.max_rules,
                allow_empty=self._settings.rules.allow_empty,
                fingerprints=logged.fingerprints,
            )
        if logged is not None and self.overrides is not None:
            paused = overrides.pauses(logged.rules.paused)
            change = replace(change, rules=change.rules.pausing(paused))
        # What ran may not fit the schemas of today.
        compiled, unfit = CompiledRules.fitting(change.rules, record_types(self._schemas))
        rules = compiled.rules
        warnings = [*rules.warnings, *warnings_of(rules, self._schemas)]
        rejected = (*change.rejected, *overrides.unreadable.values(), *unfit)
        status = self._status
        batches = BatchRules(
            log, logged, compiled, uncommitted, overrides, decided, status.begins, status.takes
        )
        status.wants(rules, rejected, warnings)
        return batches

    def _read_again(self) -> None:
        """Read the source once more: a copy that was in progress when the start began is whole by
        now. Rules that were not there yet would lose their partial matches, and of a text cut short
        another rule may run."""
        with suppress(RuleSetError):
            files = self.source.read()
            if files is not None:
                self.files = files

    def _went_wrong(self, error: RuleSetError | ConfigurationError) -> None:
        if self._first:
            raise error
        self._wrong = error


def _without_crashing(
    log: RuleLog,
    logged: LoggedRules,
    batch: int,
    begun: PartlyWritten | None,
    overrides: Overrides,
) -> LoggedRules:
    """The rules of a batch that was begun, the first in which they see an event. If it failed too
    often, the new rules are left out and their old versions run instead, or are paused where they
    must not run."""
    before = log.of(logged.batch - 1) if logged.batch > 0 else None
    if before is None or logged.attempts < _MOST_ATTEMPTS:
        return logged
    ran = [one.rule for one in before.rules.running]
    new = {one.rule.id: one for one in logged.rules.running if one.rule not in ran}
    if not new:
        return logged
    reason = f"set aside: batch {batch}, the first with this rule, failed {logged.attempts} times"
    written = begun is not None and begun.batch == batch
    if written:
        # What other rules gave is there or comes now: it does not depend on these.
        reason += "; a part of what it gave in that batch may be in the output"
    aside = {**logged.set_aside, **{digest(one): reason for one in new.values()}}
    back = [one for one in before.rules.loaded if one.rule.id in new]
    stopped = {
        one.rule.id: overrides.until_resumed(
            Pause(
                f"version {new[one.rule.id].rule.version} is {reason}. Another version runs, or"
                " this one when it is resumed",
                _BY,
                one.rule.version,
            )
        )
        for one in back
        # What is written of the batch lacks the output of the old version, or it is the same rule,
        # which somebody has resumed.
        if (written and one.rule in ran) or digest(one) in aside
    }
    kept = [one for one in logged.rules.loaded if one.rule.id not in new]
    draining = [each for each in logged.rules.draining if each.rule.id not in new]
    draining += [each for each in before.rules.draining if each.rule.id in new]
    carried = [one for one in logged.rules.carried if one.rule.id not in new]
    carried += [one for one in before.rules.carried if one.rule.id in new]
    rules = RuleSet(
        tuple(sorted((*kept, *back), key=lambda one: one.rule.id)),
        draining=tuple(draining),
        carried=tuple(carried),
    )
    rules = rules.pausing({**before.rules.paused, **logged.rules.paused, **stopped})
    # In place of the set; or after it, where it had batches without events.
    again = logged.batch == batch
    starts = logged.starts.get(logged.batch, {})
    substitute = LoggedRules.following(before if again else logged, batch, starts, rules)
    number = logged.number if again else substitute.number
    substitute = replace(substitute, number=number, attempts=0, set_aside=aside)
    log.write(substitute)
    for one in new.values():
        _log.error("rule_set_aside", rule=one.rule.id, version=one.rule.version, reason=reason)
    return substitute
