"""From what the machine found to what users read: matches, timeouts, failures, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_cep.compiler.plan import Plan
from spark_cep.match_ids import match_id
from spark_cep.matcher.findings.found import Failure, Found
from spark_cep.matcher.findings.look_back import LookBacks
from spark_cep.matcher.findings.partial import Taken
from spark_cep.matcher.findings.results import Results
from spark_cep.model import DeadLetter, Event, Match, MatchRow, TakenEvent, Timeout


@dataclass(slots=True)
class Outputs:
    """Everything one advance produced; ``counts`` are per (rule id, what). ``results`` are matches
    and timeouts that stayed columns, ``rows`` those of rules with ALL ROWS PER MATCH."""

    matches: list[Match] = field(default_factory=list)
    rows: list[MatchRow] = field(default_factory=list)
    timeouts: list[Timeout] = field(default_factory=list)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    results: list[Results] = field(default_factory=list)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, more: Outputs) -> None:
        """Append another's."""
        self.matches += more.matches
        self.rows += more.rows
        self.timeouts += more.timeouts
        self.dead_letters += more.dead_letters
        self.results += more.results
        self.counts.update(more.counts)


class Reporter:
    """Turns the findings of one rule into output values."""

    def __init__(self, plan: Plan, look_backs: LookBacks) -> None:
        rule = plan.rule
        self._id, self._version = rule.id, rule.version
        self._steps = plan.steps
        self._measures = look_backs.measures
        self._columns = look_backs.emitted_columns
        self._payload = rule.emit.events == "all"
        #: Whether nothing is emitted but coordinates.
        self.plain = not (self._measures or self._columns or self._payload)

    def report(self, key: str | None, found: Found, outputs: Outputs) -> None:
        """Append what ``found`` holds to ``outputs``."""
        for match in found.matches:
            steps = self._taken(match.last)
            outputs.matches.append(
                Match(
                    match_id=match_id(self._id, self._version, key, steps),
                    rule_id=self._id,
                    rule_version=self._version,
                    key=key,
                    start=match.first.time,
                    time=match.time,
                    steps=steps,
                    measures=self._evaluate(match.last, outputs),
                )
            )
        for expired in found.timeouts:
            steps = self._taken(expired.last)
            outputs.timeouts.append(
                Timeout(
                    match_id=match_id(self._id, self._version, key, steps),
                    rule_id=self._id,
                    rule_version=self._version,
                    key=key,
                    start=expired.first.time,
                    deadline=expired.deadline,
                    already_matched=expired.matched,
                    steps=steps,
                    measures=self._evaluate(expired.last, outputs),
                )
            )
        for failure in found.failures:
            outputs.dead_letters.append(self._dead_letter(failure))
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

    def count(self, counted: Mapping[str, int], outputs: Outputs) -> None:
        """Add counts of the rule to ``outputs``."""
        for what, count in counted.items():
            if count:
                outputs.counts[self._id, what] += count

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
                failure = Failure("measure_failed", None, last.event, f"{name}: {error!r}")
                outputs.dead_letters.append(self._dead_letter(failure))
        return values

    def _dead_letter(self, failure: Failure) -> DeadLetter:
        event: Event = failure.event
        return DeadLetter(
            at=event.at,
            reason=failure.reason,
            detail=failure.detail,
            record_value=event.payload,
            rule_id=self._id,
            step=failure.step,
            rule_version=self._version,
        )
