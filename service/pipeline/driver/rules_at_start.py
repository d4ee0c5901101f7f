"""The rules that a run begins with: those of the folder, held against those that the checkpoint has
run with.

A first start refuses rules with a problem. A job that has run before goes on: what is wrong is
rejected, and what ran before runs. A batch that is planned and not done has the rules that were
logged for it.
"""

from __future__ import annotations

from service.config import Settings
from service.errors import RuleSetError
from service.pipeline.decode.resolved_schemas import ResolvedSchemas
from service.pipeline.driver.batch_rules import BatchRules, CompiledRules
from service.pipeline.driver.checkpoint_files import CheckpointFiles, local_folder
from service.pipeline.driver.job_plan import check_rules, load_rules, problems_of, warnings_of
from service.pipeline.driver.rule_log import LOG, RuleLog
from service.pipeline.driver.rule_status import RuleStatus
from service.rules.change import Change, next_rules
from service.rules.folder import Stamp, read_files, stamp
from service.rules.rule_set import RuleFile, RuleSet


class RulesAtStart:
    """Reads the folder at once. Raises RuleSetError, and ConfigurationError for too many rules,
    where the checkpoint cannot know rules that could run instead."""

    def __init__(self, settings: Settings, status: RuleStatus) -> None:
        self._settings = settings
        self._status = status
        self._wrong: RuleSetError | None = None
        self._files: list[RuleFile] = []
        self._rules = RuleSet()
        #: What the folder was; ``None`` when it could not be read.
        self.taken: Stamp | None = None
        try:
            self.taken = stamp(settings.rules.folder)
            self._files = read_files(settings.rules.folder)
            self._rules = load_rules(settings)
        except RuleSetError as error:
            self._went_wrong(error)
        status.rules = self._rules

    def check(self, schemas: ResolvedSchemas) -> None:
        """Hold the rules against what is read. Raises RuleSetError as the constructor does, and
        SchemaError where columns are not of types that can be read."""
        self._schemas = schemas
        if self._wrong is not None:
            return
        try:
            check_rules(self._rules, schemas)
        except RuleSetError as error:
            self._went_wrong(error)

    def decide(self, checkpoint: CheckpointFiles) -> BatchRules:
        """The rules of the run's batches. Raises RuleSetError, and StateError where the checkpoint
        is damaged."""
        log, position = RuleLog(checkpoint), checkpoint.position()
        logged = None if position is None else log.of(position.batch)
        if logged is None:
            if self._wrong is not None:
                raise self._wrong
            change = Change(self._rules)
        elif self._wrong is not None and self.taken is None:
            change = Change(logged.rules, tuple(self._wrong.problems))
        else:
            change = next_rules(
                logged.rules,
                self._files,
                lambda one: problems_of(one, self._schemas),
                most=self._settings.rules.max_rules,
                allow_empty=self._settings.rules.allow_empty,
            )
        rules = change.rules
        warnings = [*rules.warnings, *warnings_of(rules, self._schemas)]
        self._status.wants(rules, change.rejected, warnings)
        planned = None
        if logged is not None and position is not None and position.uncommitted:
            planned = position.batch, CompiledRules.of(logged.rules)
        return BatchRules(log, logged, CompiledRules.of(rules), planned, self._status.begins)

    def _went_wrong(self, error: RuleSetError) -> None:
        folder = local_folder(str(self._settings.state.checkpoint))
        if folder is not None and not (folder / LOG).is_dir():
            raise error
        self._wrong = error
