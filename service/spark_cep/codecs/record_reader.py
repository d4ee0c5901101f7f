"""Readers of records of any format: the seam between formats and the decoder.

A format is its :class:`RecordFormat`: the record types that a job reads in it, and for the columns
that a plan wants a :class:`RecordReader`. Avro with the framing of a registry is one
(:mod:`spark_cep.codecs.registry.avro_reader`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from spark_cep.columns.byte_column import ByteColumn
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.pattern.expressions import ColumnPath
from spark_cep.pattern.types import RecordType, SqlType

#: Vector and type by column.
Wanted = Mapping[ColumnPath, tuple[int, SqlType]]


class Read(NamedTuple):
    """The columns of records: a row each of ``wholes`` and ``doubles`` (the same memory) and
    ``nulls``, its type (-1: none that is read), and its fault
    (:class:`~spark_cep.codecs.record_faults.Fault`). Texts are places in ``data``, and so are the
    bytes of other values, for one of the ``readers``; or the value is one of the ``constants``
    (:mod:`~spark_cep.columns.column_vectors`)."""

    data: NDArray[np.uint8]
    wholes: NDArray[np.int64]
    doubles: NDArray[np.float64]
    nulls: NDArray[np.uint8]
    types: NDArray[np.int32]
    faults: NDArray[np.int32]
    readers: Sequence[Callable[[bytes], Any]] = ()
    constants: Sequence[Any] = ()


class RecordReader(Protocol):
    """Reads columns out of records; picklable."""

    def read(self, topic: str, values: ByteColumn) -> Read:
        """The columns of the records with these values, of one topic."""

    def only(self, formats: Collection[int]) -> Self:
        """Return a reader of these formats only, as the reader numbers them; all others are
        unknown."""


class InputType(Protocol):
    """One record type of one input. ``event_time``: the path of its column; ``event_time_unit`` as
    in the settings."""

    @property
    def number(self) -> int:
        """Its place among all types."""

    @property
    def input(self) -> str:
        """The input's name."""

    @property
    def name(self) -> str:
        """The full name of the type."""

    @property
    def event_time(self) -> str:
        """The column with the event time."""

    @property
    def event_time_unit(self) -> str:
        """The unit of a number there."""

    @property
    def columns(self) -> RecordType:
        """Its columns. SchemaError where some cannot be read."""


class RecordFormat(Protocol):
    """The record types that a job reads."""

    @property
    def types(self) -> Sequence[InputType]:
        """All of them, in the order of their numbers."""

    def reader(self, wanted: Sequence[Wanted], vectors: ColumnVectors) -> RecordReader:
        """The reader of the ``wanted`` columns of each type. SchemaError where they are not of
        types that can be read."""
