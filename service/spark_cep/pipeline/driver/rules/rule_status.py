"""The rules of a run: which are loaded, which run and on what, which are paused."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from spark_cep.errors import Problem
from spark_cep.observability import metric_names as names
from spark_cep.observability.logs import bound, logger
from spark_cep.observability.metrics import Metrics
from spark_cep.pattern.tree import PreviousVersion, Rule
from spark_cep.pipeline.driver.observe.event_time import event_time_text
from spark_cep.pipeline.driver.observe.progress import BatchReport, begin_rules
from spark_cep.pipeline.driver.rules.batch_rules import CompiledRules
from spark_cep.pipeline.driver.rules.rule_log import LoggedRules
from spark_cep.rules.replaced import MOST_DRAINING
from spark_cep.rules.rule_set import RuleSet, versions_by_id

_log = logger(__name__)
_CARRY = PreviousVersion.CARRY
_TOO_MANY = (
    f"another version drains, and at most {MOST_DRAINING} versions of a rule do at a time: the"
    " oldest ended before it was done"
)


@dataclass(frozen=True, slots=True)
class RunningRules:
    """The rules that batches run under from ``batch`` on; ``fingerprints`` of plans, by id and
    version, also of versions that drain: ``draining``; those in ``shadow`` mode."""

    batch: int
    logged: LoggedRules
    fingerprints: Mapping[tuple[str, int], str]
    draining: Collection[tuple[str, int]]
    shadow: Collection[tuple[str, int]]


class RuleStatus:
    """Written by the start, by each batch and by what watches the rules; read by ``/rules`` from
    another thread.

    ``rules``: those that run, or will from the next batch on. ``live``: partial matches by rule id
    and version.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.rules = RuleSet()
        self.live: Mapping[tuple[str, int], int] = {}
        self._rejected: tuple[Problem, ...] = ()
        #: Why all that the source holds now does not run.
        self._defect: Problem | None = None
        #: By source, and since when; of each the first one, so that the row stays as it is.
        self._not_read: Mapping[str | None, tuple[Problem, str]] = {}
        self._running: RunningRules | None = None
        #: Under which a batch has begun that Spark has not committed.
        self._begun: RunningRules | None = None
        self._watermark: int | None = None
        #: Event times at which rules begin that have not begun, by rule id and version.
        self._beginning: Mapping[tuple[str, int], int] = {}
        #: The newest batch that is done.
        self._counted = -1
        self._loaded: set[tuple[str, int]] = set()
        #: Rules that metrics may have series of.
        self._shown: set[str] = set()
        self._warned: set[tuple[str | None, str]] = set()

    @property
    def rejected(self) -> tuple[Problem, ...]:
        """The problems of the source: rules that do not run, and why."""
        return self._rejected if self._defect is None else (*self._rejected, self._defect)

    def wants(
        self, rules: RuleSet, rejected: Sequence[Problem], warnings: Sequence[Problem]
    ) -> None:
        """The rules are checked; of ``rejected`` the old versions run, if there are any."""
        for warning in warnings:
            if (warning.rule, warning.message) not in self._warned:
                _log.warning(
                    "rule_warning", rule=warning.rule, step=warning.step, text=warning.message
                )
        self._warned = {(warning.rule, warning.message) for warning in warnings}
        self._reject(tuple(rejected), None)
        now = {(rule.id, rule.version) for rule in rules.enabled}
        for rule, version in sorted(now - self._loaded):
            _log.info("rule_loaded", rule=rule, version=version)
        for rule, version in sorted(self._loaded - now):
            _log.info("rule_removed", rule=rule, version=version)
        self._loaded = now
        self._metrics.replace(names.RULES_LOADED, _labels(rules.enabled))
        begin_rules(self._metrics, [rule.id for rule in rules.enabled])
        self._shown |= {rule.id for rule in rules.enabled} | self._ids_of_rejected()

    def cannot_take(self, defect: Problem) -> None:
        """Note that the content of the source cannot run, for a reason that none of its rules
        has."""
        self._reject(self._rejected, defect)

    def _reject(self, rejected: tuple[Problem, ...], defect: Problem | None) -> None:
        before = self.rejected
        self._rejected, self._defect = rejected, defect
        for problem in self.rejected:
            if problem not in before:
                _log.error("rule_rejected", rule=problem.rule, text=problem.render())
        self._metrics.replace(
            names.RULES_REJECTED,
            {(problem.source or "", problem.rule or ""): 1 for problem in self.rejected},
        )

    def takes(self, rules: RuleSet) -> None:
        """These rules will run from the next batch on; says which of them are paused now, and which
        no longer are."""
        before, self.rules = self.rules, rules
        versions = {rule.id: rule.version for rule in rules.rules}
        for rule, pause in rules.paused.items():
            if before.paused.get(rule) != pause:
                with bound(rule=rule):
                    _log.warning(
                        "rule_paused", version=versions[rule], by=pause.by, reason=pause.reason
                    )
        for rule in before.paused.keys() & versions.keys() - rules.paused.keys():
            with bound(rule=rule):
                _log.info("rule_resumed", version=versions[rule])
        paused = [rule for rule in rules.rules if rule.id in rules.paused]
        self._metrics.replace(names.RULE_PAUSED, _labels(paused))

    def read(self) -> None:
        """The source of the rules was read."""
        self._not_read = {}
        self._metrics.set(names.RULES_READ, 1)

    def not_read(self, problems: Sequence[Problem]) -> None:
        """The source of the rules, or what operators decide beside it, cannot be read; what runs
        goes on."""
        self._metrics.set(names.RULES_READ, 0)
        new = [problem for problem in problems if problem.source not in self._not_read]
        if new:
            _log.error("rules_not_read", text="\n".join(problem.render() for problem in new))
        since = datetime.now(UTC).isoformat(" ", "seconds")
        now = {problem.source: (problem, since) for problem in reversed(problems)}
        self._not_read = {
            source: self._not_read.get(source, problem) for source, problem in now.items()
        }

    def begins(self, batch: int, logged: LoggedRules, rules: CompiledRules) -> None:
        """A batch begins that is the first under other rules, or the first of the run."""
        fingerprints = {(p.rule.id, p.rule.version): p.fingerprint for p in rules.plan.plans}
        draining = {(each.rule.id, each.rule.version) for each in rules.rules.draining}
        shadow = {(rule.id, rule.version) for rule in rules.rules.rules if rule.shadow}
        self._begun = RunningRules(batch, logged, fingerprints, draining, shadow)
        self._shown |= self._ids(self._begun)
        _log.info("rules_begin", number=logged.number, rules=len(fingerprints) - len(draining))

    def committed(self, batch: int) -> None:
        """Spark has committed a batch."""
        begun = self._begun
        if begun is not None and batch >= begun.batch:
            self._running, self._begun = begun, None
            self._metrics.set(names.RULE_SET, begun.logged.number)
        self._forget()

    def _forget(self) -> None:
        """Drop the series of rules that are no more, however they went."""
        # First what was shown: the thread that reads the rules has them in the set before that.
        gone = set(self._shown)
        gone -= {rule.id for rule in self.rules.rules} | self._ids_of_rejected()
        # Batches that may still be counted.
        gone -= self._ids(self._running) | self._ids(self._begun)
        for rule in gone:
            self._metrics.forget_rule(rule)
        self._shown -= gone

    def _ids_of_rejected(self) -> set[str]:
        return {problem.rule or "" for problem in self.rejected}

    @staticmethod
    def _ids(running: RunningRules | None) -> set[str]:
        return set() if running is None else {rule for rule, _ in running.fingerprints}

    def batch_done(self, report: BatchReport) -> None:
        """Take in which partial matches live, and log which went with rules that changed or were
        removed."""
        self.live = report.live
        self._watermark = report.watermark
        self._beginning = report.beginning
        if report.gone:
            self._log_gone(report)
        for (rule, version), ended in report.ended.items():
            with bound(rule=rule):
                _log.warning(
                    "rule_state_dropped",
                    version=version,
                    partial_matches=ended,
                    reason="held events later than the time that the clock was set back to",
                )
        # One that was committed and failed after all comes again.
        self._counted = max(self._counted, report.batch)

    def _log_gone(self, report: BatchReport) -> None:
        running = self._begun or self._running
        rules = self.rules if running is None else running.logged.rules
        draining = versions_by_id(rules.draining)
        drained = () if self._running is None else self._running.draining
        for (rule, version), live in report.gone.items():
            pause, loaded = rules.paused.get(rule), rules.by_id.get(rule)
            by = None if loaded is None else loaded.rule
            drains = [each.rule.version for each in draining.get(rule, ())]
            error, warning, reason = False, False, "replaced or removed"
            if pause is not None:
                reason = f"paused by {pause.by}"
            elif live and len(drains) == MOST_DRAINING and version < drains[0]:
                error, reason = True, _TOO_MANY
                if report.batch > self._counted:
                    self._metrics.increment(names.PARTIAL_MATCHES_DROPPED, live, rule=rule)
            elif by is not None and (version in drains or (rule, version) in drained):
                reason = "ended before it had drained" if live else "drained"
            elif by is not None and by.version == version:
                warning, reason = live > 0, "changed without a new version"
            elif live and by is not None and version < by.version and by.previous_version is _CARRY:
                warning, reason = True, "carried over, and the newer version has no such state"
            with bound(rule=rule):
                (_log.error if error else _log.warning if warning else _log.info)(
                    "rule_state_dropped", version=version, partial_matches=live, reason=reason
                )

    def listing(self) -> list[dict[str, object]]:
        """The rules of the page ``/rules``: the rules by id, then those that are rejected, and
        entries that cannot be read."""
        shown: list[dict[str, object]] = []
        draining = versions_by_id(self.rules.draining)
        for rule in self.rules.rules:
            pause = self.rules.paused.get(rule.id)
            row = self._row(rule)
            row["state"] = self._state_of(rule)
            row["reason"] = None if pause is None else f"{pause.by}: {pause.reason}"
            shown.append(row)
            drains = draining.get(rule.id, ())
            shown += [{**self._row(old.rule), "state": "draining"} for old in drains]
        rejected = [(each.rule, each.source, each.render()) for each in self.rejected]
        for source, (problem, since) in self._not_read.items():
            why = f"not read since {since}; the rules that ran before run on\n{problem.render()}"
            rejected.append((None, source, why))
        shown += [
            {"id": rule_id, "state": "rejected", "source": source, "reason": reason}
            for rule_id, source, reason in rejected
        ]
        return shown

    def _row(self, rule: Rule) -> dict[str, object]:
        """The row of a version, but for its state."""
        version, running = (rule.id, rule.version), self._running
        if running is None or version not in running.fingerprints:
            since, offsets, fingerprint = None, None, None
        else:
            since = running.logged.since.get(version)
            offsets = None if since is None else running.logged.starts.get(since)
            fingerprint = running.fingerprints[version]
        return {
            "id": rule.id,
            "version": rule.version,
            "fingerprint": fingerprint,
            "since_batch": since,
            "since_offsets": offsets,
            "begins": event_time_text(self._beginning.get(version)),
            "partial_matches": self.live.get(version, 0),
        }

    def _state_of(self, rule: Rule) -> str:
        version, running = (rule.id, rule.version), self._running
        if not rule.enabled:
            return "disabled"
        if rule.id in self.rules.paused:
            return "paused"
        if running is None or version not in running.fingerprints:
            return "accepted"
        if rule.shadow is not (version in running.shadow):
            # A change of mode counts from the next batch on.
            return "accepted"
        begins = rule.effective_from_ms
        if begins is not None and self._watermark is not None and self._watermark < begins:
            return "scheduled"
        return "shadow" if rule.shadow else "active"


def _labels(rules: Collection[Rule]) -> dict[tuple[str, ...], float]:
    return {(rule.id, str(rule.version)): 1 for rule in rules}
