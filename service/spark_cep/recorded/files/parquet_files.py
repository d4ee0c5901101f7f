"""Parquet files, read some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.columns.vectors import Bytes, texts_together
from spark_cep.errors import ConfigurationError, SchemaError
from spark_cep.model import DeadLetter
from spark_cep.recorded.files.arrow_schemas import avro_schema
from spark_cep.recorded.files.row_writer import RowColumn, RowError, RowWriter
from spark_cep.recorded.recording import ROWS_TOGETHER, Chunk, FramedFile

SUFFIXES = (".parquet", ".pq")


def schema_of(file: Path, record: str) -> tuple[AvroSchema, list[str]]:
    """The schema of a file's columns, and why some are left out."""
    with _opened(file) as opened:
        return avro_schema(opened.schema_arrow, record, str(file))


@dataclass(frozen=True)
class ParquetFile(FramedFile):
    """A Parquet file."""

    @cached_property
    def _writer(self) -> RowWriter:
        return RowWriter(self.schema, self.schema_id)

    def chunks(self) -> Iterator[Chunk]:
        """See :class:`~spark_cep.recorded.recording.Recording`."""
        with _opened(self.file) as opened:
            names = opened.schema_arrow.names
            wanted = [each for each in self._writer.columns if each.name in names]
            if missing := [
                each.name
                for each in self._writer.columns
                if each.name not in names and not each.can_lack
            ]:
                raise SchemaError(
                    f"{self.file}: has no column {', '.join(missing)}, which the schema needs; it"
                    f" has {', '.join(names)}"
                )
            rows, total = 0, max(1, opened.metadata.num_rows)
            columns = [each.name for each in wanted]
            for number, batch in enumerate(_batches(opened, self.file, columns)):
                if not self.has(number):
                    rows += batch.num_rows
                    continue
                values: list[Bytes] = []
                kept: list[int] = []
                letters: list[DeadLetter] = []
                for first, found in self._converted(wanted, batch, rows):
                    if isinstance(found, Bytes):
                        values.append(found)
                        kept += range(first, first + len(found))
                    else:
                        offset = self.place.offset(first, first)
                        letters.append(self.place.letter(offset, f"row {first}", found, None))
                rows += batch.num_rows
                made = None
                if values:
                    numbers = np.array(kept, np.int64)
                    made = self.place.records(texts_together(values), numbers)
                yield Chunk(made, letters, self.size * rows // total)

    def _converted(
        self, wanted: list[RowColumn], batch: pa.RecordBatch, first: int
    ) -> Iterator[tuple[int, Bytes | str]]:
        """The values of rows, or why one has none, with the number of the first of them."""
        if not batch.num_rows:
            return
        try:
            yield first, self._writer.written(_columns(wanted, batch), batch.num_rows)
        except (pa.ArrowException, RowError) as error:
            if batch.num_rows == 1:
                yield first, str(error)
                return
            half = batch.num_rows // 2
            for start in (0, half):
                part = batch.slice(start, half if start == 0 else None)
                yield from self._converted(wanted, part, first + start)


def _columns(wanted: list[RowColumn], batch: pa.RecordBatch) -> Mapping[str, pa.Array | list[Any]]:
    """The columns, in the types that they are written in."""
    found: dict[str, pa.Array | list[Any]] = {}
    for column in wanted:
        array = batch.column(column.name)
        if column.arrow is None:
            found[column.name] = array.to_pylist(maps_as_pydicts="strict")
        else:
            # A finer time is cut off, as Avro's writers do.
            safe = not pa.types.is_timestamp(column.arrow)
            found[column.name] = array.cast(column.arrow, safe=safe)
    return found


@contextmanager
def _opened(file: Path) -> Iterator[pq.ParquetFile]:
    try:
        opened = pq.ParquetFile(file)
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror or error}") from error
    except pa.ArrowInvalid as error:
        raise ConfigurationError(f"{file}: is no Parquet file: {error}") from error
    with opened:
        yield opened


def _batches(opened: pq.ParquetFile, file: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    try:
        yield from opened.iter_batches(ROWS_TOGETHER, columns=columns, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise ConfigurationError(f"{file}: is damaged: {error}") from error
