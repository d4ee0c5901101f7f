"""Records that stand one behind the other, as in the blocks of Avro container files, cut apart in
one compiled pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spark_cep.codecs.avro.loops import record_bytes as ops
from spark_cep.codecs.avro.record_layout import LayoutWriter
from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Bytes, fixed


class CutRecords(NamedTuple):
    """The records of a block, each with the header in front. ``missing``: how many could not be cut
    apart; ``rest``: the bytes behind the others, empty where the block is whole."""

    values: Bytes
    missing: int
    rest: bytes


@dataclass(frozen=True)
class RecordCutter:
    """Cuts blocks of one schema."""

    code: I64
    first: int
    depth: int

    @classmethod
    def of(cls, schema: AvroSchema) -> RecordCutter:
        """The cutter of records of ``schema``."""
        out = LayoutWriter(ColumnVectors())
        first = out.place(schema)
        layouts = out.written([], [[]])
        return cls(layouts.code, first, layouts.depth)

    def cut(self, block: bytes, count: int, header: bytes) -> CutRecords:
        """Cut a block of ``count`` records, and put ``header`` in front of each."""
        data = fixed(np.frombuffer(block, np.uint8))
        # A record has a byte at least: a damaged count must not take all memory.
        count, stated = min(count, len(block)), count
        out = np.empty(len(block) + len(header) * count, np.uint8)
        ends = np.zeros(count + 1, np.int64)
        wholes, nulls = np.zeros((1, 2), np.int64), np.ones((1, 2), np.uint8)
        single, added = np.zeros(1, np.float32), np.zeros(1, np.int64)
        found: int = ops.cut_records(
            data, count, self.code, self.first, np.zeros((self.depth + 1, 2), np.int64),
            single.view(np.uint32), single, wholes, wholes.view(np.float64), nulls,
            np.zeros(1, np.int32), added, fixed(np.frombuffer(header, np.uint8)), out, ends,
        )  # fmt: skip
        end = int(ends[found])
        values = Bytes.of_ends(out[:end], ends[: found + 1])
        return CutRecords(values, stated - found, block[end - found * len(header) :])
