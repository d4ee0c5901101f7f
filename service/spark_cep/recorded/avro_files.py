"""Avro container files: their blocks, cut into records as a topic has them.

A record is not looked at here. It gets the prefix of a schema id, under which the decoder knows the
file's schema, and so what is wrong in one is found, and told, as for a record of a topic.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import fastavro
import numpy as np

from spark_cep.codecs.avro.record_cutting import RecordCutter
from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.registry.framing import frame
from spark_cep.columns.vectors import Bytes
from spark_cep.columns.vectors import texts_together as together
from spark_cep.errors import ConfigurationError
from spark_cep.recorded.recording import BYTES_TOGETHER, ROWS_TOGETHER, Chunk, FileRecording

SUFFIXES = (".avro",)


def schema_of(file: Path) -> AvroSchema:
    """The schema in the header of a file. Raises ConfigurationError where there is none, and
    SchemaError where it cannot be used."""
    with _blocks(file) as blocks:
        return parse(blocks.metadata["avro.schema"], str(file), defaults=False)


@dataclass(frozen=True)
class AvroFile(FileRecording):
    """An Avro container file. ``schema`` is that of its header."""

    @cached_property
    def _cutter(self) -> RecordCutter:
        return RecordCutter.of(self.schema)

    def chunks(self) -> Iterator[Chunk]:
        """See :class:`~spark_cep.recorded.recording.Recording`."""
        header = frame(self.schema_id, b"")
        waiting: list[Bytes] = []
        record = number = read = 0

        def gathered(letters: list[Any]) -> Chunk:
            nonlocal record
            if not waiting:
                return Chunk(None, letters, read)
            values = together(waiting)
            waiting.clear()
            first, record = record, number
            numbers = np.arange(first, first + len(values), dtype=np.int64)
            return Chunk(self.place.records(values, numbers), letters, read)

        with _blocks(self.file) as blocks:
            for block in _each(blocks, self.file):
                body = block.bytes_.getvalue()
                cut = self._cutter.cut(body, block.num_records, header)
                if len(cut.values):
                    waiting.append(cut.values)
                number += len(cut.values)
                read = block.offset + block.size
                size = sum(len(each.data) for each in waiting)
                if cut.missing or cut.rest:
                    where = f"record {number}, in the block at byte {block.offset}"
                    why = (
                        f"its bytes are not those of the file's schema, and where the"
                        f" {cut.missing:,} records from it to the end of the block begin cannot be"
                        " told"
                        if cut.missing
                        else f"{len(cut.rest)} bytes are left behind the last record of the block"
                    )
                    offset = self.place.offset(number, number)
                    yield gathered([self.place.letter(offset, where, why, cut.rest)])
                    number += cut.missing
                    record = number
                elif size >= BYTES_TOGETHER or number - record >= ROWS_TOGETHER:
                    yield gathered([])
            yield gathered([])


@contextmanager
def _blocks(file: Path) -> Iterator[Any]:
    try:
        opened = file.open("rb")
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}") from error
    with opened:
        try:
            blocks = fastavro.block_reader(opened)
        except (ValueError, EOFError, KeyError) as error:
            raise ConfigurationError(
                f"{file}: is no Avro container file ({error}); a file of single records without a"
                " header cannot be read"
            ) from error
        yield blocks


def _each(blocks: Any, file: Path) -> Iterator[Any]:
    """The blocks. Raises ConfigurationError where the file is cut off or damaged, or its blocks are
    compressed in a way that cannot be read."""
    end = 0
    while True:
        try:
            block = next(blocks)
        except StopIteration:
            return
        except (ValueError, EOFError, OSError, LookupError) as error:
            raise ConfigurationError(
                f"{file}: the block behind byte {end} cannot be read:"
                f" {error or type(error).__name__}"
            ) from error
        end = block.offset + block.size
        yield block
