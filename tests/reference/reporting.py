"""Findings of rules of steps as output values, one object each."""

from __future__ import annotations

from typing import Any

from spark_cep.compiler.plan import Plan
from spark_cep.match_ids import match_id
from spark_cep.matcher.findings.found import Failure
from spark_cep.matcher.findings.outputs import Outputs, Reporter
from spark_cep.matcher.findings.partial import Taken
from spark_cep.model import Event, Match, TakenEvent, Timeout
from tests.reference.listed import listed
from tests.reference.look_back import LookBacks


class StepReporter(Reporter):
    """Turns the findings of one rule of steps into output values."""

    def __init__(self, plan: Plan, look_backs: LookBacks) -> None:
        super().__init__(plan.rule)
        self._steps = plan.steps
        self._measures = look_backs.measures
        self._columns = look_backs.emitted_columns
        self._payload = plan.rule.emit.events == "all"

    def matched(
        self, key: str | None, first: Event, last: Taken, time: int, outputs: Outputs
    ) -> None:
        """Append a match."""
        outputs.matches.append(Match(**self._common(key, first, last, outputs), time=time))
        self.count({"matched": 1}, outputs)

    def timed_out(
        self,
        key: str | None,
        first: Event,
        last: Taken,
        deadline: int,
        outputs: Outputs,
        *,
        matched: bool,
    ) -> None:
        """Append a timeout; ``matched``: its events, the first of them, or these and more were a
        match."""
        common = self._common(key, first, last, outputs)
        steps = {
            name: [events[place] for place in listed([name] * len(events))]
            for name, events in common["steps"].items()
        }
        omitted = sum(map(len, common["steps"].values())) - sum(map(len, steps.values()))
        common["steps"] = steps
        common["match_id"] = match_id(self._id, self._version, key, steps)
        outputs.timeouts.append(
            Timeout(**common, deadline=deadline, already_matched=matched, events_omitted=omitted)
        )
        self.count({"timed_out": 1}, outputs)

    def _common(
        self, key: str | None, first: Event, last: Taken, outputs: Outputs
    ) -> dict[str, Any]:
        """The fields that matches and timeouts have."""
        steps = self._taken(last)
        return {
            "match_id": match_id(self._id, self._version, key, steps),
            "rule_id": self._id,
            "rule_version": self._version,
            "key": key,
            "start": first.time,
            "steps": steps,
            "measures": self._evaluate(last, outputs),
        }

    def failed(self, failure: Failure, outputs: Outputs) -> None:
        """Append a dead letter."""
        self._failed(failure, outputs)
        self.count({"failed": 1}, outputs)

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
