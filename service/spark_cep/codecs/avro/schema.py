"""An Avro schema, parsed, checked and flat: what resolution and projection work on.

Parsing follows the Avro specification and the Java library: names become full names, each named
type is kept once under its full name, and the schema refers to it by that name. ``text`` writes it
out again as one self-contained schema. Documentation is dropped, and so is what has no meaning
where it stands, such as the name of an array; aliases, defaults, field order, logical types and
other properties stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import fastavro

from spark_cep.codecs.avro.schema_nodes import (
    DEEPEST,
    PRIMITIVES,
    Node,
    Unfolded,
    deeper,
    kind,
    reachable,
    with_values,
)
from spark_cep.errors import SchemaError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_COMMENT = re.compile(r"\s*(//|/\*|#)")
#: Levels of the JSON text, whose properties may hold anything.
_DEEPEST_TEXT = 350
_LARGEST_FIXED = 2**31 - 1
#: Properties with a meaning of their own, by the kind of type that has them.
_PROPERTIES = {
    "record": ("name", "aliases", "fields"),
    "error": ("name", "aliases", "fields"),
    "enum": ("name", "aliases", "symbols", "default"),
    "fixed": ("name", "aliases", "size"),
    "array": ("items",),
    "map": ("values",),
}
_MEANINGFUL = {"doc", "namespace"}.union(*_PROPERTIES.values())


@dataclass(frozen=True)
class AvroSchema:
    """A checked schema. ``root`` and the definitions in ``named`` refer to named types by full
    name; ``origin`` (subject or file) goes into messages."""

    origin: str = field(compare=False)
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
    def recursive(self) -> bool:
        """Return whether a named type contains itself."""
        return any(
            name in reachable(definition, self.named) for name, definition in self.named.items()
        )


def parse(
    schema: str | Node,
    origin: str,
    references: Sequence[AvroSchema] = (),
    *,
    defaults: bool = True,
) -> AvroSchema:
    """The checked form of ``schema``, JSON text or values; ``references`` define the named types
    that it uses without defining them. ``defaults``: check those, too, which a reader uses and a
    writer does not. Whatever is wrong is a ``SchemaError`` that names ``origin``."""
    with _told(origin):
        parsed = _parsed(schema, origin, references)
        checked = parsed if defaults else without_defaults(parsed)
        fastavro.parse_schema(json.loads(checked.text))
    return parsed


def without_defaults(schema: AvroSchema) -> AvroSchema:
    """The schema as a writer's, whose defaults are never used."""
    named = {}
    for name, definition in schema.named.items():
        named[name] = _without(definition, "default")
        if "fields" in definition:
            named[name]["fields"] = [_without(field, "default") for field in definition["fields"]]
    return replace(schema, named=named)


def check_defaults(schema: AvroSchema) -> None:
    """Raise SchemaError where :func:`parse` would for a default."""
    with _told(schema.origin):
        fastavro.parse_schema(json.loads(schema.text))


@contextmanager
def _told(origin: str) -> Iterator[None]:
    try:
        yield
    except SchemaError:
        raise
    except fastavro.schema.UnknownType as error:
        space, _, name = str(error.name).rpartition(".")
        raise SchemaError(
            f"{origin}: inside the namespace {space!r} the type {name!r} without a namespace cannot"
            f" be named, since {name!r} means {error.name!r} there; give it a namespace"
        ) from error
    except fastavro.schema.SchemaParseException as error:
        raise SchemaError(f"{origin}: {error}") from error
    except Exception as error:
        # Whoever may register schemas must not be able to end a job with one.
        raise SchemaError(
            f"{origin}: the schema cannot be used: {type(error).__name__}: {error}"
        ) from error


def _parsed(schema: str | Node, origin: str, references: Sequence[AvroSchema]) -> AvroSchema:
    if isinstance(schema, str) and schema not in PRIMITIVES:
        try:
            schema = json.loads(schema)
        except ValueError as error:
            comment = _COMMENT.match(str(schema), getattr(error, "pos", 0))
            hint = "; JSON has no comments: `doc` is for text" if comment else ""
            raise SchemaError(f"{origin}: the schema is not JSON: {error}{hint}") from error
        except RecursionError:
            raise _too_deep(origin) from None
    if deeper(schema, _DEEPEST_TEXT):
        raise _too_deep(origin)
    parser = _Parser(origin, references)
    root = parser.node(schema, "", "", 0)
    used = reachable(root, parser.named)
    Unfolded(origin, parser.named).check(root)
    parsed = AvroSchema(origin, root, {n: d for n, d in parser.named.items() if n in used})
    finite = with_values(parsed.named)
    endless = (name for name in parsed.named if name not in finite)
    if name := next((n for n in endless if n in reachable(parsed.named[n], parsed.named)), None):
        raise SchemaError(
            f"{origin}: the record {name} contains itself without end, so it has no values;"
            " put the inner one into an array, a map, or a union with another type"
        )
    return parsed


def _too_deep(origin: str) -> SchemaError:
    return SchemaError(f"{origin}: the schema's text is nested more than {_DEEPEST_TEXT} levels")


class _Parser:
    """One pass over a schema, collecting its named types."""

    def __init__(self, origin: str, references: Sequence[AvroSchema]) -> None:
        self.origin = origin
        self.named = {n: d for reference in references for n, d in reference.named.items()}
        self._own: set[str] = set()

    def node(self, node: object, namespace: str, path: str, depth: int) -> Node:
        if depth > DEEPEST:
            raise self._error(path, f"nested more than {DEEPEST} levels deep")
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
            properties = _properties(node)
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
        return _properties(node) | {at: inner}

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
        for each in fields:
            name = each.get("name") if isinstance(each, dict) else None
            if not isinstance(name, str) or not _NAME.fullmatch(name) or "." in name:
                raise self._error(path, f"the record {full} has a field with the name {name!r}")
            below = f"{path}.{name}" if path else name
            if name in names:
                raise self._error(below, "the field is defined twice")
            if "type" not in each:
                raise self._error(below, "the field has no type")
            self._check_aliases(each, below)
            names.add(name)
            inside = self.node(each["type"], inner, below, depth + 1)
            definition["fields"].append(_without(each, "doc") | {"type": inside})
        return full

    def _name(self, node: dict[str, Any], namespace: str, path: str) -> str:
        name = node.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise self._error(path, f"{name!r} is not a name for a {node['type']}")
        self._check_aliases(node, path)
        own = node.get("namespace", namespace) or ""
        own = own if isinstance(own, str) else namespace
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
    definition = _properties(node) | {"name": full}
    space = full.rpartition(".")[0]
    if aliases := node.get("aliases"):
        definition["aliases"] = [a if "." in a or not space else f"{space}.{a}" for a in aliases]
    return definition


def _properties(node: dict[str, Any]) -> dict[str, Any]:
    """The properties of a type without documentation and what only other types have."""
    dropped = _MEANINGFUL.difference(_PROPERTIES.get(node["type"], ()))
    if not isinstance(node.get("logicalType"), str):
        dropped.add("logicalType")
    return _without(node, *dropped)


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
