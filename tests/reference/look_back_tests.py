"""The conditions that look back, evaluated one at a time over linked chains."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spark_cep.compiler.plan import AnyAtom, EventAtom, GapAtom, LookBackAtom, Plan
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Slot
from spark_cep.matcher.findings.partial import Taken
from spark_cep.model import Event
from spark_cep.pattern.expressions import bind
from tests.reference.look_back import LookBacks

#: ``last`` is ``None`` while nothing has been taken.
Test = Callable[[Taken | None, Event], bool]


class LookBackTests(LookBacks):
    """The look-back atoms of one plan, with their bits."""

    def __init__(self, plan: Plan, slots: Sequence[Slot], types: RecordTypes) -> None:
        super().__init__(plan, slots, types)
        self.tests: tuple[tuple[int, AnyAtom, Test], ...] = tuple(
            (1 << number, atom, self._test(atom))
            for number, atom in enumerate(plan.atoms)
            if not isinstance(atom, EventAtom)
        )

    def _test(self, atom: AnyAtom) -> Test:
        if isinstance(atom, GapAtom):
            gap = atom.gap_ms
            return lambda last, event: last is None or event.time - last.event.time < gap
        assert isinstance(atom, LookBackAtom)
        expression = atom.expression
        readers = tuple(self._reader(look_back) for look_back in expression.look_backs)
        value = bind(
            expression,
            self._columns(expression.columns, atom.of_type),
            {look_back: number for number, look_back in enumerate(expression.look_backs)},
            self._types.of(self._plan.rule.events, atom.of_type),
            self._step_types,
        )
        if len(readers) == 1:
            only = readers[0]
            return lambda last, event: value(event.columns, (only(last),)) is True
        return lambda last, event: (
            value(event.columns, [reader(last) for reader in readers]) is True
        )
