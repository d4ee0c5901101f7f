"""Cells of the table: text as a person writes it, and the value that it stands for.

Where a schema says that a column is text, a time, a decimal or bytes, the cell is that text as it
is. All else is written as in a test case, in YAML: ``17``, ``true``, ``'17'`` for text that looks
like a number, ``[1, 2]``, ``{a: 1}``. An empty cell is no value at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from spark_cep.cases.document.values import plain
from spark_cep.cases.running.found import FoundResult
from spark_cep.documents.reading import read_documents
from spark_cep.pattern.types import BINARY, DATE, STRING, TIMESTAMP, DecimalType, SqlType

#: Text that YAML takes for nothing else, which most cells are.
_WORD: Final = re.compile(r"[A-Za-z_][\w-]{5,}")


class CellError(ValueError):
    """The text of a cell stands for no value."""


def cell_value(text: str, kind: SqlType | None) -> Any:
    """The value of a cell of a column of type ``kind``, where that is known, as a test case writes
    it. Raises CellError."""
    return text if _is_text(kind) else _read(text)


def cell_text(value: Any, kind: SqlType | None) -> str:
    """The text of a cell that stands for a value."""
    if value is None:
        return ""
    written = plain(value)
    return written if _is_text(kind) and isinstance(written, str) else FoundResult.text(written)


def _is_text(kind: SqlType | None) -> bool:
    return kind in (STRING, TIMESTAMP, DATE, BINARY) or isinstance(kind, DecimalType)


@lru_cache(maxsize=10_000)
def _read(text: str) -> Any:
    if _WORD.fullmatch(text):
        return text
    documents = read_documents(text, "the cell")
    if len(documents) != 1 or documents[0].problems:
        first = next(iter(documents[0].problems.values())) if documents else None
        raise CellError("it cannot be read" if first is None else first.message)
    return documents[0].data


def cell_texts(values: Mapping[str, Any], kinds: Mapping[str, SqlType]) -> dict[str, str]:
    """The cells of a row."""
    texts = ((name, cell_text(value, kinds.get(name))) for name, value in values.items())
    return {name: text for name, text in texts if text}
