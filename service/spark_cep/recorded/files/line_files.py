"""Files of JSON lines and CSV."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Bytes, texts_together
from spark_cep.errors import ConfigurationError
from spark_cep.model import DeadLetter
from spark_cep.recorded.files.arrow_schemas import avro_schema
from spark_cep.recorded.files.csv_lines import CsvLines
from spark_cep.recorded.files.json_lines import JsonLines
from spark_cep.recorded.files.lines import opened
from spark_cep.recorded.files.row_writer import RowError, RowWriter
from spark_cep.recorded.recording import Chunk, FileRecording, FramedFile

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")


@dataclass(frozen=True)
class JsonFile(FileRecording):
    """A file of JSON lines, which are handed on as they are."""

    def chunks(self) -> Iterator[Chunk]:
        """See :class:`~spark_cep.recorded.recording.Recording`."""
        with opened(self.file) as text:
            record = 0
            for number, lines in enumerate(text.lines()):
                if number == 0:
                    assert isinstance(text.form, JsonLines)
                    text.form.check(lines.records)
                count = len(lines.records)
                if self.has(number):
                    numbers = lines.numbers
                    if self.place.first is not None:
                        numbers = np.arange(record, record + count)
                    yield Chunk(self.place.records(lines.records, numbers), [], lines.read)
                record += count


@dataclass(frozen=True)
class CsvFile(FramedFile):
    """A file of CSV, whose rows are handed on as Avro."""

    @cached_property
    def _writer(self) -> RowWriter:
        return RowWriter(self.schema, self.schema_id)

    def chunks(self) -> Iterator[Chunk]:
        """See :class:`~spark_cep.recorded.recording.Recording`."""
        with opened(self.file) as text:
            form: CsvLines | None = None
            record = 0
            for number, lines in enumerate(text.lines()):
                if form is None:
                    assert isinstance(text.form, CsvLines)
                    form = text.form.reading(self._writer.columns, lines.records)
                if not self.has(number):
                    record += len(lines.records)
                    continue
                values: list[Bytes] = []
                kept: list[I64] = []
                letters: list[DeadLetter] = []
                for found, numbers in self._converted(form, lines.records, lines.numbers):
                    if isinstance(found, Bytes):
                        values.append(found)
                        kept.append(numbers)
                    else:
                        line = int(numbers[0])
                        nth = record + int(np.searchsorted(lines.numbers, line))
                        value = lines.records.value(nth - record)
                        offset = self.place.offset(nth, line)
                        letters.append(self.place.letter(offset, f"line {line}", found, value))
                if not values:
                    yield Chunk(None, letters, lines.read)
                else:
                    numbers = np.concatenate(kept)
                    if self.place.first is not None:
                        numbers = record + np.searchsorted(lines.numbers, numbers)
                    made = self.place.records(texts_together(values), numbers)
                    yield Chunk(made, letters, lines.read)
                record += len(lines.records)

    def _converted(
        self, form: CsvLines, records: Bytes, numbers: I64
    ) -> Iterator[tuple[Bytes | str, I64]]:
        """The values of records, or why one has none, with the numbers of their lines. What is
        wrong is found by halves, since PyArrow refuses all of them together."""
        if not len(records):
            return
        try:
            yield self._writer.written(form.columns(records), len(records)), numbers
        except (pa.ArrowException, RowError, UnicodeError) as error:
            if len(records) == 1:
                yield form.explain(error), numbers
                return
            half = len(records) // 2
            for part in (slice(0, half), slice(half, None)):
                yield from self._converted(form, records.take(part), numbers[part])


def inferred_schema(file: Path, record: str) -> tuple[AvroSchema, list[str]]:
    """The schema that the first records of a file have, and why columns are left out. Raises
    SchemaError where it cannot be found out, ConfigurationError where the file is empty."""
    with opened(file) as text:
        for lines in text.lines():
            return avro_schema(text.form.inferred(lines.records), record, str(file))
    raise ConfigurationError(f"{file}: has no records, so their schema cannot be found out")
