"""Values of rows that a match cannot have taken when a condition asks for them."""

from __future__ import annotations

from collections.abc import Iterator

from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.expressions.contradictions import never_true
from spark_cep.pattern.expressions.nodes import (
    Call,
    Cast,
    ClassifierAt,
    ColumnAt,
    Literal,
    Node,
    RowAggregate,
    RowReference,
    walk,
)
from spark_cep.pattern.expressions.problems import TextWarning
from spark_cep.pattern.sql import row_pattern
from spark_cep.pattern.sql.query import Query
from spark_cep.pattern.sql.row_pattern import (
    Concatenation,
    PatternVariable,
    Permutation,
    Quantified,
    RowPattern,
    parts_of,
)
from spark_cep.pattern.types import NULL


def untaken_rows(query: Query) -> Iterator[TextWarning]:
    """References to variables that come later, and conditions that are never true for a variable's
    first row, since they ask for one before it."""
    earlier: dict[str, set[str]] = {}
    _note_earlier(query.pattern, set(), earlier)
    for variable, condition in query.defines.items():
        start = query.define_starts[variable]
        if variable not in earlier:
            continue
        for node in walk(condition.node):
            asked = _variables(node)
            if asked and variable not in asked and not asked & earlier[variable]:
                names = ", ".join(sorted(asked))
                yield _warning(
                    f"no row of {names} is taken before one is tested for {variable}: the value is"
                    " NULL, a count 0",
                    node,
                    start,
                    "variables that come before in PATTERN, or the variable itself",
                )
        yield from _first_rows(variable, condition.node, condition.text, start)


def _first_rows(variable: str, condition: Node, text: str, start: int) -> Iterator[TextWarning]:
    asked = [node for node in walk(condition) if _asks_for_more(node, variable)]
    if not asked or any(reason.whole for reason in never_true(condition, text)):
        return
    if any(reason.whole for reason in never_true(_at_first(condition, variable), text)):
        yield _warning(
            f"the condition is never true for the first row of {variable}: it asks for one before",
            asked[0],
            start,
            f"`… IS NULL OR …`, where … is the value of the {variable} before; or PREV, which reads"
            " the row before, whatever it is",
        )


def _warning(message: str, node: Node, start: int, allowed: str) -> TextWarning:
    span = start + node.span[0], start + node.span[1]
    return TextWarning(message, span, allowed, Code.UNTAKEN_STEP)


def _variables(node: Node) -> frozenset[str]:
    """The variables whose rows a value is of; none where it is of any."""
    value = node.value if isinstance(node, RowReference) else None
    match value:
        case ColumnAt(position=position) | ClassifierAt(position=position) if position is not None:
            return frozenset(position.variables)
        case RowAggregate(variables=variables):
            return frozenset(variables)
    return frozenset()


def _asks_for_more(node: Node, variable: str) -> bool:
    """Return whether a value is that of a second row of a variable, or of a later one."""
    value = node.value if isinstance(node, RowReference) else None
    if not isinstance(value, ColumnAt):
        return False
    return value.position.variables == (variable,) and value.position.offset > 0


def _at_first(node: Node, variable: str) -> Node:
    """The condition for the first row of a variable."""
    if _asks_for_more(node, variable):
        return Literal(None, NULL, node.span)
    match node:
        case Call(operator=operator, arguments=arguments, span=span):
            inner = tuple(_at_first(each, variable) for each in arguments)
            return Call(operator, inner, span)
        case Cast(operand=operand, target=target, span=span):
            return Cast(_at_first(operand, variable), target, span)
    return node


def _note_earlier(node: RowPattern, before: set[str], found: dict[str, set[str]]) -> None:
    """Note for each variable those that may have rows before one of its own."""
    match node:
        case PatternVariable(name=name):
            found.setdefault(name, set()).update(before)
        case Concatenation(parts=parts):
            seen = set(before)
            for part in parts:
                _note_earlier(part, seen, found)
                seen |= _names(part)
        case Permutation(parts=parts):
            for number, part in enumerate(parts):
                others = (*parts[:number], *parts[number + 1 :])
                _note_earlier(part, before.union(*map(_names, others)), found)
        case Quantified(part=part, most=most):
            again = set() if most == 1 else _names(part)
            _note_earlier(part, before | again, found)
        case _:
            for part in parts_of(node):
                _note_earlier(part, before, found)


def _names(node: RowPattern) -> set[str]:
    return {each.name for each in row_pattern.walk(node) if isinstance(each, PatternVariable)}
