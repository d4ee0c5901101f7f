"""Results of row patterns as output values: matches, rows, timeouts, dead letters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.matcher.findings.live import steps_of
from spark_cep.matcher.findings.outputs import Outputs, Reporter
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
from spark_cep.model import Event, MatchRow, TakenEvent
from spark_cep.pattern.sql.statement import RowsPerMatch

#: Under which an empty match, which takes no row, has the one that it stands before in its id.
_EMPTY = ""


class RowPatternReporter(Reporter):
    """Turns the results of one rule in SQL into output values."""

    def __init__(self, plan: RowPatternPlan) -> None:
        super().__init__(plan.rule)
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
                    self.count({"matched": 1}, outputs)
                    size += 1 + len(result.rows)
                case Unmatched(rows=(row,)):
                    outputs.rows.append(self._row(key, row, None, None))
                    size += 1
                case TimedOut(row=row, deadline=deadline):
                    steps, identity = self._taken(key, row, result.events, result.labels)
                    self.timeout(outputs, key, steps, row.time, deadline, {}, identity=identity)
                    self.count({"timed_out": 1}, outputs)
                    size += 1 + len(result.events)
                case GivenUp(row=row, limit=limit):
                    detail = f"an attempt has {limit}: it is given up"
                    self._failed("limit_reached", row, detail, None, outputs)
                    self.count({"dropped": 1}, outputs)
                case SkipFailed(row=row, fault=fault):
                    why = f"{fault.meaning} ({fault})"
                    detail = f"AFTER MATCH SKIP failed: {why}; match {result.number} of the key"
                    self._failed("skip_failed", row, detail, None, outputs)
        return size

    def failures(self, failures: Iterable[ConditionFailure], outputs: Outputs) -> None:
        """Append conditions that could not be computed."""
        for each in failures:
            self._failed("condition_failed", each.row, each.error, each.variable, outputs)

    def measure_failed(self, name: str, row: Event, error: str, outputs: Outputs) -> None:
        """Append a measure that could not be computed; it is NULL."""
        self._failed("measure_failed", row, f"{name}: {error}", None, outputs)

    def _match(self, key: str | None, found: MatchFound, outputs: Outputs) -> None:
        steps, identity = self._taken(key, found.at, found.events, found.labels)
        if not self._one_row:
            for row in found.rows:
                variable = found.labels[row.place] if found.labels else None
                outputs.rows.append(self._row(key, row, identity, variable))
            return
        time = found.events[-1].time if found.events else found.at.time
        for row in found.rows:  # one, or none of an empty match that is left out
            self.match(
                outputs, key, steps, found.at.time, time, self._values(row), identity=identity
            )

    def _taken(
        self, key: str | None, at: Event, events: Sequence[Event], labels: Sequence[str]
    ) -> tuple[dict[str, list[TakenEvent]], str]:
        """Rows by variable, and the id of what has taken them."""
        names = self._plan.query.variables
        steps = steps_of(names, events, [names.index(label) for label in labels])
        nothing = {_EMPTY: [TakenEvent(at.at, at.time, type=at.type)]}
        return steps, self.identity(key, steps or nothing)

    def _row(
        self,
        key: str | None,
        row: OutputRow,
        identity: str | None,
        variable: str | None,
    ) -> MatchRow:
        event = row.row
        return MatchRow(
            rule_id=self._id,
            rule_version=self._version,
            key=key,
            match_id=identity,
            row=row.place + 1,
            variable=variable,
            event=TakenEvent(event.at, event.time, type=event.type),
            columns=self._values(row),
        )

    def _values(self, row: OutputRow) -> dict[str, Any]:
        return {
            name: row.measures[place] if measure else row.row.columns[place]
            for name, measure, place in self._columns
        }

    def _failed(
        self, reason: str, row: Event, detail: str, variable: str | None, outputs: Outputs
    ) -> None:
        self.dead_letter(outputs, reason, row, detail, variable)
        self.count({"failed": 1}, outputs)
