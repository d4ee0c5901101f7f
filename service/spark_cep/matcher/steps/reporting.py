"""Findings of rules of steps as output values: matches and timeouts as columns, dead letters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from spark_cep.columns.compilation import I32, I64
from spark_cep.columns.vectors import Bytes, Objects, places_of
from spark_cep.compiler.plan import Plan
from spark_cep.matcher.batch.events import EventTable, Names, SlotType
from spark_cep.matcher.engine import MOST_TAKEN_EVENTS
from spark_cep.matcher.findings.chains import Chains, weights
from spark_cep.matcher.findings.found import Failure
from spark_cep.matcher.findings.look_back import LookBacks
from spark_cep.matcher.findings.named_values import NamedValues, OfType
from spark_cep.matcher.findings.outputs import Outputs, Reporter
from spark_cep.matcher.findings.partial import Taken
from spark_cep.matcher.findings.results import Emitted, ResultKind, Results
from spark_cep.matcher.steps.matcher import Findings
from spark_cep.model import Event


class StepReporter:
    """Turns what rules of steps have found into output values."""

    def __init__(
        self, plans: Sequence[Plan], look_backs: Sequence[LookBacks], slots: Sequence[SlotType]
    ) -> None:
        self._plans, self._slots = plans, slots
        self._reporters = [Reporter(plan.rule) for plan in plans]
        self._measures = [each.measures for each in look_backs]
        self._measure_names, self._measure_name, self._measure_count = _numbered(
            [[name for name, _ in measures] for measures in self._measures]
        )
        columns = [each.emitted_columns for each in look_backs]
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
        event = events.objects(names, self._slots)
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
                measures = self._evaluate(rules, whole, event, outputs)
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
        self, rule: I32, chains: Chains, event: Callable[[int], Event], outputs: Outputs
    ) -> NamedValues:
        """The measures of results; those that cannot be computed are NULL, and dead letters."""
        counts, values = self._measure_count[rule], list[Any]()
        for row in np.flatnonzero(counts).tolist():
            last, number = _last_taken(chains, row, event), int(rule[row])
            for name, measure in self._measures[number]:
                try:
                    values.append(measure(last))
                except Exception as error:  # noqa: BLE001  a rule's fault must not stop the job
                    values.append(None)
                    detail = f"{name}: {error!r}"
                    failure = Failure("measure_failed", None, last.event, detail)
                    self._failed(number, failure, outputs)
        names = self._measure_name[places_of(self._measure_count, rule.astype(np.int64))]
        objects = OfType(np.arange(len(values)), Objects(values), None)
        return NamedValues(np.cumsum(counts), self._measure_names, names, [objects])

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


def _last_taken(chains: Chains, number: int, event: Callable[[int], Event]) -> Taken:
    """The end of a chain."""
    last = None
    for step, row in chains.chain(number):
        last = Taken(last, step, event(row))
    assert last is not None
    return last
