"""An Avro schema, parsed, checked and flat: what resolution and projection work on.

Parsing follows the Avro specification and the Java library: names become full names, each named
type is kept once under its full name, and the schema refers to it by that name. ``text`` writes it
out again as one self-contained schema. Documentation is dropped; aliases, defaults, field order,
logical types and other properties stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import fastavro

from spark_cep.errors import SchemaError

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

Node = str | list[Any] | dict[str, Any]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
#: Levels of types, and of the JSON text, whose properties may hold anything.
_DEEPEST, _DEEPEST_TEXT = 100, 350
#: Values of a record with all its named types written out where they are used.
_MOST_VALUES = 100_000
_LARGEST_FIXED = 2**31 - 1


@dataclass(frozen=True)
class AvroSchema:
    """A checked schema. ``root`` and the definitions in ``named`` refer to named types by full
    name; ``origin`` (subject or file) goes into messages."""

    origin: str
    root: Node
    named: Mapping[str, dict[str, Any]]

    def resolve(self, node: Node) -> Node:
        """``node``, or the definition it names."""
        return self.named.get(node, node) if isinstance(node, str) else node

    @cached_property
    def json(self) -> Node:
        """The schema as JSON values, each named type defined where it is first used."""
        return _write(self.root, "", self.named, set())

    @cached_property
    def text(self) -> str:
        """The schema as compact JSON text."""
        return json.dumps(self.json, separators=(",", ":"))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of what matters to a reader, in hexadecimal: two schemas that differ only in
        documentation, spacing or the way names are written have the same one. Unlike the
        specification's canonical form it covers defaults, aliases and logical types."""
        canonical = json.dumps(self.json, separators=(",", ":"), sort_keys=True)
        return sha256(canonical.encode()).hexdigest()

    @cached_property
    def recursive(self) -> bool:
        """Whether a named type contains itself."""
        return any(
            name in reachable(definition, self.named) for name, definition in self.named.items()
        )


def parse(schema: str | Node, origin: str, references: Sequence[AvroSchema] = ()) -> AvroSchema:
    """The checked form of ``schema``, JSON text or values; ``references`` define the named types
    that it uses without defining them. ``SchemaError`` names ``origin``."""
    if isinstance(schema, str) and schema not in PRIMITIVES:
        try:
            schema = json.loads(schema)
        except ValueError as error:
            raise SchemaError(f"{origin}: the schema is not JSON: {error}") from error
        except RecursionError:
            raise _too_deep(origin) from None
    if _deeper(schema, _DEEPEST_TEXT):
        raise _too_deep(origin)
    parser = _Parser(origin, references)
    root = parser.node(schema, "", "", 0)
    used = reachable(root, parser.named)
    _Unfolded(origin, parser.named).check(root)
    parsed = AvroSchema(origin, root, {n: d for n, d in parser.named.items() if n in used})
    try:
        fastavro.parse_schema(json.loads(parsed.text))
    except (fastavro.schema.SchemaParseException, ValueError, TypeError, LookupError) as error:
        raise SchemaError(f"{origin}: {error}") from error
    return parsed


def canonical_fingerprint(schema: str | Node, origin: str = "<schema>") -> str:
    """The ``fingerprint`` of an unparsed schema."""
    return parse(schema, origin).fingerprint


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


class _Unfolded:
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
        """How many values, and how many levels of them; ``above``: levels around it."""
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
        if levels > _DEEPEST + 1:
            raise SchemaError(
                f"{self._origin}: types are in each other over {_DEEPEST} levels deep"
            )


