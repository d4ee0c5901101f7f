"""Evaluates what reads the events of a match: measures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from spark_cep.compiler.plan import Plan
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Slot, column_path
from spark_cep.matcher.findings.partial import Taken
from spark_cep.model import Event
from spark_cep.pattern.expressions import (
    ALL_STEPS,
    ColumnPath,
    Expression,
    LookBack,
    aggregate,
    bind,
)

_Reader = Callable[[Taken | None], Any]


class LookBacks:
    """The measures of one plan, bound to a slot numbering."""

    def __init__(self, plan: Plan, slots: Sequence[Slot], types: RecordTypes) -> None:
        self._plan = plan
        self._types = types
        self._step_types = types.by_step(plan)
        self._slots = {(s.events, s.of_type, s.path): number for number, s in enumerate(slots)}
        self._steps = {name: number for number, name in enumerate(plan.steps)}
        self.measures: tuple[tuple[str, _Reader], ...] = tuple(
            (name, self._measure(expression))
            for name, expression in plan.rule.emit.measures.items()
        )
        emitted = plan.rule.emit.events
        self.emitted_columns: tuple[tuple[str, int], ...] = (
            tuple(
                (name, self._slots[plan.rule.events, None, column_path(name)]) for name in emitted
            )
            if isinstance(emitted, tuple)
            else ()
        )

    def _columns(
        self, paths: Iterable[ColumnPath], of_type: str | None
    ) -> Mapping[ColumnPath, int]:
        return {path: self._slots[(self._plan.rule.events, of_type, path)] for path in paths}

    def _measure(self, expression: Expression) -> _Reader:
        readers = tuple(self._reader(look_back) for look_back in expression.look_backs)
        numbers = {look_back: number for number, look_back in enumerate(expression.look_backs)}
        value = bind(expression, {}, numbers, None, self._step_types)
        return lambda last: value((), [reader(last) for reader in readers])

    def _reader(self, look_back: LookBack) -> _Reader:
        step = None if look_back.step == ALL_STEPS else self._steps.get(look_back.step, -1)
        argument = look_back.argument
        if argument is None:
            return lambda last: aggregate(look_back, _events(last, step))
        of_type = None if step is None else self._plan.type_of(look_back.step)
        event = self._step_types.get(look_back.step)
        read = bind(argument, self._columns(argument.columns, of_type), {}, event)
        if look_back.function == "LAST":
            return lambda last: _nth_last(last, step, look_back.offset, read)
        return lambda last: aggregate(
            look_back, [read(event.columns, ()) for event in _events(last, step)]
        )


def _events(last: Taken | None, step: int | None) -> list[Event]:
    chain = last.chain() if last is not None else ()
    events = [t.event for t in chain if step is None or t.step == step]
    events.reverse()
    return events


def _nth_last(
    last: Taken | None,
    step: int | None,
    offset: int,
    read: Callable[[Sequence[Any], Sequence[Any]], Any],
) -> Any:
    for taken in last.chain() if last is not None else ():
        if step is None or taken.step == step:
            if offset == 0:
                return read(taken.event.columns, ())
            offset -= 1
    return None
