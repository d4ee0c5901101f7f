"""Results of row patterns as output values: matches and timeouts as columns, rows, dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Bytes, reader
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.matcher.engine import MOST_TAKEN_EVENTS
from spark_cep.matcher.findings.chains import Chains
from spark_cep.matcher.findings.named_values import Measured, NamedValues
from spark_cep.matcher.findings.outputs import Outputs, Reporter
from spark_cep.matcher.findings.results import ResultKind, Results
from spark_cep.matcher.row_pattern.found import RunFindings
from spark_cep.matcher.row_pattern.loops import tables
from spark_cep.model import Event, MatchRow, TakenEvent


class RowPatternReporter(Reporter):
    """Turns what one rule in SQL has found into output values."""

    def __init__(self, plan: RowPatternPlan) -> None:
        super().__init__(plan.rule)
        self._plan = plan

    def outputs(self, found: RunFindings, keys: Bytes) -> Iterator[Outputs]:
        """Yield a piece of what a run found, in pieces of bounded size; ``keys`` by number."""
        kinds = found.results["kind"]
        timed_out = np.flatnonzero(kinds == tables.TIMED_OUT)
        matched = np.flatnonzero(kinds == tables.MATCH)
        yield from self._columns(found, ResultKind.TIMEOUT, timed_out, keys)
        if found.one_row:
            yield from self._columns(found, ResultKind.MATCH, matched, keys)
        else:
            matches = self._results(found, ResultKind.MATCH, matched, found.chains(matched), keys)
            yield from self._rows(found, matches, matched)
        yield self._dead_letters(found)

    def _columns(
        self, found: RunFindings, kind: ResultKind, numbers: I64, keys: Bytes
    ) -> Iterator[Outputs]:
        """Yield the results with these numbers."""
        what = "matched" if kind is ResultKind.MATCH else "timed_out"
        measures = found.columns if kind is ResultKind.MATCH else []
        alike = np.ones(len(found.events), np.int64)
        for rows, chains in found.chains(numbers).cut(alike, MOST_TAKEN_EVENTS):
            mine = [each._replace(values=each.values.take(rows)) for each in measures]
            results = self._results(found, kind, numbers[rows], chains, keys, mine)
            outputs = Outputs(results=[results])
            self.count({what: len(results)}, outputs)
            yield outputs

    def _results(
        self,
        found: RunFindings,
        kind: ResultKind,
        numbers: I64,
        chains: Chains,
        keys: Bytes,
        measures: Sequence[Measured] = (),
    ) -> Results:
        """The results with these numbers, which have taken the events of ``chains``."""
        events, count = found.events, len(numbers)
        time = found.results["detail"][numbers]
        if kind is ResultKind.MATCH:
            time = events.time[chains.events[chains.ends - 1]]
        return Results.of(
            kind, (self._plan,), keys, found.names, np.zeros(count, np.int32),
            found.results["key"][numbers], time, np.zeros(count, np.uint8), chains, events,
            NamedValues.of_columns(measures, count),
        )  # fmt: skip

    def _rows(self, found: RunFindings, matches: Results, matched: I64) -> Iterator[Outputs]:
        """Yield the rows of the result, those that no match covers among them."""
        outputs, output = Outputs(), found.output
        self.count({"matched": len(matched)}, outputs)
        columns = [(each.name, reader(each.values, each.kind)) for each in found.columns]
        number, identity = -1, None
        for at, (result, place, row) in enumerate(
            zip(output.result.tolist(), output.current.tolist(), output.event.tolist(), strict=True)
        ):
            if result != number:
                covered = found.results["kind"][result] == tables.MATCH
                match = matches.result(int(np.searchsorted(matched, result))) if covered else None
                number, identity = result, None if match is None else match.match_id
            event = found.event(row)
            outputs.rows.append(
                MatchRow(
                    rule_id=self._id,
                    rule_version=self._version,
                    key=matches.keys.text(int(found.results["key"][result])),
                    match_id=identity,
                    row=place + 1,
                    variable=found.variable(result, place),
                    event=TakenEvent(event.at, event.time, type=event.type),
                    columns={name: read(at) for name, read in columns},
                )
            )
            if len(outputs.rows) >= MOST_TAKEN_EVENTS:
                yield outputs
                outputs = Outputs()
        yield outputs

    def _dead_letters(self, found: RunFindings) -> Outputs:
        outputs = Outputs()
        for each in found.failures:
            self._failed("condition_failed", each.row, each.error, each.variable, outputs)
        kinds = found.results["kind"]
        for result in np.flatnonzero(kinds == tables.GIVEN_UP).tolist():
            detail = f"an attempt has {found.limit(result)}: it is given up"
            self._failed("limit_reached", found.row(result), detail, None, outputs)
            self.count({"dropped": 1}, outputs)
        for result in np.flatnonzero(kinds == tables.SKIP_FAILED).tolist():
            fault, number = found.fault(result), found.results["number"][result]
            why = f"{fault.meaning} ({fault})"
            detail = f"AFTER MATCH SKIP failed: {why}; match {number} of the key"
            self._failed("skip_failed", found.row(result), detail, None, outputs)
        for name, result, error in found.output.failures:
            # It is NULL.
            self._failed("measure_failed", found.row(result), f"{name}: {error}", None, outputs)
        return outputs

    def _failed(
        self, reason: str, row: Event, detail: str, variable: str | None, outputs: Outputs
    ) -> None:
        self.dead_letter(outputs, reason, row, detail, variable)
        self.count({"failed": 1}, outputs)
