"""The circuit breaker: too large a share of dead letters stops the job, or pauses the rule that
makes them (settings: ``circuit_breaker``).

Pure bookkeeping with an injected clock, on the reports of batches that are written. It looks at
what was read within a window of time, at least at the newest batch, and says nothing before the
window holds enough records. What it decides is carried out by
:mod:`spark_cep.pipeline.driver.supervisor`: a stop after the batch is committed, a pause from the
next batch on.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from spark_cep.codecs.record_faults import OF_RECORDS
from spark_cep.config.engine import CircuitBreakerLimits as CircuitBreakerSettings
from spark_cep.durations import format_duration

_MOST_REASONS = 5
#: A rule's id and version.
Version = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Trip:
    """A share above its limit. ``rule``: id and version of the rule whose dead letters they are,
    ``None`` for records that no rule could be given. ``of``: records or, for a rule, relevant
    events."""

    rule: Version | None
    dead_letters: int
    of: int
    limit: float
    window_ms: int
    reasons: tuple[tuple[str, int], ...]

    def sentence(self, topic: str) -> str:
        """Share, limit, reasons and place, for people."""
        setting = "max_share" if self.rule is None else "max_rule_share"
        what = "records" if self.rule is None else "relevant events"
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in self.reasons)
        share = self.dead_letters / self.of if self.of else 1.0
        return (
            f"{self.dead_letters:,} dead letters for {self.of:,} {what} within"
            f" {format_duration(self.window_ms)}, a share of {share:.2%};"
            f" circuit_breaker.{setting} allows {self.limit:.2%}; reasons: {reasons}; see topic"
            f" {topic}"
        )


@dataclass(slots=True)
class _Batch:
    """A batch, or the sum of those in the window. Dead letters by reason: of records in ``broken``,
    by rule in ``failed``."""

    at: int = 0
    records: int = 0
    relevant: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    failed: dict[Version, Counter[str]] = field(default_factory=dict)


class CircuitBreaker:
    """The circuit breaker of one run. ``now`` gives milliseconds and never goes back;
    ``job_trip``: why the job must stop, if it must."""

    def __init__(self, settings: CircuitBreakerSettings, now: Callable[[], int]) -> None:
        self._settings = settings
        self._now = now
        self.job_trip: Trip | None = None
        self._batches: deque[_Batch] = deque()

    def batch_done(
        self,
        records: int,
        relevant: int,
        dead_letters: Mapping[str, int],
        of_rules: Mapping[tuple[str, int, str], int],
    ) -> list[Trip]:
        """Take in a written batch; what is above its limit now, the job itself first.

        ``dead_letters`` by reason, ``of_rules`` by rule id, version and reason: versions that run
        side by side are judged each by itself. One that trips starts from nothing.
        """
        failed: dict[Version, Counter[str]] = {}
        for (rule, version, reason), count in of_rules.items():
            failed.setdefault((rule, version), Counter())[reason] += count
        broken = Counter({r: n for r, n in dead_letters.items() if r in OF_RECORDS})
        self._batches.append(_Batch(self._now(), records, relevant, broken, failed))
        while self._batches[0].at <= self._batches[-1].at - self._settings.window:
            self._batches.popleft()
        return self._judge(self._sum())

    def _sum(self) -> _Batch:
        made = _Batch()
        for batch in self._batches:
            made.records += batch.records
            made.relevant += batch.relevant
            made.broken.update(batch.broken)
            for rule, reasons in batch.failed.items():
                made.failed.setdefault(rule, Counter()).update(reasons)
        return made

    def _judge(self, found: _Batch) -> list[Trip]:
        settings = self._settings
        trips = []
        if _above(found.broken.total(), found.records, settings.max_share, settings.min_records):
            self.job_trip = self._trip(None, found.broken, found.records, settings.max_share)
            trips.append(self.job_trip)
        for rule, reasons in sorted(found.failed.items()):
            limit = settings.max_rule_share
            if _above(reasons.total(), found.relevant, limit, settings.min_records):
                trips.append(self._trip(rule, reasons, found.relevant, limit))
                for batch in self._batches:
                    batch.failed.pop(rule, None)
        return trips

    def _trip(
        self, rule: Version | None, reasons: Counter[str], of: int, limit: float | None
    ) -> Trip:
        most_common = tuple(reasons.most_common(_MOST_REASONS))
        return Trip(rule, reasons.total(), of, limit or 0.0, self._settings.window, most_common)


def _above(dead_letters: int, of: int, limit: float | None, least: int) -> bool:
    return limit is not None and of >= least and dead_letters > limit * of
