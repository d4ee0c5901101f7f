"""The nodes of a schema: what is in them, and bounds of what they may become.

A node is a type as JSON has it, in which named types stand as their full names; their definitions
are in a mapping beside it (:class:`spark_cep.codecs.avro.schema.AvroSchema`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_cep.errors import SchemaError

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

Node = str | list[Any] | dict[str, Any]

#: Levels of types.
DEEPEST = 100
#: Values of a record with all its named types written out where they are used.
_MOST_VALUES = 100_000


def kind(node: Node) -> str:
    """The type of a node: ``union``, ``record`` …, a primitive, or the name of a named type."""
    if isinstance(node, dict):
        found: str = node["type"]
        return found
    return node if isinstance(node, str) else "union"


def children(node: Node) -> list[Node]:
    """The nodes directly inside ``node``; a name has none."""
    if isinstance(node, list):
        return node
    if isinstance(node, dict):
        match node["type"]:
            case "record":
                return [field["type"] for field in node["fields"]]
            case "array":
                return [node["items"]]
            case "map":
                return [node["values"]]
    return []


def reachable(node: Node, named: Mapping[str, dict[str, Any]]) -> set[str]:
    """Full names of the named types that ``node`` uses, directly or through others."""
    found: set[str] = set()
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, str):
            if current in found or current not in named:
                continue
            found.add(current)
            current = named[current]
        waiting.extend(children(current))
    return found


def with_values(named: Mapping[str, dict[str, Any]]) -> set[str]:
    """The named types that have values of finite size."""
    found: set[str] = set()

    def finite(node: Node) -> bool:
        if isinstance(node, list):
            return any(map(finite, node))
        return not isinstance(node, str) or node not in named or node in found

    users: dict[str, list[str]] = {}
    for name, definition in named.items():
        for part in children(definition):
            for each in part if isinstance(part, list) else [part]:
                if isinstance(each, str) and each in named:
                    users.setdefault(each, []).append(name)
    waiting = list(named)
    while waiting:
        name = waiting.pop()
        if name not in found and all(map(finite, children(named[name]))):
            found.add(name)
            waiting += users.get(name, ())
    return found


class Unfolded:
    """A schema with its named types written out where they are used; a type inside itself counts
    as one value."""

    def __init__(self, origin: str, named: Mapping[str, dict[str, Any]]) -> None:
        self._origin, self._named = origin, named
        self._known: dict[str, tuple[int, int]] = {}

    def check(self, root: Node) -> None:
        """SchemaError where it is too large to be worked with."""
        values, _ = self._size(root, 0)
        if values > _MOST_VALUES:
            raise SchemaError(
                f"{self._origin}: the schema has more than {_MOST_VALUES} values when each named"
                " type is written out where it is used"
            )

    def _size(self, node: Node, above: int) -> tuple[int, int]:
        """Return the number of values and of their levels; ``above`` counts the levels around the
        node."""
        if isinstance(node, str) and node in self._named:
            if node not in self._known:
                self._known[node] = 1, 1
                self._known[node] = self._size(self._named[node], above)
            values, levels = self._known[node]
        else:
            self._refuse(above)
            inner = [self._size(child, above + 1) for child in children(node)]
            values = 1 + sum(each for each, _ in inner)
            levels = 1 + max((each for _, each in inner), default=0)
        self._refuse(above + levels)
        return values, levels

    def _refuse(self, levels: int) -> None:
        if levels > DEEPEST + 1:
            raise SchemaError(f"{self._origin}: types are in each other over {DEEPEST} levels deep")


def deeper(value: object, most: int) -> bool:
    """Return whether lists and objects stand in each other more than ``most`` levels deep."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        inner = [each.values() if isinstance(each, dict) else each for each in level]
        level = [e for each in inner for e in each if isinstance(e, dict | list)]
        if not level:
            return False
    return True
