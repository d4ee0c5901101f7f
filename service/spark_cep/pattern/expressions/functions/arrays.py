"""Functions of arrays and maps, with those that take a condition over each element."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spark_cep.pattern.expressions.functions.row import Function, Kinds, Result, any_type, summed
from spark_cep.pattern.expressions.values import arithmetic as values
from spark_cep.pattern.expressions.values.type_rules import as_read, comparable, is_open
from spark_cep.pattern.types import BOOLEAN, INT, ArrayType, MapType, SqlType


def _of_map(gives: Callable[[MapType], SqlType]) -> Result:
    def result(kinds: Kinds) -> SqlType | str:
        kind = kinds[0]
        if is_open(kind):
            return kind
        if not isinstance(kind, MapType):
            return f"argument 1 is {kind}; it must be a MAP"
        if len(kinds) > 1 and kinds[1] != kind.key and not is_open(kinds[1]):
            return f"the key is {kinds[1]}; it must be {kind.key}"
        return gives(kind)

    return result


def _size(kinds: Kinds) -> SqlType | str:
    kind = kinds[0]
    if isinstance(kind, (ArrayType, MapType)) or is_open(kind):
        return INT
    return f"argument 1 is {kind}; it must be an ARRAY or a MAP"


def _array_contains(kinds: Kinds) -> SqlType | str:
    kind = kinds[0]
    if is_open(kind):
        return BOOLEAN
    if not isinstance(kind, ArrayType):
        return f"argument 1 is {kind}; it must be an ARRAY"
    if not comparable(as_read(kind.element), kinds[1]):
        return f"the elements are {kind.element}, the value is {kinds[1]}"
    return BOOLEAN


def _over_elements(gives: SqlType | None) -> Result:
    """Return the result type of a function of an array and a condition; the array's own type where
    ``gives`` names none."""

    def result(kinds: Kinds) -> SqlType | str:
        kind, condition = kinds
        if not isinstance(kind, ArrayType) and not is_open(kind):
            return f"argument 1 is {kind}; it must be an ARRAY"
        if condition != BOOLEAN and not is_open(condition):
            return f"the lambda gives {condition}; it must be a condition"
        return kind if gives is None else gives

    return result


def element(kinds: Kinds) -> SqlType | str:
    """The type of ``arr[i]``, ``map['k']`` and ELEMENT_AT."""
    kind, key = kinds
    if isinstance(kind, ArrayType):
        if key == INT or is_open(key):
            return as_read(kind.element)
        return f"the index of an ARRAY is {key}; it must be INT"
    if isinstance(kind, MapType):
        if key == kind.key or is_open(key):
            return as_read(kind.value)
        return f"the key is {key}; it must be {kind.key}"
    return kind if is_open(kind) else f"{kind} has no elements; it must be an ARRAY or a MAP"


def at_index(container: Any, index: Any) -> Any:
    """``arr[i]`` from 0, or ``map[key]``; NULL when it is not there."""
    if isinstance(container, Mapping):
        return container.get(index)
    return container[index] if 0 <= index < len(container) else None


def _element_at(container: Any, index: Any) -> Any:
    if isinstance(container, Mapping):
        return container.get(index)
    if index == 0 or abs(index) > len(container):
        return None
    return container[index - 1 if index > 0 else index]


def _contains_element(array: Sequence[Any], wanted: Any) -> bool | None:
    unknown = False
    for item in array:
        if item is None:
            unknown = True
        elif values.equal(item, wanted):
            return True
    return None if unknown else False


def _quantified(*, decisive: bool) -> Callable[[Sequence[Any], Callable[[Any], Any]], Any]:
    """EXISTS (true decides) and FORALL (false does); NULL where one is NULL and none decides."""

    def run(array: Sequence[Any], holds: Callable[[Any], Any]) -> Any:
        unknown = False
        for item in array:
            found = holds(item)
            if found is None:
                unknown = True
            elif found is decisive:
                return decisive
        return None if unknown else not decisive

    return run


def _filter(array: Sequence[Any], holds: Callable[[Any], Any]) -> list[Any]:
    return [item for item in array if holds(item) is True]


LAMBDAS: dict[str, Function] = {
    "EXISTS": Function((2, 2), _over_elements(BOOLEAN), _quantified(decisive=True)),
    "FORALL": Function((2, 2), _over_elements(BOOLEAN), _quantified(decisive=False)),
    "FILTER": Function((2, 2), _over_elements(None), _filter),
}
"""Their second argument is a lambda: its evaluation is given as a function of the element."""

ARRAYS: dict[str, Function] = {
    "ARRAY": Function((1, None), any_type, size=summed),
    "SIZE": Function((1, 1), _size, len, cheap=True),
    "ARRAY_CONTAINS": Function((2, 2), _array_contains, _contains_element),
    "ELEMENT_AT": Function((2, 2), element, _element_at, cheap=True),
    "MAP_CONTAINS_KEY": Function(
        (2, 2), _of_map(lambda _: BOOLEAN), lambda given, key: key in given, cheap=True
    ),
    "MAP_KEYS": Function((1, 1), _of_map(lambda kind: ArrayType(kind.key)), list),
    "MAP_VALUES": Function(
        (1, 1), _of_map(lambda kind: ArrayType(kind.value)), lambda given: list(given.values())
    ),
    **LAMBDAS,
}
