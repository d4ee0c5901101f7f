"""Conditions that only compare a part of a text with constants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from spark_cep.columns.column_vectors import TextPart
from spark_cep.pattern.expressions import ColumnPath
from spark_cep.pattern.expressions.checking.types import Typing
from spark_cep.pattern.expressions.nodes import Call, Column, Literal, Node
from spark_cep.pattern.expressions.values.like import Place, fixed_text
from spark_cep.pattern.types import STRING

_FUNCTIONS = {
    "STARTSWITH": Place.START,
    "ENDSWITH": Place.END,
    "CONTAINS": Place.ANYWHERE,
}


class ComparedText(NamedTuple):
    """A part of a column, and a constant that it is compared with."""

    path: ColumnPath
    part: TextPart
    constant: str


def compared_texts(node: Node, typing: Typing) -> list[ComparedText] | None:
    """Each comparison of a text in a condition; ``None`` where it asks anything else of one than
    whether it is NULL."""
    try:
        return list(_compared(node, typing))
    except _OtherwiseError:
        return None


def compared_part(call: Call, typing: Typing) -> ComparedText | None:
    """Return the one part of a text column that LIKE, STARTSWITH, ENDSWITH or CONTAINS compares
    with a constant; ``None`` for anything else, and for columns whose type is not known."""
    fixed: tuple[Place, str] | None
    match call:
        case Call("LIKE", (Column(path), Literal(str(pattern)))):
            fixed = fixed_text(pattern)
        case Call(operator, (Column(path), Literal(str(constant)))) if operator in _FUNCTIONS:
            fixed = _FUNCTIONS[operator], constant
        case _:
            return None
    if fixed is None or typing.type_of(Column(path)) != STRING:
        return None
    place, text = fixed
    length = len(text.encode()) if place in (Place.START, Place.END) else 0
    return ComparedText(
        path, TextPart(place, length, text if place == Place.ANYWHERE else ""), text
    )


class _OtherwiseError(Exception):
    pass


def _compared(node: Node, typing: Typing) -> Iterator[ComparedText]:
    match node:
        case Literal() | Column() | Call("IS NULL", (Column(),)):
            return
        case Call() if found := compared_part(node, typing):
            yield found
        case Call(operator, arguments) if any(typing.type_of(a) == STRING for a in arguments):
            columns = [each.path for each in arguments if isinstance(each, Column)]
            constants = [each.value for each in arguments if isinstance(each, Literal)]
            if operator not in ("=", "<>", "IN") or len(columns) != 1:
                raise _OtherwiseError
            if len(constants) + 1 != len(arguments):
                raise _OtherwiseError
            for constant in constants:
                if constant is not None:
                    yield ComparedText(columns[0], TextPart(), str(constant))
        case Call(_, arguments):
            for argument in arguments:
                yield from _compared(argument, typing)
        case _:
            raise _OtherwiseError
