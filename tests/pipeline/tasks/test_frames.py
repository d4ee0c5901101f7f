"""Rows of a key group in frames, and its reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from spark_cep.pipeline.tasks.frames import frame_of, reports_in, rows_of


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


def test_reports_of_a_task_are_a_row() -> None:
    """Bytes stay bytes, also where there are none; rows of tasks follow one another."""
    tasks = [[b"a", b""], [], [b"b" * 100_000]]
    rows = [frame_of(reports)["report"].tolist() for reports in tasks]
    assert [len(row) for row in rows] == [1, 1, 1]
    assert reports_in(b"".join(row[0] for row in rows)) == [b"a", b"", b"b" * 100_000]
    assert reports_in(b"") == []
