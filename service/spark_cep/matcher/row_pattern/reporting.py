"""From results of row patterns to what users read: matches, rows, timeouts, dead letters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.match_ids import match_id
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.row_pattern.found import ConditionFailure
from spark_cep.matcher.row_pattern.results import (
    GivenUp,
    MatchFound,
    OutputRow,
    Result,
    SkipFailed,
    TimedOut,
    Unmatched,
)
from spark_cep.model import DeadLetter, Event, Match, MatchRow, TakenEvent, Timeout
from spark_cep.pattern.sql.statement import RowsPerMatch

#: Under which an empty match, which takes no row, has the one that it stands before in its id.
_EMPTY = ""


class ResultReporter:
    """Turns the results of one rule into output values."""

    def __init__(self, plan: RowPatternPlan) -> None:
        self._id, self._version = plan.rule.id, plan.rule.version
        self._plan = plan
        self._one_row = plan.query.rows is RowsPerMatch.ONE_ROW
        places = {path: place for place, path in enumerate(plan.columns)}
        #: Of each column of the result whether it is a measure, and the place of its value.
        self._columns = [
            (output.name, True, output.source)
            if isinstance(output.source, int)
            else (output.name, False, places[output.source])
            for output in plan.query.outputs
        ]

    def report(self, key: str | None, results: Iterable[Result], outputs: Outputs) -> int:
        """Append results of a key to ``outputs``; how many rows they have."""
        size = 0
        for result in results:
            match result:
                case MatchFound():
                    self._match(key, result, outputs)
                    self._count("matched", outputs)
                    size += 1 + len(result.rows)
                case Unmatched(rows=(row,)):
                    outputs.rows.append(self._row(key, row, None, None))
                    size += 1
                case TimedOut():
                    outputs.timeouts.append(self._timeout(key, result))
                    self._count("timed_out", outputs)
                    size += 1 + len(result.events)
                case GivenUp(row=row, limit=limit):
                    detail = f"an attempt has {limit}: it is given up"
                    self._dead_letter("limit_reached", row, detail, None, outputs)
                    self._count("dropped", outputs)
                case SkipFailed(row=row, fault=fault):
                    why = f"{fault.meaning} ({fault})"
                    detail = f"AFTER MATCH SKIP failed: {why}; match {result.number} of the key"
                    self._dead_letter("skip_failed", row, detail, None, outputs)
        return size

    def failures(self, failures: Iterable[ConditionFailure], outputs: Outputs) -> None:
        """Append conditions that could not be computed."""
        for each in failures:
            self._dead_letter("condition_failed", each.row, each.error, each.variable, outputs)

    def measure_failed(self, name: str, row: Event, error: str, outputs: Outputs) -> None:
        """Append a measure that could not be computed; it is NULL."""
        self._dead_letter("measure_failed", row, f"{name}: {error}", None, outputs)

    def _match(self, key: str | None, found: MatchFound, outputs: Outputs) -> None:
        steps = steps_of(self._plan, found.events, found.labels)
        identity = self._identity(key, steps, found.at)
        if not self._one_row:
            for row in found.rows:
                variable = found.labels[row.place] if found.labels else None
                outputs.rows.append(self._row(key, row, identity, variable))
            return
        for row in found.rows:  # one, or none of an empty match that is left out
            outputs.matches.append(
                Match(
                    match_id=identity,
                    rule_id=self._id,
                    rule_version=self._version,
                    key=key,
                    start=found.at.time,
                    time=found.events[-1].time if found.events else found.at.time,
                    steps=steps,
                    measures=self._values(row),
                )
            )

    def _timeout(self, key: str | None, found: TimedOut) -> Timeout:
        steps = steps_of(self._plan, found.events, found.labels)
        return Timeout(
            match_id=self._identity(key, steps, found.row),
            rule_id=self._id,
            rule_version=self._version,
            key=key,
            start=found.row.time,
            deadline=found.deadline,
            already_matched=False,
            steps=steps,
        )

    def _row(
        self,
        key: str | None,
        row: OutputRow,
        identity: str | None,
        variable: str | None,
    ) -> MatchRow:
        return MatchRow(
            rule_id=self._id,
            rule_version=self._version,
            key=key,
            match_id=identity,
            row=row.place + 1,
            variable=variable,
            event=_taken(row.row),
            columns=self._values(row),
        )

    def _values(self, row: OutputRow) -> dict[str, Any]:
        return {
            name: row.measures[place] if measure else row.row.columns[place]
            for name, measure, place in self._columns
        }

    def _identity(
        self, key: str | None, steps: Mapping[str, Sequence[TakenEvent]], at: Event
    ) -> str:
        return match_id(self._id, self._version, key, steps or {_EMPTY: [_taken(at)]})

    def _count(self, what: str, outputs: Outputs) -> None:
        outputs.counts[self._id, what] += 1

    def _dead_letter(
        self, reason: str, row: Event, detail: str, step: str | None, outputs: Outputs
    ) -> None:
        letter = DeadLetter(
            row.at, reason, detail, rule_id=self._id, step=step, rule_version=self._version
        )
        outputs.dead_letters.append(letter)
        self._count("failed", outputs)


def steps_of(
    plan: RowPatternPlan, events: Sequence[Event], labels: Sequence[str]
) -> dict[str, list[TakenEvent]]:
    """Events by variable, in the order of the pattern; ``labels``: what each was taken as."""
    steps: dict[str, list[TakenEvent]] = {name: [] for name in plan.query.variables}
    for event, label in zip(events, labels, strict=True):
        steps[label].append(_taken(event))
    return {name: taken for name, taken in steps.items() if taken}


def _taken(event: Event) -> TakenEvent:
    return TakenEvent(event.at, event.time, type=event.type)
