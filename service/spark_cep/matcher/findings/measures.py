"""Measures of rules of steps: values computed of the events of each result, column by column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import (
    Flags,
    Numbers,
    Objects,
    Vector,
    nulls_of,
    reader,
    values_at,
    with_nulls,
)
from spark_cep.compiler.plan import Plan
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.matcher.batch.events import EventTable, SlotType
from spark_cep.matcher.findings.aggregates import aggregate_column
from spark_cep.matcher.findings.chains import Chains, SomeEvents
from spark_cep.matcher.findings.named_values import Measured
from spark_cep.pattern.expressions import (
    ALL_STEPS,
    ColumnPath,
    Expression,
    LookBack,
    aggregate,
    bind,
)
from spark_cep.pattern.expressions.functions.aggregation import PICKS
from spark_cep.pattern.expressions.nodes import Column, Reference
from spark_cep.pattern.types import BIGINT, SqlType


class Uncomputed(NamedTuple):
    """A value that could not be computed, and is NULL: the place of its result, and the error."""

    row: int
    error: Exception


class _TakenEvents:
    """The events of some results. ``chains`` has those of each result."""

    def __init__(self, chains: Chains, events: EventTable, slots: Sequence[SlotType]) -> None:
        self.results = len(chains.ends)
        self._chains, self._slots = chains, slots
        self._vectors = events.vectors(slots)
        self._by_step: dict[int | None, SomeEvents] = {}
        self._values: dict[tuple[int | None, int], list[Any]] = {}

    def of_step(self, step: int | None) -> SomeEvents:
        """The events of a step, or of all steps."""
        if step not in self._by_step:
            steps = self._chains.steps
            mine = np.ones(len(steps), bool) if step is None else steps == step
            self._by_step[step] = self._chains.some(mine)
        return self._by_step[step]

    def column(self, slot: int) -> tuple[Vector, SqlType | None]:
        """A column of all events, and its type."""
        return self._vectors[slot], self._slots[slot].kind

    def values(self, step: int | None, slot: int) -> list[Any]:
        """The values of a column at all events of a step."""
        if (step, slot) not in self._values:
            found = values_at(*self.column(slot), self.of_step(step).events)
            self._values[step, slot] = found
        return self._values[step, slot]


#: Gives a look-back's values of all results, or the function that computes that of one.
_Look = Callable[[_TakenEvents], Measured | Callable[[int], Any]]
_Compute = Callable[[Sequence[Any], Sequence[Any]], Any]


class Measures:
    """The measures of one plan. ``slots`` are the columns of events, ``numbers`` their places
    (:func:`~spark_cep.compiler.rule_set.slot_numbers`)."""

    def __init__(
        self,
        plan: Plan,
        slots: Sequence[SlotType],
        numbers: Mapping[tuple[tuple[str, ...], str | None, ColumnPath], int],
        types: RecordTypes,
    ) -> None:
        self._plan = plan
        self._step_types = types.by_step(plan)
        self._slots, self._numbers = slots, numbers
        self._steps = {name: number for number, name in enumerate(plan.steps)}
        self._measures = [
            (name, *self._bound(expression)) for name, expression in plan.rule.emit.measures.items()
        ]

    def of(self, chains: Chains, events: EventTable) -> Iterator[tuple[Measured, list[Uncomputed]]]:
        """Yield each measure of the results that have taken ``chains`` of ``events``, and which of
        its values could not be computed."""
        taken = _TakenEvents(chains, events, self._slots)
        for name, look_backs, compute in self._measures:
            found = [look_back(taken) for look_back in look_backs]
            if compute is None and isinstance(found[0], Measured):
                yield found[0]._replace(name=name), []
                continue
            read = [
                reader(each.values, each.kind) if isinstance(each, Measured) else each
                for each in found
            ]
            values: list[Any] = []
            uncomputed: list[Uncomputed] = []
            for row in range(taken.results):
                value = None
                try:
                    values_of_row = [each(row) for each in read]
                    value = compute((), values_of_row) if compute else values_of_row[0]
                except Exception as error:  # noqa: BLE001  a rule's fault must not stop the job
                    uncomputed.append(Uncomputed(row, error))
                values.append(value)
            yield Measured(name, Objects(values), None), uncomputed

    def _bound(self, expression: Expression) -> tuple[list[_Look], _Compute | None]:
        """An expression's look-backs, and what it computes of them; ``None``: nothing more."""
        look_backs = [self._look_back(each) for each in expression.look_backs]
        if isinstance(expression.node, Reference):
            return look_backs, None
        numbers = {look_back: number for number, look_back in enumerate(expression.look_backs)}
        return look_backs, bind(expression, {}, numbers, None, self._step_types)

    def _look_back(self, look_back: LookBack) -> _Look:
        step = None if look_back.step == ALL_STEPS else self._steps.get(look_back.step, -1)
        argument = look_back.argument
        if argument is None:
            return lambda taken: _counts(taken.of_step(step))
        of_type = None if step is None else self._plan.type_of(look_back.step)
        events = self._plan.rule.events
        slots = {path: self._numbers[events, of_type, path] for path in argument.columns}
        if not isinstance(argument.node, Column):
            event = self._step_types.get(look_back.step)
            compute = bind(argument, {path: at for at, path in enumerate(slots)}, {}, event)
            return lambda taken: _of_expression(taken, step, look_back, [*slots.values()], compute)
        (slot,) = slots.values()
        if look_back.function in PICKS:
            return lambda taken: _picked(taken, step, look_back, slot)
        return lambda taken: _aggregated(taken, step, look_back, slot)


def _counts(of_step: SomeEvents) -> Measured:
    counts = of_step.end - of_step.first
    return Measured("", Numbers(counts, np.zeros(len(counts), bool)), BIGINT)


def _pick(of_step: SomeEvents, look_back: LookBack) -> tuple[I64, Flags]:
    """The place of the event that FIRST or LAST picks, and where there is none."""
    offset = look_back.offset
    place = of_step.first + offset if look_back.function == "FIRST" else of_step.end - 1 - offset
    return place, (place < of_step.first) | (place >= of_step.end)


def _picked(taken: _TakenEvents, step: int | None, look_back: LookBack, slot: int) -> Measured:
    of_step = taken.of_step(step)
    place, absent = _pick(of_step, look_back)
    vector, kind = taken.column(slot)
    if absent.all():
        return Measured("", nulls_of(kind, len(place)), kind)
    found = vector.take(of_step.events[np.where(absent, 0, place)])
    return Measured("", with_nulls(found, absent), kind)


def _aggregated(
    taken: _TakenEvents, step: int | None, look_back: LookBack, slot: int
) -> Measured | Callable[[int], Any]:
    of_step = taken.of_step(step)
    found = aggregate_column(look_back.function, *taken.column(slot), of_step)
    if found is not None:
        return Measured("", *found)
    values = taken.values(step, slot)
    _, first, end = of_step
    return lambda row: aggregate(look_back, values[first[row] : end[row]])


def _of_expression(
    taken: _TakenEvents, step: int | None, look_back: LookBack, slots: Sequence[int],
    compute: _Compute,
) -> Callable[[int], Any]:  # fmt: skip
    """A look-back over what is computed of each event."""
    of_step = taken.of_step(step)
    columns = [taken.values(step, slot) for slot in slots]

    def at(place: int) -> Any:
        return compute([column[place] for column in columns], ())

    if look_back.function in PICKS:
        place, absent = _pick(of_step, look_back)
        return lambda row: None if absent[row] else at(place[row])
    _, first, end = of_step
    return lambda row: aggregate(look_back, [at(place) for place in range(first[row], end[row])])
