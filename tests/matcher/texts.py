"""What column vectors of texts hold."""

from __future__ import annotations

from spark_cep.columns.vectors import Bytes


def texts_in(column: Bytes) -> list[str | None]:
    """All values."""
    return [column.text(row) for row in range(len(column))]
