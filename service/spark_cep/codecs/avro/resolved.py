"""Avro's schema resolution as a tree: what is done with each value of a writer's record.

:mod:`spark_cep.codecs.avro.resolution` says what can be read as what; this module writes the answer
down once for a pair of schemas. :mod:`spark_cep.codecs.avro.record_layout` makes operations for
compiled loops of it, :mod:`spark_cep.codecs.avro.value_reader` Python values. The tree is finite
although a writer's type may contain itself: what the reader does not have stands in it as the
writer's schema alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from spark_cep.codecs.avro.default_values import default_value, members
from spark_cep.codecs.avro.resolution import PROMOTIONS, Resolution
from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.avro.schema_nodes import Node, kind
from spark_cep.pattern.types import SqlType, scalar_type

_MICROS = {"millis": 1_000, "micros": 1}


@dataclass(frozen=True)
class Nothing:
    """A null: no bytes."""


@dataclass(frozen=True)
class Unreadable:
    """A value that the reader has no place for: the record cannot be decoded."""


@dataclass(frozen=True)
class Skipped:
    """A value that the reader does not have, of the writer's type ``written``."""

    written: Node


@dataclass(frozen=True)
class Scalar:
    """A value of the primitive ``written`` (or ``fixed``, of ``size`` bytes), read as the reader's
    primitive ``read``, which holds values of ``type``; ``micros``: microseconds of its unit, where
    it is a moment."""

    written: str
    size: int
    read: str
    type: SqlType
    micros: int


@dataclass(frozen=True)
class Symbols:
    """An enum; by the writer's index the reader's symbol, ``None`` where it has none."""

    symbols: tuple[str | None, ...]


@dataclass(frozen=True)
class Items:
    """An array, or a map with text in front of each item."""

    item: Action
    is_map: bool


@dataclass(frozen=True)
class Union:
    """A writer's union: one of these, after its number."""

    branches: tuple[Action, ...]


@dataclass(frozen=True)
class ResolvedMember:
    """A value of one of the several types of a reader's union: the field ``member<number>`` of a
    record of ``count``. ``written``: the writer's type."""

    number: int
    count: int
    value: Action
    written: Node


class ResolvedField(NamedTuple):
    """A field as it is written: the reader's name for it (``None``: it has none), what is done with
    its value, and the writer's type."""

    name: str | None
    value: Action
    written: Node


@dataclass(frozen=True)
class Fields:
    """A record: its fields in the writer's order, then what the writer does not have. ``names``:
    the reader's fields, in its order."""

    fields: tuple[ResolvedField, ...]
    defaults: Mapping[str, Any]
    names: tuple[str, ...]


Action = Nothing | Unreadable | Skipped | Scalar | Symbols | Items | Union | ResolvedMember | Fields


def resolved(writer: AvroSchema, reader: AvroSchema, written: Node | None = None) -> Action:
    """Return the action that turns values of ``writer``, or of its type ``written``, into those of
    ``reader``.

    Raises SchemaError where a default of the reader's is none of its type.
    """
    root = writer.root if written is None else written
    return _Resolver(writer, reader).value(root, reader.root)


class _Resolver:
    def __init__(self, writer: AvroSchema, reader: AvroSchema) -> None:
        self._writer, self._reader = writer, reader
        self._rules = Resolution(writer, reader)

    def value(self, writer: Node, reader: Node) -> Action:
        """Return the action that reads a value of ``writer`` as ``reader``."""
        w, r = self._writer.resolve(writer), self._reader.resolve(reader)
        if isinstance(w, list):
            if isinstance(r, list) and self._rules.equivalent(w, r):
                pairs = zip(w, range(len(r)), strict=True)
                return Union(tuple(self._member(each, r, place) for each, place in pairs))
            return Union(tuple(self.value(each, reader) for each in w))
        if isinstance(r, list):
            branch = self._rules.branch(writer, r)
            return Unreadable() if branch is None else self._member(writer, r, r.index(branch))
        what = kind(r)
        if what != kind(w):
            return self._scalar(w, r) if what in PROMOTIONS.get(kind(w), ()) else Unreadable()
        if what == "null":
            return Nothing()
        if isinstance(w, dict) and isinstance(r, dict):
            match what:
                case "record":
                    return self._record(w, r)
                case "array":
                    return Items(self.value(w["items"], r["items"]), is_map=False)
                case "map":
                    return Items(self.value(w["values"], r["values"]), is_map=True)
                case "enum":
                    known, other = set(r["symbols"]), r.get("default")
                    return Symbols(tuple(s if s in known else other for s in w["symbols"]))
                case "fixed" if w["size"] != r["size"]:
                    return Unreadable()
        return self._scalar(w, r)

    def _member(self, writer: Node, union: list[Node], place: int) -> Action:
        """A value that is read as one branch of a reader's union."""
        value = self.value(writer, union[place])
        several = members(self._reader, union)
        if union[place] not in several or isinstance(value, Unreadable):
            return value
        return ResolvedMember(several.index(union[place]), len(several), value, writer)

    @staticmethod
    def _scalar(w: Node, r: Node) -> Scalar:
        size = w["size"] if isinstance(w, dict) and kind(w) == "fixed" else 0
        logical = str(r.get("logicalType")) if isinstance(r, dict) else ""
        micros = _MICROS.get(logical.rpartition("-")[2], 0) if "timestamp-" in logical else 0
        return Scalar(kind(w), size, kind(r), scalar_type(r), micros)

    def _record(self, w: dict[str, Any], r: dict[str, Any]) -> Action:
        fields = {field["name"]: field for field in r["fields"]}
        name_of = {
            source["name"]: name
            for name, sources in self._rules.fields(w, r).items()
            for source in sources
            if name in fields
        }
        read = []
        for source in w["fields"]:
            name, written = name_of.get(source["name"]), source["type"]
            value = Skipped(written) if name is None else self.value(written, fields[name]["type"])
            read.append(ResolvedField(name, value, written))
        missing = fields.keys() - set(name_of.values())
        if any("default" not in fields[name] for name in missing):
            return Unreadable()
        defaults = {
            name: default_value(self._reader, fields[name]["type"], fields[name]["default"])
            for name in fields
            if name in missing
        }
        return Fields(tuple(read), defaults, tuple(fields))
