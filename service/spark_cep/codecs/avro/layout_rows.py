"""The operations of layouts, as they are written one behind the other."""

from __future__ import annotations

from typing import Any

from spark_cep.codecs.avro.value_reader import ValueReader
from spark_cep.columns.column_vectors import ColumnVectors


class LayoutRows:
    """Operations, the texts, constants and readers that they name, for columns in ``vectors``."""

    def __init__(self, vectors: ColumnVectors) -> None:
        self.rows: list[tuple[int, int, int, int]] = []
        self.texts = bytearray()
        self.readers: list[ValueReader] = []
        self.constants: list[Any] = []
        self.vectors = vectors

    def add(self, code: int, a: int = 0, b: int = 0, c: int = 0) -> int:
        """One operation; its place."""
        self.rows.append((code, a, b, c))
        return len(self.rows) - 1

    def jump(self, place: int) -> None:
        """The jump at ``place`` leads to what is written next."""
        code, _, b, c = self.rows[place]
        self.rows[place] = (code, len(self.rows), b, c)

    def text(self, text: str) -> int:
        """The place of a constant text."""
        encoded = text.encode()
        at = self.texts.find(encoded)
        if at < 0:
            at = len(self.texts)
            self.texts += encoded
        return at << 32 | len(encoded)
