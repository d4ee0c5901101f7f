"""Events on their way to a key group: rows of Arrow columns, one packet for each cut of a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_cep.compiler.rule_set import Partitioning
from spark_cep.packing import reading_packet

#: Number of the record type.
TYPE_COLUMN: Final = "event_type"
#: Microseconds of the event time behind its millisecond: 0 to 999.
MICROS_COLUMN: Final = "micros"
#: Bits of conditions in one word.
WORD_BITS: Final = 62
#: The type of topics: most packets have one.
TOPIC: Final = pa.dictionary(pa.int32(), pa.string())
#: The types of columns that packets of all partitionings have.
_KINDS: Final = {"time": pa.int64(), "topic": TOPIC, "offset": pa.int64()}
_LATE_UNTIL: Final = b"spark_cep.late_until"


def conditions_column(partitioning: int) -> str:
    """Return the name of the column of true conditions (:func:`~.masks.condition_sets`)."""
    return f"conditions_{partitioning}"


def words_of(conditions: int) -> int:
    """The number of words for so many conditions."""
    return -(-conditions // WORD_BITS)


def place_of(bit: int) -> tuple[int, int]:
    """The number of the word that a condition's bit is in, and the bit as a mask of it."""
    return bit // WORD_BITS, 1 << bit % WORD_BITS


@dataclass(frozen=True)
class PackedPartitioning:
    """Shape of one partitioning's columns. ``micros``: event times are finer than milliseconds."""

    number: int
    slots: int
    keeps_payload: bool
    micros: bool = False

    @classmethod
    def of(
        cls, number: int, partitioning: Partitioning, *, micros: bool = False
    ) -> PackedPartitioning:
        """Return the form in which a partitioning's columns travel; ``micros``: event times are
        finer than milliseconds."""
        return cls(number, len(partitioning.slots), partitioning.keeps_payload, micros)

    @property
    def columns(self) -> list[str]:
        """Column names of an events packet, in order."""
        return [
            f"key_{self.number}",
            "time",
            *([MICROS_COLUMN] if self.micros else []),
            "topic",
            "partition",
            "offset",
            TYPE_COLUMN,
            "record_key",
            "value",
            "headers",
            "first",
            conditions_column(self.number),
            *(f"slot_{self.number}_{s}" for s in range(self.slots)),
        ]


def sizes_of(rows: pa.RecordBatch) -> NDArray[np.int64]:
    """Bytes of each row, about: those of its record, if it has them, and a share of all else."""
    sizes: NDArray[np.int64] = np.zeros(rows.num_rows, np.int64)
    if "value" in rows.schema.names and rows.column("value").null_count < len(sizes):
        sizes += pc.fill_null(pc.binary_length(rows.column("value")), 0).to_numpy()
    sizes += (rows.nbytes - int(sizes.sum())) // max(1, len(sizes))
    return sizes


def packet_of(rows: pa.RecordBatch) -> bytes:
    """Rows as one packet. A packet carries its schema: slot types are Spark's to choose, and what
    is NULL in all rows is of no type."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())


def rows_of(packet: bytes) -> pa.RecordBatch:
    """The rows of a packet. Raises StateError for other bytes."""
    with reading_packet(), pa.ipc.open_stream(packet) as reader:
        rows = reader.read_next_batch()
        rows.validate(full=True)
        for name, kind in _KINDS.items():
            if rows.schema.field(name).type != kind:
                raise TypeError(f"column {name} is {rows.schema.field(name).type}, not {kind}")
        return rows


def with_late_until(rows: pa.RecordBatch, late_until: int) -> pa.RecordBatch:
    """The rows, which say that those after the event time ``late_until`` (ms) lack the bytes of
    their records."""
    return rows.replace_schema_metadata({_LATE_UNTIL: str(late_until)})


def late_until(rows: pa.RecordBatch) -> int | None:
    """Up to which time rows of a packet have the bytes of their records; ``None``: all have."""
    text = (rows.schema.metadata or {}).get(_LATE_UNTIL)
    return None if text is None else int(text)
