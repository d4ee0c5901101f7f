"""Findings of rules of steps as output values: matches and timeouts as columns, dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

import numpy as np

from spark_cep.columns.compilation import I32, I64
from spark_cep.columns.vectors import Bytes, Vector, concatenated, places_of
from spark_cep.compiler.plan import Plan
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning, column_path, slot_numbers
from spark_cep.matcher.batch.events import EventTable, Names, SlotType
from spark_cep.matcher.engine import MOST_TAKEN_EVENTS
from spark_cep.matcher.findings.chains import Chains, weights
from spark_cep.matcher.findings.found import Failure
from spark_cep.matcher.findings.measures import Measures
from spark_cep.matcher.findings.named_values import NamedValues, OfType
from spark_cep.matcher.findings.outputs import Outputs, Reporter
from spark_cep.matcher.findings.results import Emitted, ResultKind, Results
from spark_cep.matcher.steps.matcher import Findings
from spark_cep.pattern.expressions import ColumnPath
from spark_cep.pattern.types import SqlType


class StepReporter:
    """Turns what rules of steps have found into output values."""

    def __init__(
        self, partitioning: Partitioning, slots: Sequence[SlotType], types: RecordTypes
    ) -> None:
        plans, numbers = partitioning.step_plans, slot_numbers(partitioning.slots)
        self._plans, self._slots = plans, slots
        self._reporters = [Reporter(plan.rule) for plan in plans]
        self._measures = [Measures(plan, slots, numbers, types) for plan in plans]
        self._measure_names, self._measure_name, self._measure_count = _numbered(
            [[*plan.rule.emit.measures] for plan in plans]
        )
        columns = [_emitted_columns(plan, numbers) for plan in plans]
        self._column_names, self._column_name, self._column_count = _numbered(
            [[name for name, _ in emitted] for emitted in columns]
        )
        self._column_slot = np.array([slot for each in columns for _, slot in each], np.int64)
        self._payload = np.array([plan.rule.emit.events == "all" for plan in plans], bool)

    def columns(
        self, findings: Findings, keys: Bytes, events: EventTable, names: Names
    ) -> Iterator[Outputs]:
        """Yield matches and timeouts in pieces of bounded size."""
        if not (len(findings.match_rule) or len(findings.timeout_rule)):
            return
        emits = self._payload.any() or self._measure_count.any() or self._column_count.any()
        weight = weights(events, coordinates_alone=not emits)
        emitted = self._emitted(events)
        never = np.zeros(len(findings.match_rule), np.uint8)
        for kind, what, chains, rule, key, time, already_matched in (
            (ResultKind.MATCH, "matched", findings.match_chains, findings.match_rule,
             findings.match_key, findings.match_time, never),
            (ResultKind.TIMEOUT, "timed_out", findings.timeout_chains, findings.timeout_rule,
             findings.timeout_key, findings.timeout_deadline, findings.timeout_matched),
        ):  # fmt: skip
            if not len(rule):
                continue
            for rows, whole in chains.cut(weight, MOST_TAKEN_EVENTS):
                outputs, rules = Outputs(), rule[rows]
                measures = self._evaluate(rules, whole, events, names, outputs)
                piece, omitted = whole, np.zeros(len(rules), np.int64)
                if kind is ResultKind.TIMEOUT:
                    piece, omitted = whole.listed()
                results = Results.of(
                    kind, self._plans, keys, names, rules, key[rows], time[rows],
                    already_matched[rows], omitted, piece, events, measures, emitted,
                )  # fmt: skip
                outputs.results.append(results)
                counts = np.bincount(rules)
                for number in np.flatnonzero(counts).tolist():
                    self.count(number, {what: int(counts[number])}, outputs)
                yield outputs

    def count(self, rule: int, counted: dict[str, int], outputs: Outputs) -> None:
        """Add counts of a rule to ``outputs``."""
        self._reporters[rule].count(counted, outputs)

    def failed(self, rule: int, failure: Failure, outputs: Outputs) -> None:
        """Append a dead letter."""
        self._failed(rule, failure, outputs)
        self.count(rule, {"failed": 1}, outputs)

    def _failed(self, rule: int, failure: Failure, outputs: Outputs) -> None:
        self._reporters[rule].dead_letter(
            outputs, failure.reason, failure.event, failure.detail, failure.step
        )

    def _evaluate(
        self, rule: I32, chains: Chains, events: EventTable, names: Names, outputs: Outputs
    ) -> NamedValues:
        """The measures of results; those that cannot be computed are NULL, and dead letters."""
        counts = self._measure_count[rule]
        ends = np.cumsum(counts)
        found: dict[SqlType | None, list[tuple[I64, Vector]]] = {}
        failed: list[tuple[int, str, Exception]] = []
        for number in np.unique(rule[counts > 0]).tolist():
            rows = np.flatnonzero(rule == number)
            measures = self._measures[number].of(chains.of(rows), events)
            for place, (measure, uncomputed) in enumerate(measures):
                first = ends[rows] - counts[rows]
                found.setdefault(measure.kind, []).append((first + place, measure.values))
                failed += [(int(rows[row]), measure.name, error) for row, error in uncomputed]
        event = events.objects(names, self._slots)
        for row, name, error in sorted(failed, key=itemgetter(0)):
            last = event(int(chains.events[chains.ends[row] - 1]))
            failure = Failure("measure_failed", None, last, f"{name}: {error!r}")
            self._failed(int(rule[row]), failure, outputs)
        name_of = self._measure_name[places_of(self._measure_count, rule.astype(np.int64))]
        typed = [_together(parts, kind) for kind, parts in found.items()]
        return NamedValues(ends, self._measure_names, name_of, typed)

    def _emitted(self, events: EventTable) -> Emitted:
        def emitted(rule: I32, row: I64) -> tuple[NamedValues | None, Bytes | None]:
            columns = payload = None
            if events.payload is not None and self._payload.any():
                payload = events.payload.take(row)
                payload = Bytes(payload.places, payload.nulls | ~self._payload[rule], payload.data)
            if self._column_count.any():
                columns = self._columns_of(events, rule, row)
            return columns, payload

        return emitted

    def _columns_of(self, events: EventTable, rule: I32, row: I64) -> NamedValues:
        """The emitted columns of events in these rows, by the rules that took them."""
        counts = self._column_count[rule]
        emitted = places_of(self._column_count, rule.astype(np.int64))
        rows, slots = np.repeat(row, counts), self._column_slot[emitted]
        vectors, typed = events.vectors(self._slots), []
        for slot in np.unique(slots).tolist():
            places = np.flatnonzero(slots == slot)
            values = vectors[slot].take(rows[places])
            typed.append(OfType(places, values, self._slots[slot].kind))
        name = self._column_name[emitted]
        return NamedValues(np.cumsum(counts), self._column_names, name, typed)


def _numbered(names: Sequence[Sequence[str]]) -> tuple[list[str], I64, I64]:
    """All names, the number of each of each rule's, and how many each rule has."""
    every = list(dict.fromkeys(name for each in names for name in each))
    numbers = {name: number for number, name in enumerate(every)}
    return (
        every,
        np.array([numbers[name] for each in names for name in each], np.int64),
        np.array([len(each) for each in names], np.int64),
    )


def _emitted_columns(
    plan: Plan, numbers: Mapping[tuple[tuple[str, ...], str | None, ColumnPath], int]
) -> list[tuple[str, int]]:
    """The columns that a rule emits of each event, and the places of these among all."""
    emitted = plan.rule.emit.events
    if not isinstance(emitted, tuple):
        return []
    return [(name, numbers[plan.rule.events, None, column_path(name)]) for name in emitted]


def _together(parts: Sequence[tuple[I64, Vector]], kind: SqlType | None) -> OfType:
    """Values of one type with their places, in the order of these."""
    places = np.concatenate([place for place, _ in parts])
    order = np.argsort(places)
    return OfType(places[order], concatenated([values for _, values in parts]).take(order), kind)
