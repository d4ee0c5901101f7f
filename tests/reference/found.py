"""Findings of the reference for one rule and key: matches, timeouts, failures, counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from spark_cep.matcher.findings.found import Failure
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import Finished, RuleState, Taken
from spark_cep.model import Event
from tests.reference.reporting import StepReporter


class Expired(NamedTuple):
    """A partial match that ran out of time."""

    first: Event
    last: Taken
    deadline: int
    matched: bool


@dataclass(slots=True)
class Found:
    """The findings of one call; the caller empties it."""

    matches: list[Finished] = field(default_factory=list)
    timeouts: list[Expired] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    started: int = 0
    pruned: int = 0
    dropped: int = 0
    dropped_matches: int = 0

    @property
    def something(self) -> bool:
        """Return whether there is anything to report."""
        return bool(
            self.started
            or self.matches
            or self.timeouts
            or self.failures
            or self.pruned
            or self.dropped
            or self.dropped_matches
        )

    def report(self, reporter: StepReporter, key: str | None, outputs: Outputs) -> None:
        """Append it to ``outputs``."""
        for match in self.matches:
            reporter.matched(key, match.first, match.last, match.time, outputs)
        for expired in self.timeouts:
            reporter.timed_out(
                key, expired.first, expired.last, expired.deadline, outputs, matched=expired.matched
            )
        for failure in self.failures:
            reporter.failed(failure, outputs)
        names = ("started", "pruned", "dropped", "dropped_matches")
        reporter.count({name: getattr(self, name) for name in names}, outputs)


def idle(state: RuleState) -> bool:
    """Whether nothing needs to be remembered."""
    return not (state.partials or state.finished or state.paused or state.quiet_until is not None)


def order(event: Event) -> tuple[int, int, tuple[str, int, int]]:
    """Events are applied, and starts compared, in this order: time, to the microsecond, then
    coordinates."""
    return event.time, event.micros, event.at
