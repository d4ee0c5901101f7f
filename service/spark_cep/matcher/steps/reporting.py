"""Findings of rules of steps as output values."""

from __future__ import annotations

from typing import Any

from spark_cep.compiler.plan import Plan
from spark_cep.matcher.findings.found import Failure, Found
from spark_cep.matcher.findings.look_back import LookBacks
from spark_cep.matcher.findings.outputs import Outputs, Reporter
from spark_cep.matcher.findings.partial import Taken
from spark_cep.model import Event, TakenEvent


class StepReporter(Reporter):
    """Turns the findings of one rule of steps into output values."""

    def __init__(self, plan: Plan, look_backs: LookBacks) -> None:
        super().__init__(plan.rule)
        self._steps = plan.steps
        self._measures = look_backs.measures
        self._columns = look_backs.emitted_columns
        self._payload = plan.rule.emit.events == "all"
        #: Whether nothing is emitted but coordinates.
        self.plain = not (self._measures or self._columns or self._payload)

    def report(self, key: str | None, found: Found, outputs: Outputs) -> None:
        """Append what ``found`` holds to ``outputs``."""
        for match in found.matches:
            steps, measures = self._taken(match.last), self._evaluate(match.last, outputs)
            self.match(outputs, key, steps, match.first.time, match.time, measures)
        for expired in found.timeouts:
            steps, measures = self._taken(expired.last), self._evaluate(expired.last, outputs)
            self.timeout(
                outputs, key, steps, expired.first.time, expired.deadline, measures,
                already_matched=expired.matched,
            )  # fmt: skip
        for failure in found.failures:
            self._failed(failure, outputs)
        self.count(
            {
                "matched": len(found.matches),
                "timed_out": len(found.timeouts),
                "started": found.started,
                "pruned": found.pruned,
                "dropped": found.dropped,
                "dropped_matches": found.dropped_matches,
                "failed": len(found.failures),
            },
            outputs,
        )

    def _taken(self, last: Taken) -> dict[str, list[TakenEvent]]:
        """Events per step in the order taken; the steps in the pattern's order."""
        by_step: dict[int, list[TakenEvent]] = {}
        for taken in last.chain():
            by_step.setdefault(taken.step, []).append(self._event(taken.event))
        for events in by_step.values():
            events.reverse()
        return {self._steps[number]: by_step[number] for number in sorted(by_step)}

    def _event(self, event: Event) -> TakenEvent:
        columns = None
        if self._columns:
            columns = {name: event.columns[slot] for name, slot in self._columns}
        payload = event.payload if self._payload else None
        return TakenEvent(event.at, event.time, columns, payload, event.type)

    def _evaluate(self, last: Taken, outputs: Outputs) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, measure in self._measures:
            try:
                values[name] = measure(last)
            except Exception as error:  # noqa: BLE001  a rule's fault must not stop the job
                values[name] = None
                detail = f"{name}: {error!r}"
                self._failed(Failure("measure_failed", None, last.event, detail), outputs)
        return values

    def _failed(self, failure: Failure, outputs: Outputs) -> None:
        self.dead_letter(outputs, failure.reason, failure.event, failure.detail, failure.step)
