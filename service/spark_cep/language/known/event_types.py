"""The types of events, as schemas give them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from spark_cep.codecs.avro.reader_schemas import record_names, record_schema
from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.schema_files import SchemaFile, schema_of_file, schema_of_text
from spark_cep.language.documents import EventTypes
from spark_cep.pattern.several_types import InputRecord
from spark_cep.pattern.types import record_type

_MOST_DEPTH: Final = 20


@dataclass(frozen=True)
class KnownTypes:
    """The record types of events, by input, and what their schemas say of fields; see
    :class:`~spark_cep.language.documents.OpenDocument`."""

    types: EventTypes = field(default_factory=lambda: MappingProxyType({}))
    docs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def records_of_file(file: Path) -> list[InputRecord]:
    """The record types of a schema file; see :func:`~spark_cep.codecs.schema_files.schema_of_file`
    for its forms and errors."""
    return _records(schema_of_file(file), str(file))


def known_types(schemas: Iterable[tuple[str | None, str, AvroSchema]]) -> KnownTypes:
    """The types of events by their schemas: of each its input (``None``: of any), its name in
    messages, and the schema. SchemaError where one is not of records."""
    types: dict[str | None, list[InputRecord]] = {}
    for name, source, schema in schemas:
        types.setdefault(name, []).extend(_records(schema, source))
    return KnownTypes(types)


def types_of_file(file: Path) -> KnownTypes:
    """The types of events of a schema file, with what one of Avro says of fields; see
    :func:`records_of_file`."""
    if SchemaFile.of(file).is_protobuf:
        return known_types([(None, str(file), schema_of_file(file))])
    return types_of_text(file.read_text("utf-8"), str(file))


def types_of_text(text: str, source: str) -> KnownTypes:
    """The types of events of a schema's text, of Avro or a JSON Schema; see :func:`known_types`.
    Only the text has what it says of fields."""
    found = known_types([(None, source, schema_of_text(text, None, source))])
    return KnownTypes(found.types, docs_of(json.loads(text)))


def together(several: Iterable[KnownTypes]) -> KnownTypes:
    """All of these types."""
    types: dict[str | None, list[InputRecord]] = {}
    docs: dict[str, str] = {}
    for each in several:
        for name, records in each.types.items():
            types.setdefault(name, []).extend(records)
        docs |= each.docs
    return KnownTypes(types, docs)


def docs_of(schema: Any) -> dict[str, str]:
    """Documentation of the fields of an Avro schema's records, by ``record.field``."""
    return dict(_docs(schema, "", 0))


def _records(schema: AvroSchema, source: str) -> list[InputRecord]:
    return [
        (source, name, record_type(record_schema(schema, name).text))
        for name in record_names(schema)
    ]


def _docs(schema: Any, namespace: str, depth: int) -> Iterator[tuple[str, str]]:
    if depth > _MOST_DEPTH:
        return
    if isinstance(schema, list):
        for branch in schema:
            yield from _docs(branch, namespace, depth + 1)
    if not isinstance(schema, dict):
        return
    name = str(schema.get("name", ""))
    space = str(schema.get("namespace", namespace) or "")
    full = name if "." in name or not space else f"{space}.{name}"
    for each in schema.get("fields") or ():
        if not isinstance(each, dict):
            continue
        if isinstance(each.get("doc"), str):
            yield f"{full}.{each.get('name')}", each["doc"]
        yield from _docs(each.get("type"), full.rpartition(".")[0], depth + 1)
    for inner in ("items", "values", "type"):
        if isinstance(schema.get(inner), (dict, list)):
            yield from _docs(schema[inner], space, depth + 1)
