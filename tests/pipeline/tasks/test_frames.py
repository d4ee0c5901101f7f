"""Rows of a key group in frames, and its reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from spark_cep.pipeline.tasks.frames import frame_of, rows_of


def test_rows_come_a_frame_at_a_time() -> None:
    """They are Python's own integers and bytes."""
    given = 0
    rows = [(n, bytes([n]) * 100) for n in range(8)]

    def arriving() -> Iterator[Any]:
        nonlocal given
        for start in range(0, len(rows), 2):
            given += 1
            yield pd.DataFrame(rows[start : start + 2], columns=["kind", "packet"])

    found = []
    for number, row in enumerate(rows_of(arriving())):
        assert given == number // 2 + 1
        assert (type(row[0]), type(row[1])) == (int, bytes)
        found.append(row)
    assert found == rows


def test_reports_are_rows() -> None:
    """Bytes stay bytes, also where there are none."""
    assert frame_of([b"a", b""])["report"].tolist() == [b"a", b""]
    assert len(frame_of([])) == 0
