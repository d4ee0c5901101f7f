"""Columns out of Avro records in one compiled pass, without an object for any of them.

A *layout* says for one writer's schema which bytes to skip and which to read, as rows of
operations for :mod:`spark_cep.codecs.avro.loops.record_bytes`. A column whose values are no numbers
and no text is looked at (its bytes must be sound) and left where it is: its vector has the place,
another vector the number of its reader among :attr:`Layouts.readers`, or below 0 that of a
constant, for who wants the value.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from spark_cep.codecs.avro.layout_rows import LayoutRows
from spark_cep.codecs.avro.loops import record_bytes as ops
from spark_cep.codecs.avro.resolved import resolved
from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.avro.schema_layout import SchemaLayout
from spark_cep.codecs.avro.schema_nodes import Node
from spark_cep.codecs.avro.value_reader import ValueReader
from spark_cep.codecs.record_reader import Read, Wanted
from spark_cep.codecs.registry.framing import Framing
from spark_cep.codecs.registry.schema_ids import SchemaId, halves_of
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.vectors import Bytes


@dataclass(frozen=True)
class Layouts:
    """The operations of all schemas. ``programs``: by kind of topic the first of each id, and then
    of each of ``guids``, of which the upper and the lower half is there;
    ``symbols``: those of all enums, and constant texts, one behind the other; ``depth``: how deep
    items and types that contain themselves may stand in each other."""

    ids: NDArray[np.int64]
    guids: NDArray[np.uint64]
    programs: NDArray[np.int64]
    code: NDArray[np.int64]
    symbols: bytes
    depth: int
    width: int
    readers: tuple[ValueReader, ...]
    constants: tuple[Any, ...]

    def only(self, ids: Collection[SchemaId]) -> Layouts:
        """Return the layouts of these ids only; all others are unknown."""
        mine: list[SchemaId] = self.ids.tolist()
        mine += [UUID(int=upper << 64 | lower) for upper, lower in self.guids.tolist()]
        kept = np.array([each in ids for each in mine], bool)
        programs = np.ascontiguousarray(self.programs[:, kept])
        count = len(self.ids)
        return replace(
            self, ids=self.ids[kept[:count]], guids=self.guids[kept[count:]], programs=programs
        )

    def read(
        self,
        values: Bytes,
        headers: Bytes,
        kinds: NDArray[np.int32],
        framing: Framing = Framing.REGISTRY,
        unframed: int = 0,
    ) -> Read:
        """The records with these values and headers, each of a topic of one of the ``kinds``.
        ``unframed``: the id of their schema, where there is no framing."""
        data = values.data
        count, symbols = len(values), len(data)
        if self.symbols:
            data = np.concatenate([data, np.frombuffer(self.symbols, np.uint8)])
            data.flags.writeable = False
        wholes = np.zeros((count, max(1, self.width)), np.int64)
        nulls = np.ones(wholes.shape, np.uint8)
        types, faults = np.empty(count, np.int32), np.empty(count, np.int32)
        single, added = np.zeros(1, np.float32), np.zeros(1, np.int64)
        ops.read_records(
            data, values.places, values.nulls, framing.number, headers.data, headers.places,
            headers.nulls, unframed, self.ids, self.guids, self.programs, kinds, self.code, symbols,
            np.zeros((self.depth + 1, 2), np.int64), single.view(np.uint32), single,
            wholes, wholes.view(np.float64), nulls, types, faults, added,
        )  # fmt: skip
        return Read(
            data, wholes, wholes.view(np.float64), nulls, types, faults, self.readers,
            self.constants, int(added[0]),
        )  # fmt: skip


class LayoutWriter(LayoutRows):
    """Puts the layouts of several schemas together, for columns in ``vectors``."""

    def __init__(self, vectors: ColumnVectors) -> None:
        super().__init__(vectors)
        self.depth = 0
        self._ends = {
            outcome: self.add(ops.END, outcome)
            for outcome in (ops.NOT_READ, ops.UNREADABLE, ops.UNDECODABLE)
        }

    @property
    def not_read(self) -> int:
        """The program of records that are not read."""
        return self._ends[ops.NOT_READ]

    @property
    def unreadable(self) -> int:
        """The program of records whose schema cannot be read."""
        return self._ends[ops.UNREADABLE]

    def record(
        self,
        number: int,
        writer: AvroSchema,
        reader: AvroSchema,
        wanted: Wanted,
        written: Node | None = None,
    ) -> int:
        """The program that reads columns of the type ``written`` of ``writer`` (of all of it) as
        ``reader`` has them, of records of type ``number``."""
        layout = SchemaLayout(self, writer, wanted)
        first = self.add(ops.TYPE, number)
        layout.value(resolved(writer, reader, written), ())
        self.add(ops.END, ops.READ)
        layout.write_called()
        self.depth = max(self.depth, layout.depth)
        return first

    def place(self, writer: AvroSchema) -> int:
        """The program that passes over a value of ``writer``, and leaves its place in vector 0."""
        layout = SchemaLayout(self, writer, {})
        first = self.add(ops.BEGIN, 0)
        layout.skip(writer.root)
        self.add(ops.FINISH, 0, 1)
        self.add(ops.END, ops.READ)
        layout.write_called()
        self.depth = max(self.depth, layout.depth)
        return first

    def union(self, programs: Sequence[int]) -> int:
        """The program of a union of records, by that of each branch."""
        first = self.add(ops.UNION, len(programs))
        for each in programs:
            self.add(ops.JUMP, each)
        return first

    def written(
        self, ids: Sequence[int], programs: Sequence[Sequence[int]], guids: Sequence[UUID] = ()
    ) -> Layouts:
        """All of them, by kind of topic for each of these schema ids and then GUIDs, which are in
        order."""
        return Layouts(
            np.array(ids, np.int64),
            halves_of(guids),
            np.array(programs, np.int64).reshape(len(programs), len(ids) + len(guids)),
            np.array(self.rows, np.int64).reshape(-1, 4),
            bytes(self.texts),
            self.depth,
            self.vectors.width,
            tuple(self.readers),
            tuple(self.constants),
        )
