"""Results as files of a folder: one for each kind, as JSON lines or Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from spark_cep.backtest.replay import ReplayedBatch
from spark_cep.backtest.rows import Kind, arrow_schema, arrow_values, as_json, rows_of
from spark_cep.errors import ConfigurationError

#: Rows of Parquet that wait to be written together.
_ROWS_TOGETHER = 10_000


class FileForm(Enum):
    """The forms of files of results."""

    JSON_LINES = "jsonl"
    PARQUET = "parquet"


class _Parquet:
    """A file of Parquet that is written."""

    def __init__(self, kind: Kind, file: Path) -> None:
        self._kind, self._schema = kind, arrow_schema(kind)
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")
        self._waiting: list[dict[str, Any]] = []

    def write(self, row: dict[str, Any]) -> None:
        self._waiting.append(arrow_values(self._kind, row))
        if len(self._waiting) >= _ROWS_TOGETHER:
            self._flush()

    def _flush(self) -> None:
        self._writer.write_table(pa.Table.from_pylist(self._waiting, self._schema))
        self._waiting.clear()

    def close(self) -> None:
        if self._waiting:
            self._flush()
        self._writer.close()


class _JsonLines:
    """A file of JSON lines that is written."""

    def __init__(self, kind: Kind, file: Path) -> None:
        self._kind = kind
        self._out: TextIO = file.open("w", encoding="utf-8")

    def write(self, row: dict[str, Any]) -> None:
        self._out.write(as_json(self._kind, row) + "\n")

    def close(self) -> None:
        self._out.close()


class ResultFiles:
    """The files that are open."""

    def __init__(self, folder: Path, form: FileForm) -> None:
        make = _Parquet if form is FileForm.PARQUET else _JsonLines
        self._files = {kind: make(kind, folder / f"{kind.value}.{form.value}") for kind in Kind}

    def write(self, found: ReplayedBatch) -> None:
        """Add the results of a batch."""
        for kind, row in rows_of(found):
            self._files[kind].write(row)

    def close(self) -> None:
        """Finish them."""
        for each in self._files.values():
            each.close()


@contextmanager
def result_files(folder: Path | None, form: FileForm) -> Iterator[ResultFiles | None]:
    """The files in ``folder``, which is made; none without a folder. Raises ConfigurationError
    where they cannot be written."""
    if folder is None:
        yield None
        return
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            files = ResultFiles(folder, form)
        except OSError as error:
            raise ConfigurationError(f"{folder}: cannot be written: {error.strerror}") from error
        stack.callback(files.close)
        yield files
