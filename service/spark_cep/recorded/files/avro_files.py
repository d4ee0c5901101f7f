"""Avro container files: their blocks, cut into records as a topic has them.

A record is not looked at here. It gets the prefix of a schema id, under which the decoder knows the
file's schema, and so what is wrong in one is found, and told, as for a record of a topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Bytes
from spark_cep.columns.vectors import texts_together as together
from spark_cep.errors import ConfigurationError
from spark_cep.model import DeadLetter
from spark_cep.recorded.recording import BYTES_TOGETHER, ROWS_TOGETHER, Chunk, FramedFile

SUFFIXES = (".avro",)


def schema_of(file: Path) -> AvroSchema:
    """The schema in the header of a file. Raises ConfigurationError where there is none, and
    SchemaError where it cannot be used."""
    with _blocks(file) as blocks:
        return parse(blocks.metadata["avro.schema"], str(file), defaults=False)


@dataclass(frozen=True)
class AvroFile(FramedFile):
    """An Avro container file. ``schema`` is that of its header."""

    @cached_property
    def _cutter(self) -> RecordCutter:
        return RecordCutter.of(self.schema)

    def chunks(self) -> Iterator[Chunk]:
        """See :class:`~spark_cep.recorded.recording.Recording`."""
        first = 0
        with _blocks(self.file) as blocks:
            for number, several in enumerate(_together(_each(blocks, self.file))):
                if self.has(number):
                    yield self._chunk(several, first)
                first += sum(block.num_records for block in several)

    def _chunk(self, blocks: Sequence[Any], number: int) -> Chunk:
        """The records of blocks, whose first one has this number."""
        header = frame(self.schema_id, b"")
        values: list[Bytes] = []
        numbers: list[I64] = []
        letters: list[DeadLetter] = []
        for block in blocks:
            cut = self._cutter.cut(block.bytes_.getvalue(), block.num_records, header)
            found = len(cut.values)
            if found:
                values.append(cut.values)
                numbers.append(np.arange(number, number + found, dtype=np.int64))
            number += found
            if cut.missing or cut.rest:
                where = f"record {number}, in the block at byte {block.offset}"
                why = (
                    f"its bytes are not those of the file's schema, and where the"
                    f" {cut.missing:,} records from it to the end of the block begin cannot be told"
                    if cut.missing
                    else f"{len(cut.rest)} bytes are left behind the last record of the block"
                )
                offset = self.place.offset(number, number)
                letters.append(self.place.letter(offset, where, why, cut.rest))
                number += cut.missing
        read = blocks[-1].offset + blocks[-1].size
        if not values:
            return Chunk(None, letters, read)
        return Chunk(self.place.records(together(values), np.concatenate(numbers)), letters, read)


def _together(blocks: Iterable[Any]) -> Iterator[list[Any]]:
    """The blocks, so many that their records are read together."""
    several: list[Any] = []
    rows = size = 0
    for block in blocks:
        several.append(block)
        rows += block.num_records
        size += len(block.bytes_.getbuffer())
        if rows >= ROWS_TOGETHER or size >= BYTES_TOGETHER:
            yield several
            several, rows, size = [], 0, 0
    if several:
        yield several


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
