"""Reads the source of rules while the job runs, and has what changed run from the next batch on.

What is found is checked and compiled here, in a thread of its own, so that no batch waits for it. A
source that cannot be read leaves the rules that run.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Final, TypeVar

from spark_cep.compiler.rule_set import compile_rules
from spark_cep.config import Settings
from spark_cep.errors import Problem, RuleSetError
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pipeline.decode.decoder_plan import record_types
from spark_cep.pipeline.decode.packing import Packing
from spark_cep.pipeline.driver.lifecycle.background import Background
from spark_cep.pipeline.driver.rules.batch_rules import BatchRules, CompiledRules
from spark_cep.pipeline.driver.rules.job_plan import problems_of, spelled_out, warnings_of
from spark_cep.pipeline.driver.rules.rule_status import RuleStatus
from spark_cep.rules.change import Change, next_rules
from spark_cep.rules.overrides import Overrides, OverrideTopic
from spark_cep.rules.plans import plan_for
from spark_cep.rules.rule_set import RuleFile, RuleSet
from spark_cep.rules.sources.source import RuleSource

_T = TypeVar("_T")

#: What the source holds, and what operators have decided beside it; ``None``: not read yet.
Found = tuple[Sequence[RuleFile] | None, Overrides | None]


class RuleWatch(Background):
    """Watches ``source`` and the ``topic`` of overrides, which the start of the job has read:
    ``found``. ``packing`` gives that of the query that runs; ``wake`` is called with the
    fingerprint of other rules, and has a batch begin."""

    def __init__(
        self,
        settings: Settings,
        source: RuleSource,
        topic: OverrideTopic,
        found: Found,
        rules: BatchRules,
        packing: Callable[[], Packing],
        status: RuleStatus,
        wake: Callable[[str], None],
        run: str,
    ) -> None:
        self._settings: Final = settings.rules
        self._ends: Final = settings.trigger.ends
        self._source: Final = source
        self._topic: Final = topic
        self._files, self._overrides = found
        self._rules: Final = rules
        self._packing: Final = packing
        self._status: Final = status
        self._wake: Final = wake
        self._changed = self._rejects = False
        #: The rules of the last batch when the rules were taken.
        self._ran = RuleSet()
        super().__init__("rule-watch", self._work, run)

    def start(self) -> None:
        """Begin, if the settings say so."""
        if self._settings.refresh_interval is not None:
            super().start()

    def _work(self) -> None:
        interval = self._settings.refresh_interval
        assert interval is not None
        while self.wait(interval / 1000):
            self.look()

    def look(self) -> None:
        """Look once. Of the source and the topic each counts also while the other one cannot be
        read."""
        problems: list[Problem] = []
        overrides = _asked(self._topic.read, "the overrides", problems)
        if overrides is not None:
            self._overrides, self._changed = overrides, True
        files = _asked(self._source.read, self._source.name, problems)
        if files is not None:
            self._files, self._changed = files, True
        if not problems:
            self._status.read()
        elif not self.stopped:
            self._status.not_read(problems)
        # What is rejected may have waited for a version to begin, or to have drained.
        self._changed |= self._rejects and self._rules.ran is not self._ran
        if self._changed and self._overrides is not None:
            # What fails is not looked at again until something changes.
            self._changed = False
            try:
                self._take(self._overrides)
            except Exception as error:  # noqa: BLE001  the rules that run go on
                self._status.cannot_take(_defect(error))

    def _take(self, overrides: Overrides) -> None:
        packing, changed = self._packing(), None
        while changed is None:
            before, self._ran = self._rules.wanted_and_ran
            change = self._change(before, self._ran, overrides, packing)
            warnings = [*change.rules.warnings, *warnings_of(change.rules, packing.schemas)]
            if change.rules.texts != before.rules.texts:
                # As every task will; what fails here would fail there.
                packing.packer(plan_for(change.rules, record_types(packing.schemas)))
            changed = self._rules.want(change.rules, overrides, self._ran)
        wanted = self._rules.wanted.rules
        self._rejects = bool(change.rejected)
        self._status.wants(wanted, (*change.rejected, *overrides.unreadable.values()), warnings)
        if changed:
            self._wake(wanted.fingerprint)

    def _change(
        self, before: CompiledRules, ran: RuleSet, overrides: Overrides, packing: Packing
    ) -> Change:
        if self._files is None:
            return Change(before.rules)
        known = {one.text for one in before.rules.loaded}
        files = overrides.applied(self._files, before.rules)
        return next_rules(
            before.rules,
            spelled_out(files, packing.schemas, before.rules),
            lambda one: _problems(one, packing, self._rules, known, ends=self._ends),
            ran=ran,
            most=self._settings.max_rules,
            allow_empty=self._settings.allow_empty,
            fingerprints=self._rules.fingerprints,
        )


def _asked(read: Callable[[], _T | None], name: str, problems: list[Problem]) -> _T | None:
    """The content that was read, if it is new; the reason why none could be goes to
    ``problems``."""
    try:
        return read()
    except RuleSetError as error:
        problems += error.problems
    except Exception as error:  # noqa: BLE001  the next look may succeed
        message = f"cannot be read: {type(error).__name__}: {error}"
        problems.append(Problem(message, name))
    return None


def _problems(
    one: LoadedRule,
    packing: Packing,
    rules: BatchRules,
    known: Container[str],
    *,
    ends: bool,
) -> list[Problem]:
    """The problems of a rule; where it is not ``known`` by its text, also those of compiling it."""
    problems = rules.against(one) or problems_of(one, packing.schemas, ends=ends)
    if problems or one.text in known:
        return problems
    try:
        packing.packer(compile_rules([one.rule], record_types(packing.schemas)))
    except Exception as error:  # noqa: BLE001  its own problem, not that of the rules around it
        message = f"the rule cannot be compiled: {error}"
        return [one.places.problem(message, ("id",))]
    return []


def _defect(error: Exception) -> Problem:
    """The problem of the rules together; each of them alone can be compiled."""
    message = f"the rules cannot be taken: {type(error).__name__}: {error}"
    return Problem(message=message, allowed="the rules that ran before run on")