def _deeper(value: object, most: int) -> bool:
    """Whether lists and objects stand in each other more than ``most`` levels deep."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        inner = [each.values() if isinstance(each, dict) else each for each in level]
        level = [e for each in inner for e in each if isinstance(e, dict | list)]
        if not level:
            return False
    return True


def _too_deep(origin: str) -> SchemaError:
    return SchemaError(f"{origin}: the schema's text is nested more than {_DEEPEST_TEXT} levels")


class _Parser:
    """One pass over a schema, collecting its named types."""

    def __init__(self, origin: str, references: Sequence[AvroSchema]) -> None:
        self.origin = origin
        self.named = {n: d for reference in references for n, d in reference.named.items()}
        self._own: set[str] = set()

    def node(self, node: object, namespace: str, path: str, depth: int) -> Node:
        if depth > _DEEPEST:
            raise self._error(path, f"nested more than {_DEEPEST} levels deep")
        if isinstance(node, str):
            return node if node in PRIMITIVES else self._reference(node, namespace, path)
        if isinstance(node, list):
            return self._union(node, namespace, path, depth)
        if not isinstance(node, dict) or "type" not in node:
            raise self._error(path, "a type is a name, a list or an object with 'type'")
        stated = node["type"]
        parts: dict[str, Callable[[], Node]] = {
            "record": lambda: self._record(node, namespace, path, depth),
            "error": lambda: self._record(node, namespace, path, depth),
            "enum": lambda: self._leaf(node, namespace, path, "symbols", list),
            "fixed": lambda: self._fixed(node, namespace, path),
            "array": lambda: self._inner(node, namespace, path, depth, "items"),
            "map": lambda: self._inner(node, namespace, path, depth, "values"),
        }
        if isinstance(stated, str) and stated in parts:
            return parts[stated]()
        if isinstance(stated, str) and stated in PRIMITIVES:
            properties = _without(node, "doc")
            return properties if len(properties) > 1 else stated
        return self.node(stated, namespace, path, depth + 1)

    def _reference(self, name: str, namespace: str, path: str) -> str:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        for candidate in (full, name):
            if candidate in self.named:
                return candidate
        raise self._error(path, f"the type {name!r} is not defined")

    def _union(self, branches: list[Any], namespace: str, path: str, depth: int) -> Node:
        parsed = [self.node(branch, namespace, path, depth + 1) for branch in branches]
        if any(isinstance(branch, list) for branch in parsed):
            raise self._error(path, "a union stands directly inside a union")
        kinds = [kind(branch) for branch in parsed]
        if len(set(kinds)) < len(kinds) or not kinds:
            raise self._error(path, "a union needs branches, each type once")
        return parsed

    def _inner(self, node: dict[str, Any], namespace: str, path: str, depth: int, at: str) -> Node:
        if at not in node:
            raise self._error(path, f"{node['type']} without {at!r}")
        inner = self.node(node[at], namespace, path, depth + 1)
        return _without(node, "doc", "default") | {at: inner}

    def _leaf(
        self, node: dict[str, Any], namespace: str, path: str, needed: str, needed_type: type
    ) -> str:
        if not isinstance(node.get(needed), needed_type):
            raise self._error(path, f"{node['type']} without {needed!r}")
        full = self._name(node, namespace, path)
        self.named[full] = _definition(node, full)
        return full

    def _fixed(self, node: dict[str, Any], namespace: str, path: str) -> str:
        size = node.get("size")
        if isinstance(size, int) and not 0 <= size <= _LARGEST_FIXED:
            raise self._error(path, f"fixed of {size} bytes; allowed: 0 to {_LARGEST_FIXED}")
        return self._leaf(node, namespace, path, "size", int)

    def _record(self, node: dict[str, Any], namespace: str, path: str, depth: int) -> str:
        full = self._name(node, namespace, path)
        fields = node.get("fields")
        if not isinstance(fields, list):
            raise self._error(path, f"the record {full} has no list of fields")
        definition = _definition(node, full) | {"type": "record", "fields": []}
        self.named[full] = definition
        inner = full.rpartition(".")[0]
        names: set[str] = set()
        for field in fields:
            name = field.get("name") if isinstance(field, dict) else None
            if not isinstance(name, str) or not _NAME.fullmatch(name) or "." in name:
                raise self._error(path, f"the record {full} has a field with the name {name!r}")
            below = f"{path}.{name}" if path else name
            if name in names:
                raise self._error(below, "the field is defined twice")
            if "type" not in field:
                raise self._error(below, "the field has no type")
            self._check_aliases(field, below)
            names.add(name)
            inside = self.node(field["type"], inner, below, depth + 1)
            definition["fields"].append(_without(field, "doc") | {"type": inside})
        return full

    def _name(self, node: dict[str, Any], namespace: str, path: str) -> str:
        name = node.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise self._error(path, f"{name!r} is not a name for a {node['type']}")
        self._check_aliases(node, path)
        own = node.get("namespace", namespace) or ""
        full = name if "." in name or not own else f"{own}.{name}"
        if full in self._own or full in PRIMITIVES:
            raise self._error(path, f"the name {full!r} is defined twice")
        self._own.add(full)
        return full

    def _check_aliases(self, node: dict[str, Any], path: str) -> None:
        aliases = node.get("aliases", [])
        if not isinstance(aliases, list) or not all(isinstance(each, str) for each in aliases):
            raise self._error(path, f"the aliases {aliases!r} are not a list of names")

    def _error(self, path: str, message: str) -> SchemaError:
        where = f" at {path!r}" if path else ""
        return SchemaError(f"{self.origin}: schema{where}: {message}")


def _definition(node: dict[str, Any], full: str) -> dict[str, Any]:
    """A named type without what its place in the text adds; aliases become full names."""
    definition = _without(node, "doc", "namespace") | {"name": full}
    space = full.rpartition(".")[0]
    if aliases := node.get("aliases"):
        definition["aliases"] = [a if "." in a or not space else f"{space}.{a}" for a in aliases]
    return definition


def _without(properties: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if name not in names}


def _write(node: Node, namespace: str, named: Mapping[str, dict[str, Any]], seen: set[str]) -> Node:
    if isinstance(node, str):
        if node in seen or node not in named:
            return node
        seen.add(node)
        space = node.rpartition(".")[0]
        definition = dict(named[node])
        if namespace and not space:
            definition["namespace"] = ""
        if "fields" in definition:
            definition["fields"] = [
                field | {"type": _write(field["type"], space, named, seen)}
                for field in definition["fields"]
            ]
        return definition
    if isinstance(node, list):
        return [_write(branch, namespace, named, seen) for branch in node]
    for part in ("items", "values"):
        if part in node:
            return node | {part: _write(node[part], namespace, named, seen)}
    return node
