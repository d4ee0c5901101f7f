"""Readers of records of any format: the seam between formats and the decoder.

A format is its :class:`RecordFormat`: the record types that a job reads in it, and for the columns
that a plan wants a :class:`RecordReader`. A format whose records name their schemas can learn new
ones while the job runs; what names them is its own matter. Avro with the framing of a registry is
one (:mod:`spark_cep.codecs.registry`); :mod:`spark_cep.codecs.formats` has the table of all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.record_headers import Header
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.vectors import Bytes
from spark_cep.pattern.expressions import ColumnPath
from spark_cep.pattern.types import RecordType, SqlType

#: Vector and type by column.
Wanted = Mapping[ColumnPath, tuple[int, SqlType]]


class Read(NamedTuple):
    """The columns of records: a row each of ``wholes`` and ``doubles`` (the same memory) and
    ``nulls``, its type (-1: none that is read), and its fault
    (:class:`~spark_cep.codecs.record_faults.Fault`). Texts are places in ``data``, and so are the
    bytes of other values, for one of the ``readers``; or the value is one of the ``constants``
    (:mod:`~spark_cep.columns.column_vectors`). ``added``: about how much memory the values take
    beyond what their bytes account for."""

    data: NDArray[np.uint8]
    wholes: NDArray[np.int64]
    doubles: NDArray[np.float64]
    nulls: NDArray[np.uint8]
    types: NDArray[np.int32]
    faults: NDArray[np.int32]
    readers: Sequence[Callable[[bytes], Any]] = ()
    constants: Sequence[Any] = ()
    added: int = 0


class RawRecord(NamedTuple):
    """One record as Kafka has it."""

    topic: str
    value: bytes
    headers: Sequence[Header] = ()


class RecordReader(ABC):
    """Reads columns out of records; picklable."""

    @abstractmethod
    def read(self, topic: str, values: Bytes, headers: Bytes) -> Read:
        """The columns of the records with these values and headers, of one topic."""

    @abstractmethod
    def explain(self, record: RawRecord, fault: Fault, number: int) -> tuple[Reason, str]:
        """The reason and the words of a dead letter for a record, which :meth:`read` gave a
        ``fault`` and the type ``number``; never raises."""

    def of_task(self, planned_at: int, schemas: str | None) -> Self:  # noqa: ARG002  of formats without schemas
        """Return the reader for one task of a batch, which was planned at ``planned_at`` (ms since
        1970). ``schemas``: the only ones that the batch knows (:attr:`RecordFormat.known`), where a
        part of its output is written already."""
        return self

    def new_schemas(self, records: Iterable[RawRecord]) -> Collection[str]:  # noqa: ARG002  of formats without schemas
        """The names of schemas that :meth:`RecordFormat.learn` is to be given before these records,
        all of ``Fault.UNKNOWN_SCHEMA``, can be read. The records of all others are explained."""
        return ()


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


class RecordFormat(ABC):
    """The record types that a job reads, ``types``, in the order of their numbers; and the schemas
    of records that it knows, where records name them."""

    types: Sequence[InputType]

    @abstractmethod
    def reader(self, wanted: Sequence[Wanted], vectors: ColumnVectors) -> RecordReader:
        """The reader of the ``wanted`` columns of each type. SchemaError where they are not of
        types that can be read."""

    @property
    def known(self) -> str:
        """The schemas that are known by now, as text."""
        return ""

    def learn(self, schemas: Iterable[str]) -> Collection[str]:
        """Learn schemas of which :meth:`RecordReader.new_schemas` gave the names; those that there
        are not. Raises RegistryError where that cannot be found out."""
        raise NotImplementedError(f"a format without schemas is to learn {', '.join(schemas)}")

    def snapshot(self) -> Self:
        """Return a copy of the present knowledge, for another thread or process."""
        return self

    def types_of(self, inputs: Sequence[str]) -> Sequence[InputType]:
        """The record types of ``inputs`` (of all, when empty)."""
        return [one for one in self.types if not inputs or one.input in inputs]
