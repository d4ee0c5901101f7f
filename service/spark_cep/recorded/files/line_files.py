"""Files of JSON lines and CSV, read some megabytes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import LENGTH_BITS, Bytes, texts_together
from spark_cep.errors import ConfigurationError
from spark_cep.model import DeadLetter
from spark_cep.recorded.files.arrow_schemas import avro_schema
from spark_cep.recorded.files.csv_lines import CsvLines
from spark_cep.recorded.files.json_lines import JsonLines
from spark_cep.recorded.files.row_writer import RowError, RowWriter
from spark_cep.recorded.files.text_columns import TextForm
from spark_cep.recorded.recording import BYTES_TOGETHER, Chunk, FileRecording

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")
#: Of compressed files, behind the other one.
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_MARK = b"\xef\xbb\xbf"
#: Most bytes of one record.
_LARGEST = 64 << 20


class _Lines(NamedTuple):
    """Records of a text, the number of the line of each from 1, and of bytes read."""

    records: Bytes
    numbers: I64
    read: int


@dataclass(frozen=True)
class LineFile(FileRecording):
    """A file of JSON lines or CSV."""

    @cached_property
    def _writer(self) -> RowWriter:
        return RowWriter(self.schema, self.schema_id)

    def chunks(self) -> Iterator[Chunk]:
        """See :class:`~spark_cep.recorded.recording.Recording`."""
        with _opened(self.file) as text:
            form: TextForm | None = None
            record = 0
            for number, lines in enumerate(text.lines()):
                if form is None:
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
        self, form: TextForm, records: Bytes, numbers: I64
    ) -> Iterator[tuple[Bytes | str, I64]]:
        """The values of records, or why one has none, with the numbers of their lines. What is
        wrong is found by halves, since PyArrow refuses all of them together."""
        if not len(records):
            return
        try:
            yield self._writer.written(form.columns(records), len(records)), numbers
        except (pa.ArrowException, RowError, UnicodeError) as error:
            if len(records) == 1:
                yield form.explain(records, error), numbers
                return
            half = len(records) // 2
            for part in (slice(0, half), slice(half, None)):
                yield from self._converted(form, records.take(part), numbers[part])


def inferred_schema(file: Path, record: str) -> tuple[AvroSchema, list[str]]:
    """The schema that the first records of a file have, and why columns are left out. Raises
    SchemaError where it cannot be found out, ConfigurationError where the file is empty."""
    with _opened(file) as text:
        for lines in text.lines():
            return avro_schema(text.form.inferred(lines.records), record, str(file))
    raise ConfigurationError(f"{file}: has no records, so their schema cannot be found out")


@contextmanager
def _opened(file: Path) -> Iterator[_Text]:
    try:
        with pa.input_stream(str(file), compression="detect") as stream:
            yield _Text(file, stream)
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror or error}") from error


def _form_of(file: Path, header: bytes) -> TextForm:
    """The form of a file that begins with this line."""
    suffixes = [each.lower() for each in file.suffixes]
    if {".csv", ".tsv"} & set(suffixes):
        return CsvLines.of(file, header)
    return JsonLines(file, {})


class _Text:
    """The text of a file. ``form``: known once the first line has been read."""

    form: TextForm

    def __init__(self, file: Path, stream: Any) -> None:
        self._file, self._stream = file, stream
        self._read = 0
        self._is_compressed = file.suffix.lower() in COMPRESSED
        self._line = 1

    def lines(self) -> Iterator[_Lines]:
        """The records, without those that are blank."""
        rest = self._more().removeprefix(_MARK)
        header, _, body = rest.partition(b"\n")
        self.form = _form_of(self._file, header)
        if isinstance(self.form, CsvLines):
            rest = body
            self._line = 2
        while True:
            more = self._more()
            if not more and rest and not rest.endswith(b"\n"):
                rest += b"\n"
            data = np.frombuffer(rest, np.uint8)
            ends = self.form.record_ends(data)
            if len(ends):
                found = self._cut(data, ends)
                if len(found.records):
                    yield found
                rest = rest[int(ends[-1]) + 1 :]
            if not more:
                if rest.strip():
                    raise ConfigurationError(
                        f"{self._file}, line {self._line}: a quoted value that begins here has no"
                        " end"
                    )
                return
            if len(rest) > _LARGEST:
                raise ConfigurationError(
                    f"{self._file}, line {self._line}: a record has more than {_LARGEST:,} bytes"
                )
            rest += more

    def _more(self) -> bytes:
        found: bytes = self._stream.read(BYTES_TOGETHER)
        self._read += len(found)
        return found

    def _cut(self, data: Any, ends: I64) -> _Lines:
        starts = np.concatenate([[0], ends[:-1] + 1])
        lengths = ends - starts
        # Line ends inside of quotes count, too.
        breaks = np.flatnonzero(data == ord("\n"))
        numbers = self._line + np.searchsorted(breaks, starts)
        self._line += int(np.searchsorted(breaks, ends[-1], "right"))
        returns = (lengths > 0) & (data[np.maximum(ends - 1, 0)] == ord("\r"))
        lengths = lengths - returns
        kept = np.flatnonzero(lengths > 0)
        places = starts[kept] << LENGTH_BITS | lengths[kept]
        read = 0 if self._is_compressed else self._read
        return _Lines(Bytes(places, np.zeros(len(kept), bool), data), numbers[kept], read)
