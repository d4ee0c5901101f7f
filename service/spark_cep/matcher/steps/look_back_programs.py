"""Programs of conditions that look back: what has no operation is a call of Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_cep.columns.compilation import NONE
from spark_cep.columns.representation import MOST_WHOLE_DIGITS, is_whole_decimal
from spark_cep.compiler.plan import LookBackAtom, Plan
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.pattern.expressions import ALL_STEPS, ColumnPath, Expression, LookBack
from spark_cep.pattern.expressions.checking.types import Typing
from spark_cep.pattern.expressions.functions.aggregation import COUNT_DISTINCT
from spark_cep.pattern.expressions.nodes import Column, Literal, Node, Reference, walk
from spark_cep.pattern.types import BOOLEAN, DOUBLE, FLOAT, STRING, DecimalType, SqlType
from spark_cep.programs.loops import expression_loop as op
from spark_cep.programs.loops.aggregate_loop import AGGREGATES, SPREADS
from spark_cep.programs.program_writer import Writer
from spark_cep.programs.programs import Look, Program, PythonCall
from spark_cep.programs.supported_types import AS_WHOLE, Unsupported, supported

_FUNCTIONS = {
    "FIRST": op.FIRST,
    "LAST": op.LAST,
    COUNT_DISTINCT: op.COUNT_DISTINCT,
    **AGGREGATES,
    **SPREADS,
}


def program(
    atom: LookBackAtom, plan: Plan, slots: Mapping[Any, int], types: RecordTypes
) -> Program:
    """The condition as a program. ``slots``: numbers of columns by inputs, record type and path."""
    found = _LookBackWriter(atom, plan, slots, types).program(atom.expression)
    assert found is not None
    return found


class _LookBackWriter(Writer):
    """Writes with look-backs and calls of Python."""

    def __init__(
        self, atom: LookBackAtom, plan: Plan, slots: Mapping[Any, int], types: RecordTypes
    ) -> None:
        events, of_type = plan.rule.events, atom.of_type
        self._plan, self._slots = plan, slots
        self._steps = types.by_step(plan)
        super().__init__(
            Typing(types.of(events, of_type), self._steps),
            lambda path: slots[events, of_type, path],
        )

    def program(self, expression: Expression) -> Program | None:
        """The whole condition: one call of Python where nothing of it is compiled, or where it
        needs more room than the stack has."""
        found = super().program(expression)
        if found is None:
            self._reset((0, 0, 0, 0, frozenset(), False))
            self._call_python(expression.node, BOOLEAN)
            found = Program(
                tuple(self.operations), tuple(self.looks), (), tuple(self.calls),
                frozenset(self.columns), orders_texts=self.orders_texts,
            )  # fmt: skip
        return found

    def _python(self, node: Node) -> SqlType:
        kind = self._typing.type_of(node)
        if isinstance(node, (Column, Reference, Literal)):
            # On its own it is nothing that could be computed with.
            raise Unsupported
        if kind in (*AS_WHOLE, DOUBLE) or is_whole_decimal(kind):
            self._call_python(node, kind)
            return kind
        raise Unsupported

    def _call_python(self, node: Node, kind: SqlType) -> None:
        operands: dict[Column | Reference, tuple[int, SqlType]] = {}
        walked: list[LookBack] = []
        for part in walk(node):
            if isinstance(part, Column) and part not in operands:
                column = self._read(self._vectors(part.path))
                self._add(op.COLUMN, column)
                operands[part] = column, self._typing.stored_type(part)
            elif isinstance(part, Reference) and part not in operands:
                if (found := self._stacked(part)) is None:
                    walked.append(part.look_back)
                else:
                    operands[part] = found
        self._add(op.CALL, len(operands), len(self.calls))
        rows = tuple((part, column, of) for part, (column, of) in operands.items())
        self.calls.append(PythonCall(node, kind, rows, tuple(dict.fromkeys(walked))))

    def _stacked(self, node: Reference) -> tuple[int, SqlType] | None:
        """Write a look-back whose value the machine finds; ``None``: Python has to."""
        look_back = node.look_back
        mark = self._mark()
        if look_back.function in ("FIRST", "LAST"):
            argument = look_back.argument
            if (
                argument is None
                or look_back.step == ALL_STEPS
                or not isinstance(argument.node, Column)
            ):
                return None
            typing = Typing(self._steps.get(look_back.step), None)
            kind = typing.stored_type(argument.node)
            number = self._read(self._slot_of(look_back.step, argument.node.path))
            self._add_look(look_back, number, double=kind in (DOUBLE, FLOAT))
            return number, kind
        try:
            return NONE, self._look_back(node, look_back)
        except Unsupported:
            self._reset(mark)
            return None

    def _slot_of(self, step: str, path: ColumnPath) -> int:
        return self._slots[self._plan.rule.events, self._plan.type_of(step), path]

    def _look_back(self, node: Node, look_back: LookBack) -> SqlType:
        step, function = look_back.step, look_back.function
        if function not in _FUNCTIONS:
            raise Unsupported
        kind = self._typing.type_of(node)
        column, double = NONE, False
        argument = look_back.argument
        if argument is not None:
            # Over all steps a column may have one type here and another there.
            if step == ALL_STEPS or not isinstance(argument.node, Column):
                raise Unsupported
            typing = Typing(self._steps.get(step), None)
            of_argument = supported(typing.type_of(argument.node))
            if isinstance(of_argument, DecimalType):
                if function in SPREADS:
                    raise Unsupported
                kind = self._of_decimals(function, of_argument, kind)
            double = of_argument == DOUBLE
            column = self._read(self._slot_of(step, argument.node.path))
            self.orders_texts |= of_argument == STRING and function in ("MIN", "MAX")
        kind = supported(kind)
        self._add_look(look_back, column, double=double, result_double=kind == DOUBLE)
        return kind

    def _of_decimals(self, function: str, argument: DecimalType, kind: SqlType) -> SqlType:
        """The type of a look-back over decimals: of a sum with as many digits as one of all events
        that a key may hold can have."""
        if function == "SUM":
            digits = argument.precision + len(str(self._plan.rule.limits.events))
            if digits > MOST_WHOLE_DIGITS:
                raise Unsupported
            return DecimalType(digits, argument.scale)
        if function == "AVG":
            raise Unsupported
        return kind

    def _add_look(
        self, look_back: LookBack, column: int, *, double: bool, result_double: bool | None = None
    ) -> None:
        steps, step = self._plan.steps, look_back.step
        # A step that takes nothing has a number that no event is taken for.
        number = steps.index(step) if step in steps else len(steps)
        number = NONE if step == ALL_STEPS else number
        look = Look(_FUNCTIONS[look_back.function], number, column, look_back.offset, double)
        if look not in self.looks:
            self.looks.append(look)
        as_double = double if result_double is None else result_double
        self._add(op.LOOK_BACK, self.looks.index(look), double=as_double)
