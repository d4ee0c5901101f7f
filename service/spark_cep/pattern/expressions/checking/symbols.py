"""Texts that a column of an enum is compared with, and that its schema does not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from spark_cep.documents.nearest import instead, nearest
from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.expressions.canonical import name
from spark_cep.pattern.expressions.functions.aggregation import PICKS
from spark_cep.pattern.expressions.nodes import (
    Call,
    Column,
    ColumnAt,
    Expression,
    Literal,
    Node,
    Reference,
    RowAggregate,
    RowReference,
    walk,
)
from spark_cep.pattern.expressions.problems import TextWarning
from spark_cep.pattern.several_types import AnyRecord

#: A slip leaves so much of a symbol: two letters in eight may be other ones.
_SURELY: Final = 0.75


def unknown_symbols(
    e: Expression, event: AnyRecord | None, steps: Mapping[str, AnyRecord]
) -> Iterator[TextWarning]:
    """Each such text: no event has it, so the comparison is always the same.

    ``event`` and ``steps`` are as in :func:`spark_cep.pattern.expressions.check_types`.
    """
    for look_back in e.look_backs:
        if look_back.argument is not None:
            yield from unknown_symbols(look_back.argument, steps.get(look_back.step), steps)
    for value in e.row_values:
        for argument in value.arguments if isinstance(value, RowAggregate) else ():
            yield from unknown_symbols(argument, event, steps)
    for node in walk(e.node):
        for operand, text in _compared(node):
            record, column = event, operand
            if isinstance(operand, RowReference) and isinstance(operand.value, ColumnAt):
                column = Column(operand.value.path, operand.span)
            elif isinstance(operand, Reference) and operand.look_back.function in PICKS:
                record = steps.get(operand.look_back.step)
                column = operand.look_back.argument.node if operand.look_back.argument else node
            if record is None or not isinstance(column, Column):
                continue
            symbols = record.symbols_of(column.path)
            if symbols and text.value not in symbols:
                message = f"'{text.value}' is no symbol of the enum {name(column.path)}"
                allowed = instead(str(text.value), symbols, "symbols")
                yield TextWarning(
                    message, text.span, allowed, Code.UNKNOWN_SYMBOL, _meant(text.value, symbols)
                )


def _meant(text: object, symbols: Sequence[str]) -> str | None:
    """The one symbol that a text nearly is, as a text: the same in another case, or the only one
    alike."""
    same = [symbol for symbol in symbols if symbol.lower() == str(text).lower()]
    alike = same or [symbol for symbol in symbols if nearest(str(text), [symbol]) is not None]
    sure = nearest(str(text), alike, _SURELY) if len(alike) == 1 else None
    return None if sure is None else f"'{sure}'"


def _compared(node: Node) -> Iterator[tuple[Node, Literal]]:
    """Yield the nodes that are compared for equality with texts, and the texts."""
    if not isinstance(node, Call):
        return
    first, *others = node.arguments
    match node.operator:
        case "=" | "<>" | "<=>":
            pairs = [(first, others[0]), (others[0], first)]
        case "IN":
            pairs = [(first, other) for other in others]
        case "CASE OF":
            pairs = [(first, other) for other in others[:-1:2]]
        case _:
            return
    for operand, text in pairs:
        if isinstance(text, Literal) and isinstance(text.value, str):
            yield operand, text
