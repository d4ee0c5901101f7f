"""Which rules each batch runs under.

They are a value of the batch: decided once, when Spark has planned it, written down before anything
of it is done, and told to all its tasks. A batch that runs again has the rules that it had.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from service.compiler.rule_set import RuleSetPlan
from service.pipeline.driver.rule_log import LoggedRules, RuleLog
from service.rules.rule_set import RuleSet
from service.rules.texts import encoded, plan_of


@dataclass(frozen=True, slots=True)
class CompiledRules:
    """Rules, their plan, and the text in which they travel with a batch."""

    rules: RuleSet
    plan: RuleSetPlan
    text: str

    @classmethod
    def of(cls, rules: RuleSet) -> CompiledRules:
        """The plan is what every task makes of the text."""
        text = encoded(rules.rules)
        return cls(rules, plan_of(text), text)


#: Called with the number of a rule set, the batch that is the first under it, and the rules.
Changed = Callable[[int, int, CompiledRules], None]


class BatchRules:
    """The rules of batches from now on. ``planned``: the batch that was planned and not done, and
    its rules, where some were logged. ``changed`` is called where a batch begins with other rules
    than the one before; the rules of the first batch count."""

    def __init__(
        self,
        log: RuleLog,
        logged: LoggedRules | None,
        wanted: CompiledRules,
        planned: tuple[int, CompiledRules] | None,
        changed: Changed,
    ) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._wanted = wanted
        self._changed = changed
        self._number = 0 if logged is None else logged.number
        self._fingerprint = None if logged is None else logged.rules.fingerprint
        #: The newest batch that was asked for, and its rules.
        self._batch, self._rules = (-1, wanted) if planned is None else planned
        self._told = False

    @property
    def wanted(self) -> CompiledRules:
        """The rules that the next batch has."""
        with self._lock:
            return self._wanted

    @property
    def current(self) -> CompiledRules:
        """The rules of the newest batch."""
        return self._rules

    def want(self, rules: CompiledRules) -> None:
        """From the next batch on."""
        with self._lock:
            self._wanted = rules

    def of(self, batch: int) -> CompiledRules:
        """The rules of a batch that is about to run. Raises StateError when they cannot be written
        down."""
        if batch > self._batch:
            rules = self.wanted
            fingerprint = rules.rules.fingerprint
            if fingerprint != self._fingerprint:
                self._log.write(LoggedRules(batch, self._number + 1, rules.rules))
                self._number += 1
                self._fingerprint = fingerprint
                self._told = False
            self._batch, self._rules = batch, rules
        if not self._told:
            self._changed(self._number, batch, self._rules)
            self._told = True
        return self._rules
