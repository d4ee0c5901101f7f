"""Results of row patterns as output values: matches and timeouts as columns, rows, dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from spark_cep.columns.compilation import I64, NONE
from spark_cep.columns.vectors import Bytes
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.matcher.engine import MOST_TAKEN_EVENTS
from spark_cep.matcher.findings.chains import Chains, weights
from spark_cep.matcher.findings.named_values import Measured, NamedValues
from spark_cep.matcher.findings.outputs import Outputs, Reporter
from spark_cep.matcher.findings.result_rows import ResultRows
from spark_cep.matcher.findings.results import ResultKind, Results
from spark_cep.matcher.row_pattern.found import RunFindings
from spark_cep.matcher.row_pattern.loops import tables
from spark_cep.model import Event


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
            yield from self._rows(found, matched, keys)
        yield self._dead_letters(found)

    def _columns(
        self, found: RunFindings, kind: ResultKind, numbers: I64, keys: Bytes
    ) -> Iterator[Outputs]:
        """Yield the results with these numbers."""
        if not len(numbers):
            return
        what = "matched" if kind is ResultKind.MATCH else "timed_out"
        measures = found.columns if kind is ResultKind.MATCH else []
        weight = weights(found.events, coordinates_alone=not measures)
        for rows, chains in found.chains(numbers).cut(weight, MOST_TAKEN_EVENTS):
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
        time, omitted = found.results["detail"][numbers], found.results["number"][numbers]
        if kind is ResultKind.MATCH:
            omitted = np.zeros(count, np.int64)
            time = events.time[chains.events[chains.ends - 1]]
        return Results.of(
            kind, (self._plan,), keys, found.names, np.zeros(count, np.int32),
            found.results["key"][numbers], time, np.zeros(count, np.uint8), omitted, chains, events,
            NamedValues.of_columns(measures, count),
        )  # fmt: skip

    def _rows(self, found: RunFindings, matched: I64, keys: Bytes) -> Iterator[Outputs]:
        """Yield the rows of the result, those that no match covers among them."""
        outputs, output = Outputs(), found.output
        self.count({"matched": len(matched)}, outputs)
        yield outputs
        if not len(output.event):
            return
        variable = found.variables
        rows = Chains(np.arange(1, len(output.event) + 1), variable, output.event.astype(np.int32))
        coordinates = replace(found.events, columns=None, payload=None, micros=None)
        for piece, _ in rows.cut(weights(found.events), MOST_TAKEN_EVENTS):
            result = output.result[piece]
            # Rows are in the order of results.
            low, high = np.searchsorted(matched, (result[0], result[-1] + 1))
            covering = matched[low:high]
            match = np.searchsorted(covering, result)
            match[found.results["kind"][result] != tables.MATCH] = NONE
            columns = [each._replace(values=each.values.take(piece)) for each in found.columns]
            matches = self._results(found, ResultKind.MATCH, covering, found.chains(covering), keys)
            yield Outputs(
                results=[
                    ResultRows(
                        self._plan, matches, keys, found.names, match,
                        found.results["key"][result].astype(np.int64), output.current[piece] + 1,
                        variable[piece], coordinates.take(output.event[piece]),
                        NamedValues.of_columns(columns, len(result)),
                    )
                ]
            )  # fmt: skip

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
