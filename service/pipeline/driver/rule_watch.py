"""Looks at the rules folder while the job runs, and has what changed there run from the next batch.

What is found is checked and compiled here, in a thread of its own, so that no batch waits for it. A
folder is taken once two looks have found the same: files may be written in parts, and a mounted
ConfigMap changes its links one behind the other. One that cannot be read leaves the rules that run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container
from typing import Final

from service.compiler.rule_set import compile_rules
from service.config import Settings
from service.errors import Problem, RuleSetError
from service.observability.logs import bound
from service.pattern.document import LoadedRule
from service.pipeline.decode.packing import Packing
from service.pipeline.driver.batch_rules import BatchRules
from service.pipeline.driver.job_plan import problems_of, warnings_of
from service.pipeline.driver.rule_status import RuleStatus
from service.rules.change import next_rules
from service.rules.folder import Stamp, read_files, stamp
from service.rules.texts import plan_for

_STOP_SECONDS: Final = 3.0
#: A change is looked at again so soon.
_SETTLED_AFTER_SECONDS: Final = 0.5


class RuleWatch:
    """Watches ``rules.folder``. ``taken``: what the folder was when the job read it; ``packing``
    gives that of the query that runs; ``wake`` is called with the fingerprint of other rules, and
    has a batch begin."""

    def __init__(
        self,
        settings: Settings,
        taken: Stamp | None,
        rules: BatchRules,
        packing: Callable[[], Packing],
        status: RuleStatus,
        wake: Callable[[str], None],
        run: str,
    ) -> None:
        self._settings: Final = settings.rules
        self._seen = self._taken = taken
        self._rules: Final = rules
        self._packing: Final = packing
        self._status: Final = status
        self._wake: Final = wake
        self._run: Final = run
        self._stop: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._work, name="rule-watch", daemon=True)

    def start(self) -> None:
        """Begin, if the settings say so."""
        if self._settings.refresh_interval is not None:
            self._thread.start()

    def stop(self) -> None:
        """End; gives up after a while."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _work(self) -> None:
        interval = self._settings.refresh_interval
        assert interval is not None
        with bound(run=self._run):
            while not self._stop.wait(self._until_next_look(interval / 1000)):
                try:
                    self.look()
                except RuleSetError as error:
                    self._status.not_read(error.problems)
                except Exception as error:  # noqa: BLE001  the rules that run go on
                    # Not again until the folder changes.
                    self._taken = self._seen
                    self._status.wants(self._rules.wanted.rules, [_defect(error)], ())

    def _until_next_look(self, seconds: float) -> float:
        return seconds if self._seen == self._taken else min(seconds, _SETTLED_AFTER_SECONDS)

    def look(self) -> None:
        """Look once. Raises RuleSetError when the folder cannot be read."""
        found = stamp(self._settings.folder)
        settled = found == self._seen
        self._seen = found
        if not settled or found == self._taken:
            if settled:
                self._status.read()
            return
        files = read_files(self._settings.folder)
        if stamp(self._settings.folder) != found:
            # A rule that moves from file to file would be there twice, or not at all.
            return
        self._status.read()
        before = self._rules.wanted
        packing = self._packing()
        known = {one.text for one in before.rules.loaded}
        change = next_rules(
            before.rules,
            files,
            lambda one: _problems(one, packing, self._rules, known),
            most=self._settings.max_rules,
            allow_empty=self._settings.allow_empty,
        )
        warnings = [*change.rules.warnings, *warnings_of(change.rules, packing.schemas)]
        if change.rules.texts != before.rules.texts:
            # As every task will; what fails here would fail there.
            packing.packer(plan_for(change.rules))
        changed = self._rules.want(change.rules)
        wanted = self._rules.wanted.rules
        self._status.wants(wanted, change.rejected, warnings)
        if changed:
            self._wake(wanted.fingerprint)
        self._taken = found


def _problems(
    one: LoadedRule, packing: Packing, rules: BatchRules, known: Container[str]
) -> list[Problem]:
    """Of a rule that is not ``known`` by its text, also what compiling it says."""
    problems = rules.against(one) or problems_of(one, packing.schemas)
    if problems or one.text in known:
        return problems
    try:
        packing.packer(compile_rules([one.rule]))
    except Exception as error:  # noqa: BLE001  its own problem, not that of the rules around it
        message = f"the rule cannot be compiled: {error}"
        return [one.places.problem(message, ("id",))]
    return []


def _defect(error: Exception) -> Problem:
    """Of the rules together; each of them alone can be compiled."""
    message = f"the rules cannot be taken: {type(error).__name__}: {error}"
    return Problem(message=message, allowed="the rules that ran before run on")
