"""Programs of the parts of conditions that read more than their row.

What a program reads of the past, or of rows to come, are *loads*; what they read of a variable's
rows is in *registers* that each thread has. A part that is not written (functions, texts that are
ordered, other aggregates, columns whose type is not known) is one call of Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from spark_cep.columns.compilation import NONE
from spark_cep.matcher.row_pattern.loops import tables
from spark_cep.pattern.expressions import ColumnPath, Expression
from spark_cep.pattern.expressions.checking.types import Typing
from spark_cep.pattern.expressions.nodes import (
    ClassifierAt,
    Column,
    ColumnAt,
    MatchNumber,
    Node,
    RowAggregate,
    RowPosition,
    RowReference,
    RowValue,
)
from spark_cep.pattern.types import DOUBLE, STRING, DecimalType, RecordType, SqlType
from spark_cep.programs.loops import expression_loop as op
from spark_cep.programs.loops.aggregate_loop import AGGREGATES, AVG, COUNT, SUM
from spark_cep.programs.program_writer import Writer
from spark_cep.programs.programs import Program
from spark_cep.programs.supported_types import Unsupported, supported


class Load(NamedTuple):
    """A row of :data:`spark_cep.matcher.row_pattern.loops.tables.LOAD`."""

    code: int
    place: int = 0
    word: int = 0
    offset: int = 0
    shift: int = 0
    column: int = NONE


@dataclass
class Registers:
    """The registers that threads keep of their rows, and the sets of variables that rows belong
    to."""

    variables: tuple[str, ...]
    words: int = 0
    #: By kind, set, and how many words: the first one.
    found: dict[tuple[int, int, int], int] = field(default_factory=dict)
    #: By function, set, column, and whether that is DOUBLE: the number.
    aggregates: dict[tuple[int, int, int, bool], int] = field(default_factory=dict)
    #: By number.
    sets: dict[tuple[str, ...], int] = field(default_factory=dict)

    def set_of(self, variables: tuple[str, ...]) -> int:
        """The number of a set; no variables mean all."""
        return self.sets.setdefault(variables, len(self.sets))

    def word(self, kind: int, variables: tuple[str, ...], words: int) -> int:
        """The place of a register."""
        key = kind, self.set_of(variables), words
        if key not in self.found:
            self.found[key] = self.words
            self.words += words
        return self.found[key]

    def aggregate(
        self, function: int, variables: tuple[str, ...], column: int, *, double: bool
    ) -> int:
        """The number of an aggregate."""
        row = function, self.set_of(variables), column, double
        return self.aggregates.setdefault(row, len(self.aggregates))

    def rows_word(self, position: RowPosition | tuple[str, tuple[str, ...], int]) -> int:
        """The place of the register with the first or last rows that a position may be."""
        if isinstance(position, RowPosition):
            position = position.pick, position.variables, position.offset + 1
        pick, variables, count = position
        kind = tables.LAST_ROWS if pick == "LAST" else tables.FIRST_ROWS
        return self.word(kind, variables, count)


@dataclass(frozen=True)
class LeafProgram:
    """A part of a condition as a program, with its loads."""

    program: Program
    loads: tuple[Load, ...]


def leaf_program(
    expression: Expression,
    event: RecordType | None,
    columns: Callable[[ColumnPath], int],
    registers: Registers,
) -> LeafProgram | None:
    """The part as a program; ``None`` where Python computes it. ``columns`` numbers its columns."""
    writer = _LeafWriter(event, columns, registers)
    program = writer.program(expression)
    return None if program is None else LeafProgram(program, tuple(writer.loads))


class _LeafWriter(Writer):
    """Writes with loads."""

    def __init__(
        self,
        event: RecordType | None,
        columns: Callable[[ColumnPath], int],
        registers: Registers,
    ) -> None:
        super().__init__(Typing(event), columns)
        self.loads: list[Load] = []
        self._registers = registers

    def _compiled(self, node: Node) -> SqlType:
        if not isinstance(node, RowReference):
            return super()._compiled(node)
        kind = supported(self._typing.type_of(node))
        load = self._load(node.value)
        if load not in self.loads:
            self.loads.append(load)
        self._add(op.LOOK_BACK, self.loads.index(load), double=kind == DOUBLE)
        return kind

    def _load(self, value: RowValue) -> Load:
        match value:
            case MatchNumber():
                return Load(tables.NUMBER)
            case ColumnAt(position=position, path=path):
                supported(self._typing.type_of(Column(path)))
                return self._near(tables.COLUMN, position, self._read(self._vectors(path)))
            case ClassifierAt(position=RowPosition() as position):
                return self._near(tables.CLASSIFIER, position, NONE)
            case RowAggregate():
                return self._aggregate(value)
        raise Unsupported

    def _near(self, code: int, position: RowPosition, column: int) -> Load:
        offset, shift = position.offset, position.shift
        if not position.variables:
            first = position.pick == "FIRST"
            place = tables.FROM_START if first else tables.FROM_CURRENT
            return Load(code, place, 0, offset, shift, column)
        word = self._registers.rows_word(position)
        return Load(code, tables.FROM_REGISTER, word, offset, shift, column)

    def _aggregate(self, value: RowAggregate) -> Load:
        function = AGGREGATES.get(value.function)
        if function is None:
            raise Unsupported
        column, double = NONE, False
        if value.arguments:
            (argument,) = value.arguments
            if not isinstance(argument.node, Column):
                raise Unsupported
            kind = supported(self._typing.type_of(argument.node))
            if function in (SUM, AVG):
                # Of decimals the result has more digits than there may be room for.
                if isinstance(kind, DecimalType):
                    raise Unsupported
            elif function != COUNT and kind == STRING:
                # Texts are numbers of one run alone, without order.
                raise Unsupported
            column, double = self._read(self._vectors(argument.node.path)), kind == DOUBLE
        number = self._registers.aggregate(function, value.variables, column, double=double)
        return Load(tables.AGGREGATE, word=number)
