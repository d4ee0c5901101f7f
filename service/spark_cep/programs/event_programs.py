"""Programs of conditions on the event alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spark_cep.columns.column_vectors import TextPart
from spark_cep.pattern.expressions import ColumnPath, Expression
from spark_cep.pattern.expressions.checking.types import Typing
from spark_cep.pattern.expressions.nodes import Call, Column, Node
from spark_cep.pattern.types import BOOLEAN, STRING, RecordType, SqlType
from spark_cep.programs.loops import expression_loop as op
from spark_cep.programs.program_writer import Writer
from spark_cep.programs.programs import Program
from spark_cep.programs.text_parts import compared_part, compared_texts


def event_program(
    expression: Expression,
    event: RecordType,
    vectors: Callable[[ColumnPath], int],
    numbers: Callable[[ColumnPath, TextPart], int],
) -> Program | None:
    """The condition as a program without calls; ``None`` where it needs one.
    ``vectors`` numbers its columns, ``numbers`` those with numbers of texts, which have no order:
    texts are compared with constants, for being equal or for a part being equal."""
    typing = Typing(event)
    if compared_texts(expression.node, typing) is None:
        return None
    return _EventWriter(typing, vectors, numbers).program(expression)


class _EventWriter(Writer):
    """Writes with the numbers of texts instead of texts."""

    def __init__(
        self,
        typing: Typing,
        vectors: Callable[[ColumnPath], int],
        numbers: Callable[[ColumnPath, TextPart], int],
    ) -> None:
        def vector_of(path: ColumnPath) -> int:
            is_text = typing.type_of(Column(path)) == STRING
            return numbers(path, TextPart()) if is_text else vectors(path)

        super().__init__(typing, vector_of)
        self._numbers = numbers

    def _call(self, operator: str, arguments: Sequence[Node], kind: SqlType) -> SqlType:
        if found := compared_part(Call(operator, tuple(arguments)), self._typing):
            self._add(op.COLUMN, self._read(self._numbers(found.path, found.part)))
            self._literal(found.constant, STRING)
            self._add(op.EQUAL)
            return BOOLEAN
        return super()._call(operator, arguments, kind)
