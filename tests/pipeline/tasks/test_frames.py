"""Rows of a key group in frames of bounded size, while they are made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spark_cep.pipeline.tasks.frames import MOST_BYTES, frames_of, rows_of


def test_frames_are_bounded_and_come_early() -> None:
    """A frame comes before the rows behind it are made, holds no more than the bound and one row,
    and nothing is lost."""
    made = 0

    def rows() -> Iterator[tuple[int, bytes]]:
        nonlocal made
        for number in range(64):
            made += 1
            yield number, bytes(MOST_BYTES // 8)

    found: list[int] = []
    for frame in frames_of(rows()):
        assert frame["packet"].map(len).sum() <= MOST_BYTES + MOST_BYTES // 8
        found += frame["kind"].tolist()
        assert made == len(found)
    assert found == list(range(64))


def test_a_large_row_is_the_last_of_its_frame() -> None:
    """It closes the frame that it is in."""
    rows = [(n, bytes(size)) for n, size in enumerate((1, 5 * MOST_BYTES, 1))]
    assert [len(frame) for frame in frames_of(rows)] == [2, 1]


def test_no_rows_are_no_frame() -> None:
    """A key group without output sends nothing."""
    assert list(frames_of([])) == []


def test_rows_come_back_a_frame_at_a_time() -> None:
    """As Python's own integers and bytes."""
    given = 0
    rows = [(n, bytes([n]) * (MOST_BYTES // 2)) for n in range(8)]

    def arriving() -> Iterator[Any]:
        nonlocal given
        for frame in frames_of(rows):
            given += 1
            yield frame

    found = []
    for number, row in enumerate(rows_of(arriving())):
        assert given == number // 2 + 1
        assert (type(row[0]), type(row[1])) == (int, bytes)
        found.append(row)
    assert found == rows
