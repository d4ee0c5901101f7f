"""Reader schemas: which records a schema has, and a schema cut down to the columns that are read.

Events are decoded with the reader schema, whatever schema wrote them. Fields left out of it are
skipped by the decoder, so a schema with only the columns that rules read costs less. Columns are
addressed as in rules, ``a.b.c``: through nested records, nullable ones, and records in arrays. A
map or a wider union is kept whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.avro.schema_nodes import Node, children, reachable
from spark_cep.documents.nearest import nearest
from spark_cep.errors import SchemaError


def record_names(schema: AvroSchema) -> list[str]:
    """Full names of the records that a value of ``schema`` may be, in its order: one, or several
    where the schema is a union. ``SchemaError`` where a value may be something else."""
    branches = schema.root if isinstance(schema.root, list) else [schema.root]
    names: list[str] = []
    for branch in branches:
        definition = schema.resolve(branch)
        if not isinstance(definition, dict) or definition["type"] != "record":
            raise SchemaError(
                f"{schema.origin}: an event is a record or a union of records, not {branch!r}"
            )
        names.append(definition["name"])
    return names


def record_schema(schema: AvroSchema, name: str) -> AvroSchema:
    """The record ``name`` (full, or short where that is unambiguous) of ``schema`` on its own."""
    names = record_names(schema)
    found = [full for full in names if full == name] or [
        full for full in names if full.rpartition(".")[2] == name
    ]
    if len(found) != 1:
        raise SchemaError(
            f"{schema.origin}: {len(found) or 'no'} records are called {name!r};"
            f" the schema has {', '.join(names)}"
        )
    return _rooted(schema, found[0], schema.named)


def project(reader: AvroSchema, columns: Collection[str]) -> AvroSchema:
    """``reader`` with only what ``columns`` need; names, aliases and defaults stay. A record type
    used in several places keeps what any of them needs. ``SchemaError`` for an unknown column,
    with the nearest name."""
    kept: dict[str, set[str]] = {}
    (root, *others) = record_names(reader)
    if others:
        raise SchemaError(f"{reader.origin}: columns of a union of records: choose a record first")
    for column in sorted(columns):
        _keep(reader, root, column.split("."), column, kept)
    named = {
        name: definition
        if "fields" not in definition
        else definition
        | {"fields": [f for f in definition["fields"] if f["name"] in kept.get(name, ())]}
        for name, definition in reader.named.items()
    }
    return _rooted(reader, root, named)


def _rooted(schema: AvroSchema, root: Node, named: Mapping[str, dict[str, Any]]) -> AvroSchema:
    used = reachable(root, named)
    return AvroSchema(schema.origin, root, {n: d for n, d in named.items() if n in used})


def _keep(
    schema: AvroSchema, node: Node, path: list[str], column: str, kept: dict[str, set[str]]
) -> None:
    """Mark what ``path`` needs below ``node``."""
    inner = _single(schema, node)
    definition = schema.resolve(inner)
    if not path or not isinstance(definition, dict) or definition["type"] != "record":
        if path and _has_no_fields(definition):
            raise SchemaError(f"{schema.origin}: column {column!r}: {path[0]!r} is below a scalar")
        _keep_all(schema, node, kept)
        return
    fields = {field["name"]: field for field in definition["fields"]}
    if path[0] not in fields:
        near = nearest(path[0], fields)
        hint = f"; did you mean {near!r}?" if near else f"; it has {', '.join(fields)}"
        raise SchemaError(
            f"{schema.origin}: column {column!r}: {definition['name']} has no field"
            f" {path[0]!r}{hint}"
        )
    kept.setdefault(definition["name"], set()).add(path[0])
    _keep(schema, fields[path[0]]["type"], path[1:], column, kept)


def _single(schema: AvroSchema, node: Node) -> Node:
    """Return the type inside nullable unions and arrays."""
    while True:
        definition = schema.resolve(node)
        if isinstance(definition, list):
            branches = [branch for branch in definition if branch != "null"]
            if len(branches) != 1:
                return node
            node = branches[0]
        elif isinstance(definition, dict) and definition["type"] == "array":
            node = definition["items"]
        else:
            return node


def _has_no_fields(definition: Node) -> bool:
    return isinstance(definition, str) or (
        isinstance(definition, dict) and definition["type"] not in ("record", "map")
    )


def _keep_all(schema: AvroSchema, node: Node, kept: dict[str, set[str]]) -> None:
    """Mark everything below ``node``."""
    for name in reachable(node, schema.named):
        definition = schema.named[name]
        if children(definition):
            kept.setdefault(name, set()).update(f["name"] for f in definition["fields"])
