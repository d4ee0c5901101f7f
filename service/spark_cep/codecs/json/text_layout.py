"""Columns out of JSON in one compiled pass, without an object for any value.

A *layout* is made for the columns that are wanted of one schema: a node for each of its types, the
names of fields and symbols in tables that a name is looked up in, and the constants of defaults,
for :mod:`spark_cep.codecs.json.loops.record_text`. Names that a layout does not have are passed
over. A column whose values are no numbers and no text is looked at and left where it is, as in
Avro (:mod:`spark_cep.codecs.avro.record_layout`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_cep.codecs.avro.default_values import default_value, members
from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.avro.schema_nodes import Node, kind
from spark_cep.codecs.json.loops import layout_tables as tables
from spark_cep.codecs.json.loops import record_text as ops
from spark_cep.codecs.json.loops.names import name_hash
from spark_cep.codecs.json.values import (
    BITS,
    JsonValue,
    choices,
    may_be_null,
    names_of_fields,
    the_only,
)
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.record_reader import Read, Wanted
from spark_cep.codecs.registry.framing import Framing
from spark_cep.codecs.registry.glue_bodies import without_compression
from spark_cep.codecs.wanted_columns import defaults_in, wanted_in
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.compilation import I64
from spark_cep.columns.representation import (
    MOST_WHOLE_DIGITS,
    Representation,
    representation,
)
from spark_cep.columns.vectors import LENGTH_BITS, LENGTH_MASK, Bytes, fixed, no_texts
from spark_cep.packing import pack
from spark_cep.pattern.expressions import ColumnPath
from spark_cep.pattern.types import (
    DATE,
    FLOAT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DecimalType,
    scalar_type,
)

#: Of a field of a record in an array or a map.
_FIELD_BYTES = 64
_KINDS = {
    "null": tables.NOTHING, "boolean": tables.BOOLEAN, "float": tables.FLOAT,
    "double": tables.DOUBLE, "string": tables.TEXT, "enum": tables.SYMBOL, "bytes": tables.BASE64,
    "fixed": tables.BASE64, "record": tables.RECORD, "array": tables.ARRAY, "map": tables.MAP,
}  # fmt: skip


@dataclass(frozen=True)
class TextLayout:
    """The tables of one schema. ``texts``: of constants, which stand in front of all that have no
    escapes any more; ``doubles``: the vectors of FLOAT, which is true of them, and DOUBLE."""

    root: int
    nodes: I64
    fields: I64
    entries: I64
    slots: I64
    names: NDArray[np.uint8]
    constants: I64
    inside: I64
    choices: I64
    texts: bytes
    doubles: Mapping[int, bool]
    width: int
    readers: tuple[JsonValue, ...]
    objects: tuple[Any, ...]

    def read(self, values: Bytes, number: int, framing: Framing = Framing.REGISTRY) -> Read:
        """The records with these values, of the type ``number``."""
        if framing is Framing.GLUE:
            values, added = without_compression(values)
            read = self._read(values, number, framing)
            return read._replace(added=read.added + added)
        return self._read(values, number, framing)

    def _read(self, values: Bytes, number: int, framing: Framing) -> Read:
        count, data = len(values), values.data
        room = len(self.texts) + max(len(data), int(values.lengths.sum()))
        out = np.empty(room, np.uint8)
        out[: len(self.texts)] = np.frombuffer(self.texts, np.uint8)
        counts = np.zeros(4, np.int64)
        counts[ops.USED] = len(self.texts)
        wholes = np.zeros((count, max(1, self.width)), np.int64)
        doubles, nulls = wholes.view(np.float64), np.ones(wholes.shape, np.uint8)
        faults = np.empty(count, np.int32)
        ops.read_texts(
            data, values.places, values.nulls, framing.number, self.root, self.nodes, self.fields,
            self.entries, self.slots, self.names, self.constants, self.inside, self.choices,
            np.zeros((ops.MOST_DEEP, ops.STACK_COLUMNS), np.int64),
            np.zeros(len(self.fields) + 1, np.int64), counts, np.zeros(1, np.float32), wholes,
            doubles, nulls, faults, out,
        )  # fmt: skip
        if counts[ops.DOUBLES_LEFT]:
            for vector, single in self.doubles.items():
                rows = np.flatnonzero(nulls[:, vector] == tables.LEFT)
                found = _doubles(data, wholes[rows, vector])
                with np.errstate(over="ignore"):
                    doubles[rows, vector] = found.astype(np.float32) if single else found
                nulls[rows, vector] = 0
        if counts[ops.USED]:
            data = fixed(np.concatenate([data, out[: counts[ops.USED]]]))
        types = np.full(count, number, np.int32)
        types[faults == Fault.TOMBSTONE] = -1
        return Read(
            data, wholes, doubles, nulls, types, faults, self.readers, self.objects,
            int(counts[ops.ADDED]),
        )  # fmt: skip


def _doubles(data: NDArray[np.uint8], places: I64) -> NDArray[np.float64]:
    """The doubles next to the numbers at these places: those of many digits, and very large or
    small ones."""
    starts, lengths = places >> LENGTH_BITS, places & LENGTH_MASK
    texts = zip(starts.tolist(), lengths.tolist(), strict=True)
    return np.array([float(data[at : at + length].tobytes()) for at, length in texts], np.float64)


def text_layout(schema: AvroSchema, wanted: Wanted, vectors: ColumnVectors) -> TextLayout:
    """The layout of records of ``schema``, which has what is ``wanted`` and nothing else."""
    return _TextProgram(schema, wanted, vectors).written()


def prepare() -> None:
    """Compile the loops with a batch without records, or load what was compiled before."""
    nothing = parse({"type": "record", "name": "Nothing", "fields": []}, "nothing")
    text_layout(nothing, {}, ColumnVectors()).read(no_texts(), 0)


class _TextProgram:
    def __init__(self, schema: AvroSchema, wanted: Wanted, vectors: ColumnVectors) -> None:
        self._schema, self._wanted, self._vectors = schema, wanted, vectors
        self._nodes: list[list[int]] = []
        self._fields: list[list[int]] = []
        self._entries: list[tuple[int, int, int]] = []
        self._slots: list[int] = []
        self._names = bytearray()
        self._constants: list[tuple[int, int, int]] = []
        self._inside: list[int] = []
        self._choices: list[int] = []
        self._texts = bytearray()
        self._doubles: dict[int, bool] = {}
        self._readers: list[JsonValue] = []
        self._objects: list[Any] = []
        self._root = self._node(schema.root, ())

    def written(self) -> TextLayout:
        """All tables."""

        def table(rows: Sequence[Sequence[int]], columns: int) -> I64:
            return np.array(rows, np.int64).reshape(-1, columns)

        return TextLayout(
            self._root,
            table(self._nodes, tables.NODE_COLUMNS),
            table(self._fields, tables.FIELD_COLUMNS),
            table(self._entries, 3),
            np.array(self._slots, np.int64),
            np.frombuffer(bytes(self._names), np.uint8),
            table(self._constants, 3),
            np.array(self._inside, np.int64),
            np.array(self._choices, np.int64),
            bytes(self._texts),
            self._doubles,
            self._vectors.width,
            tuple(self._readers),
            tuple(self._objects),
        )

    def _node(self, given: Node, path: ColumnPath | None) -> int:
        """Write the node of a value, which is the column ``path`` (``None``: inside of one); its
        number."""
        number = len(self._nodes)
        node = [0] * tables.NODE_COLUMNS
        self._nodes.append(node)
        vector, of = (-1, None) if path is None else self._wanted.get(path, (-1, None))
        node[tables.VECTOR], node[tables.READER_VECTOR] = vector, -1
        node[tables.NULLABLE] = int(may_be_null(self._schema, given))
        if of is not None and representation(of) is Representation.OBJECT:
            reader = JsonValue(self._schema, given)
            if reader not in self._readers:
                self._readers.append(reader)
            node[tables.READER_VECTOR] = self._vectors.reader(vector)
            node[tables.READER] = self._readers.index(reader)
        definition = self._schema.resolve(given)
        if isinstance(definition, list):
            if several := members(self._schema, definition):
                self._several(node, several, path)
                return number
            definition = self._schema.resolve(the_only(definition))
        what = kind(definition)
        if isinstance(definition, dict) and what == "record":
            self._record(node, definition, path)
        elif isinstance(definition, dict) and what in ("array", "map"):
            node[tables.KIND] = _KINDS[what]
            node[tables.A] = self._node(definition["items" if what == "array" else "values"], None)
        else:
            self._scalar(node, definition, what)
        return number

    def _several(self, node: list[int], several: Sequence[Node], path: ColumnPath | None) -> None:
        below = [
            self._node(each, None if path is None else (*path, f"member{place}"))
            for place, each in enumerate(several)
        ]
        node[tables.KIND], node[tables.A] = tables.SEVERAL, len(self._choices)
        chosen = choices(self._schema, several)
        self._choices += [-1 if place < 0 else below[place] for place in chosen]

    def _scalar(self, node: list[int], definition: Node, what: str) -> None:
        of = None if what == "null" else scalar_type(definition)
        if isinstance(of, DecimalType):
            wide = of.precision > MOST_WHOLE_DIGITS
            node[tables.KIND] = tables.WIDE_DECIMAL if wide else tables.DECIMAL
            node[tables.A], node[tables.B] = of.precision, of.scale
        elif of == DATE:
            node[tables.KIND] = tables.DATE
        elif of in (TIMESTAMP, TIMESTAMP_NTZ) and isinstance(definition, dict):
            millis = str(definition["logicalType"]).endswith("millis")
            node[tables.KIND] = tables.MILLIS if millis else tables.MICROS
        elif what in BITS:
            node[tables.KIND], node[tables.A] = tables.WHOLE, BITS[what]
        else:
            node[tables.KIND] = _KINDS[what]
        if node[tables.KIND] == tables.BASE64:
            node[tables.A] = (
                definition["size"] if isinstance(definition, dict) and what == "fixed" else -1
            )
        elif isinstance(definition, dict) and what == "enum":
            self._table(node, dict.fromkeys(definition["symbols"], 0))
        elif what in ("float", "double") and node[tables.VECTOR] >= 0:
            self._doubles[node[tables.VECTOR]] = of == FLOAT

    def _record(
        self, node: list[int], definition: Mapping[str, Any], path: ColumnPath | None
    ) -> None:
        made = [self._field(each, path) for each in definition["fields"]]
        first = len(self._fields)
        node[tables.KIND], node[tables.A], node[tables.B] = tables.RECORD, first, len(made)
        self._fields += made
        numbers = {each["name"]: first + place for place, each in enumerate(definition["fields"])}
        names = names_of_fields(definition)
        self._table(node, {name: numbers[each["name"]] for name, each in names.items()})

    def _field(self, field: Mapping[str, Any], record: ColumnPath | None) -> list[int]:
        path = None if record is None else (*record, field["name"])
        row = [0] * tables.FIELD_COLUMNS
        row[tables.NODE] = self._node(field["type"], path)
        columns = [] if path is None else wanted_in(self._wanted, path)
        row[tables.INSIDE] = len(self._inside)
        self._inside += [self._wanted[column][0] for column in columns]
        row[tables.INSIDE_END] = len(self._inside)
        row[tables.SET] = len(self._constants)
        if "default" in field:
            row[tables.ABSENT_FIELD] = tables.HAS_DEFAULT
            value = default_value(self._schema, field["type"], field["default"])
            if path is None:
                row[tables.ADDED_BYTES] = _FIELD_BYTES + len(pack(value))
            else:
                self._default(path, value)
        elif not may_be_null(self._schema, field["type"]):
            row[tables.ABSENT_FIELD] = tables.IS_NEEDED
        row[tables.SET_END] = len(self._constants)
        return row

    def _default(self, path: ColumnPath, value: Any) -> None:
        """Write the constants that columns have where a field is missing."""
        for vector, of, found in defaults_in(self._wanted, path, value):
            if of is Representation.TEXT:
                encoded = found.encode()
                self._constants.append((vector, len(self._texts) << 32 | len(encoded), 1))
                self._texts += encoded
            elif of is Representation.OBJECT:
                # Of its place only the row of constants is looked at.
                self._objects.append(found)
                self._constants.append((vector, 0, 0))
                self._constants.append((self._vectors.reader(vector), -len(self._objects), 0))
            else:
                self._constants.append((vector, found, 0))

    def _table(self, node: list[int], numbers: Mapping[str, int]) -> None:
        """Write the table of names of a node."""
        size = 1 << (2 * len(numbers)).bit_length()
        node[tables.TABLE], node[tables.MASK] = len(self._slots), size - 1
        slots = [-1] * size
        for name, number in numbers.items():
            encoded = name.encode()
            text = np.frombuffer(encoded, np.uint8)
            slot = name_hash.py_func(text, 0, len(encoded)) & size - 1
            while slots[slot] >= 0:
                slot = slot + 1 & size - 1
            slots[slot] = len(self._entries)
            self._entries.append((len(self._names), len(encoded), number))
            self._names += encoded
        self._slots += slots
