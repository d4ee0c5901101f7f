"""Conditions as programs for the compiled expression machine.

A program is a row of operations on a small stack. Whole numbers, truth, dates, moments, decimals
(times 10 to their scale) and texts (by number) stand there as 64-bit whole numbers, everything else
that is computed with as DOUBLE. What has no operation of its own (functions, arrays, wide decimals,
look-backs over expressions, columns whose type is not known) becomes *one* operation that calls
Python for the part that needs it (:class:`PythonCall`); the rest of the condition stays compiled.

The answers are those of :mod:`spark_cep.pattern.expressions.evaluation.evaluate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_cep.pattern.expressions import LookBack
from spark_cep.pattern.expressions.nodes import Column, Node, Reference
from spark_cep.pattern.types import SqlType
from spark_cep.programs.loops import expression_loop as op


@dataclass(frozen=True, slots=True)
class Look:
    """One look-back: a function over the ``column`` (``NONE``: the events themselves) of the events
    of ``step`` (``NONE``: of all steps)."""

    function: int
    step: int
    column: int
    offset: int
    double: bool

    @property
    def row(self) -> tuple[int, int, int, int, bool]:
        """Return the row of :data:`spark_cep.programs.loops.expression_loop.LOOK`."""
        return self.function, self.step, self.column, self.offset, self.double


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. ``operand``: a column, a look-back, a call, or a text's place in the program's
    ``texts``; ``value``: a constant."""

    code: int
    operand: int = 0
    value: int | float = 0

    @property
    def row(self) -> tuple[int, float, int, int]:
        """Return the row of :data:`spark_cep.programs.loops.expression_loop.OPERATION`."""
        double = bool(self.code & op.DOUBLE)
        whole = 0 if double else int(self.value)
        return whole, float(self.value) if double else 0.0, self.code, self.operand


@dataclass(frozen=True, slots=True)
class PythonCall:
    """A part of a condition that Python computes, a value of type ``kind``.

    ``operands`` stand on the stack, in order: what each is, the column that it is read from
    (``NONE``: none), and its type. ``walked`` are look-backs whose events Python goes through.
    """

    node: Node
    kind: SqlType
    operands: tuple[tuple[Column | Reference, int, SqlType], ...]
    walked: tuple[LookBack, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A condition's operations, in order, the look-backs, texts and calls that they name, and the
    columns read. ``orders_texts``: texts are compared by their order."""

    operations: tuple[Operation, ...]
    looks: tuple[Look, ...]
    texts: tuple[str, ...]
    calls: tuple[PythonCall, ...]
    columns: frozenset[int]
    orders_texts: bool


def depth(operations: Sequence[Operation]) -> int:
    """Return the largest number of values on the stack."""
    depth = most = 0
    for each in operations:
        code = each.code & (op.DOUBLE - 1)
        if code <= op.LOOK_BACK:
            depth += 1
        elif code == op.CALL:
            depth += 1 - each.operand
        elif code == op.SELECT:
            depth -= 2
        elif code > op.IS_FALSE:
            depth -= 1
        most = max(most, depth)
    return most
