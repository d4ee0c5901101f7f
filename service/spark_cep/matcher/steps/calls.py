"""Calls of Python out of the compiled loop, for the parts of conditions that have no operation.

The loop puts a call's operands onto the stack and calls; the result takes the place of the first
one. A call whose computation fails makes the condition not true of the event, and is told of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spark_cep.columns.compilation import NONE, Table
from spark_cep.columns.representation import Representation, from_whole, representation, to_whole
from spark_cep.columns.texts import Texts
from spark_cep.columns.vectors import Objects, Vector, reader
from spark_cep.compiler.plan import LookBackAtom, Plan
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.matcher.batch.events import SlotType
from spark_cep.pattern.expressions import ALL_STEPS, ColumnPath, LookBack, aggregate, bind
from spark_cep.pattern.expressions.canonical import expression as expression_of
from spark_cep.pattern.expressions.functions.accumulators import Accumulator
from spark_cep.pattern.expressions.functions.aggregation import AGGREGATES, PICKS
from spark_cep.pattern.expressions.nodes import Column, Reference
from spark_cep.pattern.types import BOOLEAN, SqlType
from spark_cep.programs.loops.expression_loop import VALUE
from spark_cep.programs.programs import PythonCall
from spark_cep.programs.python_calls import PythonCalls

#: 64-bit numbers of a value on the stack, and the places of its parts among them.
_WIDTH, _WHOLE, _DOUBLE, _NULL = VALUE.itemsize // 8, 0, 1, 2
#: So many accumulators of a look-back are kept, some more than partial matches usually ask for.
_MOST_ACCUMULATORS = 1 << 14


class BoundCall:
    """One call, bound to the numbers of slots and steps."""

    def __init__(
        self,
        call: PythonCall,
        rule: int,
        atom: LookBackAtom,
        plan: Plan,
        slots: dict[tuple[tuple[str, ...], str | None, ColumnPath], int],
        types: RecordTypes,
    ) -> None:
        self.rule, self.atom, self.kind = rule, atom, call.kind
        events, steps = plan.rule.events, types.by_step(plan)
        columns = [part for part, _, _ in call.operands if isinstance(part, Column)]
        look_backs = [part.look_back for part, _, _ in call.operands if isinstance(part, Reference)]
        look_backs += call.walked
        self.operands = call.operands
        self.walked = [
            _Walk(each, plan, slots, types, events) for each in call.walked
        ]  # fmt: skip
        self.value = bind(
            expression_of(call.node),
            {part.path: place for place, part in enumerate(columns)},
            {each: place for place, each in enumerate(look_backs)},
            types.of(events, atom.of_type),
            steps,
        )


class _Walk:
    """A look-back whose events Python goes through."""

    def __init__(
        self,
        look_back: LookBack,
        plan: Plan,
        slots: dict[tuple[tuple[str, ...], str | None, ColumnPath], int],
        types: RecordTypes,
        events: tuple[str, ...],
    ) -> None:
        everything = look_back.step == ALL_STEPS
        of_type = None if everything else plan.type_of(look_back.step)
        argument = look_back.argument
        assert argument is not None
        self.look_back = look_back
        steps = plan.steps
        self.step = NONE
        if not everything:
            known = look_back.step in steps
            self.step = steps.index(look_back.step) if known else len(steps)
        paths = sorted(argument.columns)
        self.slots = [slots[events, of_type, path] for path in paths]
        event = types.by_step(plan).get(look_back.step)
        self.read = bind(argument, {path: place for place, path in enumerate(paths)}, {}, event)


class StepCalls(PythonCalls):
    """The calls of one run; the compiled loop is handed this.

    ``stack`` is what the loop works on, ``nodes`` gives the table of nodes as it is now, and
    ``moves`` how often rows of it have moved.
    """

    _failed = 1

    def __init__(
        self,
        bound: Sequence[BoundCall],
        columns: Sequence[Vector],
        slots: Sequence[SlotType],
        texts: Texts,
        stack: Table,
        nodes: Callable[[], Table],
        moves: Callable[[], int],
    ) -> None:
        whole = stack.view(np.int64)
        self._wholes: Any = memoryview(whole)  # type: ignore[arg-type]
        self._doubles: Any = memoryview(whole.view(np.float64))  # type: ignore[arg-type]
        self._bound, self._texts, self._nodes = bound, texts, nodes
        self._columns, self._slots = columns, slots
        self._functions: dict[int, Callable[[int, int], Any]] = {}
        self._readers: dict[int, Callable[[int], Any]] = {}
        self._values: dict[tuple[int, int], Any] = {}
        self._moves, self._moved = moves, 0
        #: By look-back and last node.
        self._accumulators: dict[int, dict[int, Accumulator | None]] = {}
        super().__init__()

    def _compute(self, number: int, _row: int, node: int, more: int) -> int:
        function = self._functions.get(number)
        if function is None:
            function = self._functions[number] = self._function(self._bound[number])
        function(_WIDTH * more, node)
        return 0

    def _failed_at(self, row: int, node: int) -> tuple[int, ...]:
        return row, node

    def _function(self, bound: BoundCall) -> Callable[[int, int], Any]:
        """Return a function that computes a call from its place on the stack and the last node, and
        puts the result there."""
        columns: list[Callable[[int], Any]] = []
        look_backs: list[Callable[[int], Any]] = []
        for place, (part, column, kind) in enumerate(bound.operands):
            read = self._operand(_WIDTH * place, column, kind)
            (columns if isinstance(part, Column) else look_backs).append(read)
        walks, value = bound.walked, bound.value
        put = self._result(bound.kind)

        def compute(at: int, last: int) -> None:
            of_steps = [read(at) for read in look_backs]
            of_steps += [self._walked(walk, last) for walk in walks]
            put(at, value([read(at) for read in columns], of_steps))

        return compute

    def _operand(self, offset: int, column: int, kind: SqlType) -> Callable[[int], Any]:
        """Return a function that reads one operand."""
        wholes, doubles = self._wholes, self._doubles
        null, whole, double = offset + _NULL, offset + _WHOLE, offset + _DOUBLE
        match representation(kind):
            case Representation.DOUBLE:
                return lambda at: None if wholes[at + null] & 1 else doubles[at + double]
            case Representation.TEXT:
                text = self._texts.text
                return lambda at: None if wholes[at + null] & 1 else text(wholes[at + whole])
            case Representation.OBJECT:
                objects = self._columns[column]
                assert isinstance(objects, Objects)
                values = objects.values
                return lambda at: None if wholes[at + null] & 1 else values[wholes[at + whole]]
        convert = from_whole(kind)
        return lambda at: None if wholes[at + null] & 1 else convert(wholes[at + whole])

    def _result(self, kind: SqlType) -> Callable[[int, Any], None]:
        """Return a function that puts a value of this type on the stack."""
        wholes, doubles = self._wholes, self._doubles
        of = representation(kind)
        convert: Callable[[Any], int]
        if kind == BOOLEAN:
            convert = lambda value: value is True  # noqa: E731
        elif of is Representation.TEXT:
            convert = self._texts.number
        elif of is Representation.WHOLE:
            convert = to_whole(kind)
        is_double = of is Representation.DOUBLE

        def put(at: int, value: Any) -> None:
            wholes[at + _NULL] = value is None
            if value is None:
                return
            if is_double:
                doubles[at + _DOUBLE] = float(value)
            else:
                wholes[at + _WHOLE] = convert(value)

        return put

    def _walked(self, walk: _Walk, last: int) -> Any:
        """The value of a look-back over the events behind ``last``."""
        look_back = walk.look_back
        if look_back.function in PICKS:
            return self._picked(walk, last)
        accumulator = self._accumulated(walk, last)
        if accumulator is None:
            return aggregate(look_back, ())
        return accumulator.result()[: look_back.limit] if look_back.limit else accumulator.result()

    def _picked(self, walk: _Walk, last: int) -> Any:
        """The value of FIRST or LAST."""
        look_back = walk.look_back
        nodes = self._nodes()
        steps, events, previous = nodes["step"], nodes["event"], nodes["previous"]
        rows = []
        row = last
        while row != NONE:
            if walk.step in (NONE, steps[row]):
                rows.append(int(events[row]))
                if look_back.function == "LAST" and len(rows) > look_back.offset:
                    return self._value(walk, rows[-1])
            row = int(previous[row])
        if look_back.function == "LAST" or len(rows) <= look_back.offset:
            return None
        return self._value(walk, rows[-1 - look_back.offset])

    def _accumulated(self, walk: _Walk, last: int) -> Accumulator | None:
        """The aggregate of the events up to ``last``; ``None``: of none. It goes on from that of
        the longest beginning of these that has been asked for before."""
        moves = self._moves()
        if moves != self._moved:
            self._moved = moves
            self._accumulators.clear()
        known = self._accumulators.setdefault(id(walk), {})
        if last in known:
            return known[last]
        nodes = self._nodes()
        steps, events, previous = nodes["step"], nodes["event"], nodes["previous"]
        behind, row = [], last
        while row != NONE and row not in known:
            behind.append(row)
            row = int(previous[row])
        found = known.get(row)
        own = False
        for each in reversed(behind):
            if walk.step in (NONE, steps[each]):
                value = self._value(walk, int(events[each]))
                if value is not None:
                    if found is None:
                        found = AGGREGATES[walk.look_back.function].start()
                    elif not own:
                        found = found.copied()
                    own = True
                    found.add(value)
        if len(known) >= _MOST_ACCUMULATORS:
            # The oldest: partial matches have gone on from there.
            del known[next(iter(known))]
        known[last] = found
        return found

    def _value(self, walk: _Walk, event: int) -> Any:
        """The look-back's argument on one event."""
        key = id(walk), event
        if key not in self._values:
            self._values[key] = walk.read([self._column(slot, event) for slot in walk.slots], ())
        return self._values[key]

    def _column(self, slot: int, event: int) -> Any:
        read = self._readers.get(slot)
        if read is None:
            read = self._readers[slot] = reader(self._columns[slot], self._slots[slot].kind)
        return read(event)
