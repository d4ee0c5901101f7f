"""The rules of a run: which are loaded, which run and on what, which are paused."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from service.observability import metric_names as names
from service.observability.logs import bound, logger
from service.observability.metrics import Metrics
from service.pattern.tree import Rule
from service.pipeline.driver.progress import BatchReport, begin_rules
from service.rules.rule_set import RuleSet

_log = logger(__name__)


class RuleStatus:
    """Written by the start and by each batch; read by ``/rules`` from another thread.

    ``rules``: as loaded. ``running``: of each rule that runs, by id, its plan's fingerprint.
    ``live``: partial matches by rule id. ``paused``: rules that the circuit breaker paused, by id.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.rules = RuleSet()
        self.running: Mapping[str, str] = {}
        self.live: Mapping[str, int] = {}
        self.paused: dict[str, Rule] = {}

    def checked(self) -> None:
        """The rules are checked and will run."""
        rules = self.rules
        for warning in rules.warnings:
            _log.warning("rule_warning", rule=warning.rule, step=warning.step, text=warning.message)
        for rule in rules.enabled:
            _log.info("rule_loaded", rule=rule.id, version=rule.version)
        self._metrics.replace(names.RULES_LOADED, _labels(rules.enabled))
        begin_rules(self._metrics, [rule.id for rule in rules.enabled])

    def pause(self, rule: Rule, reason: str) -> None:
        """A rule is paused until the end of the run."""
        self.paused[rule.id] = rule
        with bound(rule=rule.id):
            _log.warning("rule_paused", version=rule.version, reason=reason)
        self._metrics.replace(names.RULE_PAUSED, _labels(self.paused.values()))

    def batch_done(self, report: BatchReport) -> None:
        """Take in which partial matches live, and log which went with rules that changed or were
        removed."""
        self.live = report.live
        now = {loaded.rule.id: loaded.rule.version for loaded in self.rules.loaded}
        for (rule, version), live in report.gone.items():
            changed = now.get(rule) == version and rule not in self.paused
            reason = "changed without a new version" if changed else "replaced or removed"
            with bound(rule=rule):
                (_log.warning if changed and live else _log.info)(
                    "rule_state_dropped",
                    version=version,
                    partial_matches=live,
                    reason="paused by the circuit breaker" if rule in self.paused else reason,
                )

    def listing(self) -> list[dict[str, object]]:
        """What runs, for ``/rules``."""
        return [
            {
                "id": rule.id,
                "version": rule.version,
                "state": self._state_of(rule),
                "fingerprint": self.running.get(rule.id),
                "partial_matches": self.live.get(rule.id, 0),
            }
            for rule in self.rules.rules
        ]

    def _state_of(self, rule: Rule) -> str:
        if not rule.enabled:
            return "disabled"
        if rule.id in self.paused:
            return "paused"
        return "running" if rule.id in self.running else "starting"


def _labels(rules: Collection[Rule]) -> dict[tuple[str, ...], float]:
    return {(rule.id, str(rule.version)): 1 for rule in rules}
