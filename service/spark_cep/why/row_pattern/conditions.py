"""The conditions of a rule in SQL on one row: their truth, and the parts that stood in the way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.compiler.row_pattern.program import End, Label
from spark_cep.matcher.row_pattern.python_calls.evaluation import (
    Binder,
    NotYetKnownError,
    Value,
    View,
)
from spark_cep.model import Coordinates, Event
from spark_cep.pattern.expressions import Expression
from spark_cep.pattern.expressions.canonical import expression as expression_of
from spark_cep.pattern.expressions.canonical import row_value_text
from spark_cep.pattern.expressions.nodes import RowReference, RowValue
from spark_cep.why.account import Passed, Unmet
from spark_cep.why.parts import ConditionPart, WatchedPlan


class AttemptConditions:
    """The conditions of one plan. What a part reads of other rows is computed by the functions with
    which the matcher computes what it has no program for, and measures."""

    def __init__(self, watched: WatchedPlan) -> None:
        assert isinstance(watched.plan, RowPatternPlan)
        self.watched, self.plan = watched, watched.plan
        paths = [slot.path for slot in watched.partitioning.slots]
        self._places = [paths.index(path) for path in self.plan.columns]
        binder = Binder(self.plan)
        self.value: Callable[[Expression], Value] = cache(binder.expression)

    def row(self, event: Event) -> Event:
        """The event with the columns of the plan."""
        return event._replace(columns=[event.columns[place] for place in self._places])

    def first_variables(self) -> list[str]:
        """The variables that a match may begin with."""
        program = self.plan.program
        todo, seen, found = [0], {0}, dict[str, None]()
        while todo:
            at = todo.pop(0)
            instruction = program.instructions[at]
            if isinstance(instruction, Label):
                found[self.plan.query.variables[instruction.variable]] = None
            elif not isinstance(instruction, End):
                new = [each for each in program.successors(at) if each not in seen]
                seen.update(new)
                todo += new
        return list(found)


@dataclass(frozen=True)
class AttemptRows:
    """The rows of a key that are kept, from number ``base`` on, and the mask of each event."""

    conditions: AttemptConditions
    base: int
    events: Sequence[Event]
    masks: Mapping[Coordinates, int]
    match_number: int

    def row(self, number: int) -> Event:
        """A row as conditions read it."""
        return self.conditions.row(self.events[number - self.base])

    @property
    def end(self) -> int:
        """The number of the row that would come next."""
        return self.base + len(self.events)

    def passed(self, start: int, labels: tuple[int, ...], variable: str) -> Passed:
        """Why the row behind those taken could not be ``variable``."""
        names = self.conditions.plan.query.variables
        current = start + len(labels)
        condition = self.conditions.plan.query.defines.get(variable)
        if condition is None or current >= self.end:
            return Passed(variable, (), unknown=True)
        label = names.index(variable)
        view = View(
            self, start, (*labels, label), current, self.match_number, self.end, ended=False
        )
        try:
            unmet = tuple(self._unmet(ConditionPart.of(condition), view))
        except NotYetKnownError:
            return Passed(variable, (), unknown=True)
        return Passed(variable, unmet, unknown=not unmet)

    def parts(
        self, start: int, variable: str
    ) -> Iterator[tuple[str, str, bool, Mapping[str, Any]]]:
        """The parts of a first variable's condition on a row: whether each is true, and the values
        seen."""
        condition = self.conditions.plan.query.defines.get(variable)
        if condition is None:
            return
        label = self.conditions.plan.query.variables.index(variable)
        view = View(self, start, (label,), start, self.match_number, self.end, ended=False)
        for leaf in ConditionPart.of(condition).leaves:
            try:
                true, values = self._holds(ConditionPart(leaf), view), self._values(leaf, view)
            except NotYetKnownError:
                continue
            yield variable, _written(leaf), true, values

    def where(self, event: Event) -> tuple[Unmet, ...]:
        """The parts of WHERE that are not true of an event."""
        where = self.conditions.plan.query.where
        if where is None:
            return ()
        mask, watched = self.masks[event.at], self.conditions.watched
        return tuple(
            Unmet(_written(leaf), watched.values(event, sorted(leaf.columns)))
            for leaf in ConditionPart.of(where).leaves
            if not mask & watched.bit(None, leaf)
        )

    def _unmet(self, part: ConditionPart, view: View) -> Iterator[Unmet]:
        if part.operator == "OR" and any(self._holds(each, view) for each in part.parts):
            return
        for each in part.parts:
            yield from self._unmet(each, view)
        if not part.parts and not self._holds(part, view):
            yield Unmet(_written(part.expression), self._values(part.expression, view))

    def _holds(self, part: ConditionPart, view: View) -> bool:
        if part.operator:
            join = all if part.operator == "AND" else any
            return join(self._holds(each, view) for each in part.parts)
        leaf = part.expression
        if leaf.is_event_only:
            event = self.events[view.current - self.base]
            return bool(self.masks[event.at] & self.conditions.watched.bit(None, leaf))
        return self._value(leaf, view) is True

    def _values(self, leaf: Expression, view: View) -> dict[str, Any]:
        event = self.events[view.current - self.base]
        found = self.conditions.watched.values(event, sorted(leaf.columns))
        for each in leaf.row_values:
            found[_value_written(each)] = self._value(expression_of(RowReference(each)), view)
        return found

    def _value(self, expression: Expression, view: View) -> Any:
        try:
            return self.conditions.value(expression)(view)
        except NotYetKnownError:
            raise
        except Exception as error:  # noqa: BLE001  as in the matcher, it is not true
            return repr(error)


#: Navigation from the row under test, which authors write without LAST.
_FROM_ROW = re.compile(r"(PREV|NEXT)\(LAST\(([^(),]+)\), (\d+)\)")


def _written(part: Expression) -> str:
    """A condition as authors write it: canonical text says what is RUNNING everywhere."""
    text = part.canonical
    for value in part.row_values:
        text = text.replace(row_value_text(value), _value_written(value))
    return text


def _value_written(value: RowValue) -> str:
    text = row_value_text(value).replace("RUNNING ", "")
    found = _FROM_ROW.fullmatch(text)
    if found is None:
        return text
    name, column, rows = found.groups()
    return f"{name}({column})" if rows == "1" else f"{name}({column}, {rows})"
