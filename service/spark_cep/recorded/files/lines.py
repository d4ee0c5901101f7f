"""The text of files with a record on a line, or on several: read some megabytes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import LENGTH_BITS, Bytes
from spark_cep.errors import ConfigurationError
from spark_cep.recorded.files.csv_lines import CsvLines
from spark_cep.recorded.files.json_lines import JsonLines
from spark_cep.recorded.recording import BYTES_TOGETHER

_CSV = (".csv", ".tsv")
#: Of compressed files, behind the other one.
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_MARK = b"\xef\xbb\xbf"
#: Most bytes of one record.
_LARGEST = 64 << 20


class Lines(NamedTuple):
    """Records of a text, the number of the line of each from 1, and of bytes read."""

    records: Bytes
    numbers: I64
    read: int


@contextmanager
def opened(file: Path) -> Iterator[Text]:
    """The text of a file. Raises ConfigurationError where it cannot be read."""
    try:
        with pa.input_stream(str(file), compression="detect") as stream:
            yield Text(file, stream)
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror or error}") from error


def is_csv(file: Path) -> bool:
    """Return whether a file is called as one of CSV."""
    return not {each.lower() for each in file.suffixes}.isdisjoint(_CSV)


def _form_of(file: Path, header: bytes) -> CsvLines | JsonLines:
    """The form of a file that begins with this line."""
    return CsvLines.of(file, header) if is_csv(file) else JsonLines(file)


class Text:
    """The text of a file. ``form``: known once the first line has been read."""

    form: CsvLines | JsonLines

    def __init__(self, file: Path, stream: Any) -> None:
        self._file, self._stream = file, stream
        self._read = 0
        self._is_compressed = file.suffix.lower() in COMPRESSED
        self._line = 1

    def lines(self) -> Iterator[Lines]:
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

    def _cut(self, data: Any, ends: I64) -> Lines:
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
        return Lines(Bytes(places, np.zeros(len(kept), bool), data), numbers[kept], read)
